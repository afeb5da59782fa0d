//! Taking bulk messages back that certainly were not sent.

use super::sql;
use crate::kernel::store::{StoreError, Tx};

/// Deletes those of these bulk messages that still wait and of which no attempt may have arrived; the ids that were
/// deleted. Their keys are free again, so that whoever takes a broadcast up again can queue the same messages anew.
///
/// # Errors
/// The store's.
pub(crate) fn withdraw(tx: &Tx<'_>, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
    sql::settle::delete_waiting(tx, ids)
}

//! The ledger's open accounts with a remote backend: events that were applied here and are perhaps still open there.
//!
//! Such a mark is kept for as long as the event can be served again, since it is what answers for it then.

use super::sql;
use crate::kernel::store::{StoreError, Tx};

/// The most marks that are looked at in one go.
const BATCH: i64 = 500;

/// Applied events of which the backend has not been heard to take the acknowledgement; the lowest ids, not all of them.
///
/// # Errors
/// The store's.
pub(crate) fn unacknowledged(tx: &Tx<'_>, source: &str) -> Result<Vec<i64>, StoreError> {
    sql::unacked_marks(tx, source, BATCH)
}

/// The backend has these events closed.
///
/// # Errors
/// The store's.
pub(crate) fn acknowledged(tx: &Tx<'_>, source: &str, ids: &[i64]) -> Result<(), StoreError> {
    sql::mark_acked(tx, source, ids)
}

//! Keeps the ledger from growing for ever: marks whose event can no longer be served are not needed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::sql;
use crate::kernel::batches::delete_in_batches;
use crate::kernel::store::{Db, StoreError, Tx};

/// What a pass deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    pub(crate) deleted: u64,
}

/// Deletes marks older than `keep` whose event is closed or acknowledged, a batch at a time, until `stop` is cancelled.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn run_once(db: &Db, keep: Duration, stop: &CancellationToken) -> Result<Report, StoreError> {
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let delete = move |tx: &Tx<'_>, limit| sql::delete_marks(tx, tx.now().saturating_sub(keep_ms), limit);
    Ok(Report { deleted: delete_in_batches(db, stop, delete).await? })
}

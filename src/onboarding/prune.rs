//! Keeps the ledger from growing for ever: marks whose event can no longer be served are not needed.

use std::time::Duration;

use super::sql;
use crate::kernel::store::{Db, StoreError};

/// Rows of one delete; small enough that a writer beside it does not wait.
const BATCH: i64 = 500;

/// What a pass deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    pub(crate) deleted: u64,
}

/// Deletes marks older than `keep` whose event is closed or acknowledged.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn run_once(db: &Db, keep: Duration) -> Result<Report, StoreError> {
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let mut report = Report::default();
    loop {
        let deleted = db.settle(move |tx| sql::delete_marks(tx, tx.now().saturating_sub(keep_ms), BATCH)).await?;
        report.deleted += deleted as u64;
        if deleted < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(report);
        }
    }
}

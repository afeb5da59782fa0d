//! How long what was delivered is kept: finished deliveries go with their journal when they are old, bodies with their
//! last delivery, and test attempts sooner.

use tokio_util::sync::CancellationToken;

use super::sql;
use crate::kernel::batches::{BATCH, delete_each, delete_in_batches};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError, Tx};

/// What is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cutoffs {
    /// Finished deliveries that were made before then.
    pub(crate) deliveries: UnixMs,
    /// Test attempts that were made before then.
    pub(crate) tests: UnixMs,
}

/// What was pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Pruned {
    /// Deliveries.
    pub(crate) deliveries: u64,
    /// Test attempts.
    pub(crate) tests: u64,
}

/// Deletes what is old, until nothing of that is left or `stop` is cancelled. What waits or is being sent stays, however
/// old it is.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn run_once(db: &Db, cutoffs: Cutoffs, stop: &CancellationToken) -> Result<Pruned, StoreError> {
    let deliveries = delete_deliveries(db, cutoffs.deliveries, stop).await?;
    let before = cutoffs.tests;
    let tests = delete_in_batches(db, stop, move |tx, limit| sql::keep::delete_tests(tx, before, limit)).await?;
    Ok(Pruned { deliveries, tests })
}

/// Goes through the deliveries in the order in which they were made, and stops at the first batch that has no old one.
async fn delete_deliveries(db: &Db, before: UnixMs, stop: &CancellationToken) -> Result<u64, StoreError> {
    let (mut deleted, mut after) = (0, 0);
    loop {
        let seen = db.read(move |tx: &Tx<'_>| sql::keep::oldest_deliveries(tx, after, BATCH)).await?;
        let Some(last) = seen.last() else { return Ok(deleted) };
        after = last.delivery;
        if !seen.iter().any(|one| one.created_at < before) {
            return Ok(deleted);
        }
        let is_old = |one: &sql::keep::Old| one.is_finished && one.created_at < before;
        let rows: Vec<i64> = seen.iter().filter(|one| is_old(one)).map(|one| one.delivery).collect();
        if rows.is_empty() {
            continue;
        }
        // One by one: each goes with its journal and perhaps its body, which together may be half a megabyte. A person may
        // have asked for one since it was looked at.
        deleted += delete_each(db, stop, rows, |tx, row| with_body(tx, sql::keep::delete_finished(tx, row)?)).await?;
        if stop.is_cancelled() {
            return Ok(deleted);
        }
    }
}

/// Deletes the body of a delivery that was deleted, if no other has it; whether there was such a delivery.
pub(super) fn with_body(tx: &Tx<'_>, message: Option<i64>) -> Result<bool, StoreError> {
    let Some(message) = message else { return Ok(false) };
    sql::keep::delete_message(tx, message)?;
    Ok(true)
}

//! Keeps the table from growing for ever: events that were published long ago, and idempotency keys of yesterday.
//!
//! The walk goes by id and is read outside the writer; it ends where everything is young, so that its cost is what is
//! deleted and what is kept, not what is there. Failed events are never deleted: somebody is to look at them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::post::KEY_LIVES_MS;
use super::sql;
use super::sql::prune::Age;
use crate::kernel::batches::{delete_each, delete_in_batches};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError, Tx};

/// Rows that are looked at by one read.
const PAGE: i64 = 2_000;

/// What a pass deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    /// Events that were published longer ago than they are kept.
    pub(crate) events: u64,
    /// Such events that were left, since something of theirs is unfinished.
    pub(crate) kept: u64,
    /// Idempotency keys that were over.
    pub(crate) keys: u64,
}

/// Deletes events that were published longer than `keep` ago, but those that are `in_use` (asked by row, in the
/// transaction that would delete it), and idempotency keys that are over; in batches, until `stop` is cancelled.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn run_once<F>(
    db: &Db,
    keep: Duration,
    in_use: F,
    stop: &CancellationToken,
) -> Result<Report, StoreError>
where
    F: Fn(&Tx<'_>, i64) -> Result<bool, StoreError> + Clone + Send + 'static,
{
    let delete_keys = |tx: &Tx<'_>, limit| sql::prune::delete_keys(tx, tx.now().saturating_sub(KEY_LIVES_MS), limit);
    let mut report = Report { keys: delete_in_batches(db, stop, delete_keys).await?, ..Report::default() };
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let delete = move |tx: &Tx<'_>, row| Ok(!in_use(tx, row)? && sql::prune::delete_published(tx, row)?);
    let mut behind = i64::MIN;
    while !stop.is_cancelled() {
        let now = db.clock().now();
        let page = db.read(move |tx: &Tx<'_>| sql::prune::ages(tx, behind, PAGE)).await?;
        let Some(last) = page.last() else { break };
        behind = last.row;
        let limit = Limit { now, until: now.saturating_sub(keep_ms) };
        let old: Vec<i64> = page.iter().filter(|age| limit.is_over(age)).map(|age| age.row).collect();
        let is_end = old.is_empty() && page.iter().all(|age| age.created_at > limit.until);
        let found = old.len() as u64;
        let deleted = delete_each(db, stop, old, delete.clone()).await?;
        report.events += deleted;
        if stop.is_cancelled() {
            break;
        }
        report.kept += found - deleted;
        if is_end {
            break;
        }
    }
    Ok(report)
}

/// What is old, as of an instant.
struct Limit {
    now: UnixMs,
    until: UnixMs,
}

impl Limit {
    fn is_over(&self, age: &Age) -> bool {
        let Some(published_at) = age.published_at.filter(|_| !age.is_failed) else { return false };
        // A clock that was wrong may have published it in a year to come; then it is as old as its row.
        let since = if published_at > self.now { age.created_at } else { published_at };
        since <= self.until
    }
}

//! What follows from an endpoint's end, in batches: what waits for a disabled one is skipped or cancelled, and a deleted
//! one goes with all it had. Also secrets that sign no more, and times that were written under another clock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::delivery::LONGEST_WAIT_MS;
use super::prune::delete_rows;
use super::sql;
use crate::kernel::store::{Db, StoreError, Tx};

/// Rows of one write.
const BATCH: usize = 500;
/// Between two writes, in real time, so that others come between: see [`crate::kernel::batches`].
const PAUSE: Duration = Duration::from_millis(20);

/// What was swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Swept {
    /// Deliveries to endpoints that are gone.
    pub(crate) cancelled: usize,
    /// Deliveries to endpoints that are disabled otherwise.
    pub(crate) skipped: usize,
    /// What a person had asked for of endpoints that are disabled since.
    pub(crate) requests: usize,
    /// Deliveries of deleted endpoints.
    pub(crate) purged: usize,
    /// Deleted endpoints of which nothing is left.
    pub(crate) endpoints: usize,
    /// Secrets that sign no more.
    pub(crate) secrets: usize,
    /// Deliveries that waited for a time further off than any pause is.
    pub(crate) pulled_in: usize,
}

impl Swept {
    fn total(&self) -> usize {
        let Self { cancelled, skipped, requests, purged, endpoints, secrets, pulled_in } = self;
        cancelled + skipped + requests + purged + endpoints + secrets + pulled_in
    }

    fn add(&mut self, other: &Self) {
        self.cancelled += other.cancelled;
        self.skipped += other.skipped;
        self.requests += other.requests;
        self.purged += other.purged;
        self.endpoints += other.endpoints;
        self.secrets += other.secrets;
        self.pulled_in += other.pulled_in;
    }
}

/// Sweeps until nothing is left to sweep or `stop` is cancelled. What it costs when there is nothing grows with the number
/// of endpoints only, and nothing is written then.
///
/// # Errors
/// The store's; what was swept before stays swept.
pub(crate) async fn run_once(db: &Db, stop: &CancellationToken) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    loop {
        if !db.read(has_work).await? {
            return Ok(swept);
        }
        let batch = db.settle(|tx: &Tx<'_>| sweep(tx)).await?;
        swept.add(&batch);
        // What is being sent to a deleted endpoint is waited for: the next pass finds it.
        if batch.total() == 0 || stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
            return Ok(swept);
        }
    }
}

fn has_work(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(sql::sweep::is_any_deleted(tx)?
        || !sql::sweep::disabled_with_work(tx, 1)?.is_empty()
        || sql::sweep::is_any_secret_expired(tx)?
        || !sql::sweep::due_too_late(tx, latest(tx), 1)?.is_empty())
}

/// Does one batch of everything there is to sweep.
///
/// # Errors
/// The store's.
pub(crate) fn sweep(tx: &Tx<'_>) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    let mut left = BATCH;
    for one in sql::sweep::disabled_with_work(tx, BATCH)? {
        swept.requests += sql::sweep::drop_requests(tx, one.endpoint, left)?;
        let settled = match one.is_gone {
            true => {
                let cancelled = sql::sweep::cancel(tx, one.endpoint, left)?;
                swept.cancelled += cancelled;
                cancelled
            }
            false => {
                let skipped = sql::sweep::skip(tx, one.endpoint, left)?;
                swept.skipped += skipped;
                skipped
            }
        };
        left -= settled.min(left);
        if left == 0 {
            return Ok(swept);
        }
    }
    purge(tx, &mut swept, left)?;
    swept.secrets = sql::secrets::delete_expired(tx, left)?;
    for endpoint in sql::sweep::due_too_late(tx, latest(tx), BATCH)? {
        swept.pulled_in += sql::sweep::pull_in(tx, endpoint, latest(tx), left)?;
    }
    if swept.pulled_in > 0 {
        tx.wake(super::DELIVERIES);
    }
    Ok(swept)
}

/// Up to `left` deliveries of deleted endpoints go, and with the last ones the endpoint itself. What is being sent to one
/// stays until its attempt has ended.
fn purge(tx: &Tx<'_>, swept: &mut Swept, left: usize) -> Result<(), StoreError> {
    let mut left = left;
    for endpoint in sql::sweep::deleted(tx, BATCH)? {
        let rows = sql::sweep::deliveries_at_rest(tx, endpoint, left)?;
        let purged = delete_rows(tx, &rows)?;
        swept.purged += purged;
        left -= purged.min(left);
        if left == 0 {
            return Ok(());
        }
        swept.endpoints += sql::sweep::delete_endpoint(tx, endpoint)?;
    }
    Ok(())
}

fn latest(tx: &Tx<'_>) -> i64 {
    tx.now().saturating_add(LONGEST_WAIT_MS)
}

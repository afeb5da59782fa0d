//! What follows from an endpoint's end, in batches: what waits for a disabled one is skipped or cancelled, and a deleted
//! one goes with all it had. Also secrets that sign no more, and times that were written under another clock.

use tokio_util::sync::CancellationToken;

use super::delivery::LONGEST_WAIT_MS;
use super::prune::with_body;
use super::sql;
use crate::kernel::batches::{BATCH, Share, pause};
use crate::kernel::store::{Db, StoreError, Tx};

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
    /// Test attempts of deleted endpoints.
    pub(crate) tests: usize,
    /// Deleted endpoints of which nothing is left.
    pub(crate) endpoints: usize,
    /// Secrets that sign no more.
    pub(crate) secrets: usize,
    /// Deliveries that waited for a time further off than any pause is.
    pub(crate) pulled_in: usize,
}

impl Swept {
    fn total(&self) -> usize {
        let Self { cancelled, skipped, requests, purged, tests, endpoints, secrets, pulled_in } = self;
        cancelled + skipped + requests + purged + tests + endpoints + secrets + pulled_in
    }

    /// How many rows more the write may have.
    fn left(&self) -> usize {
        BATCH.saturating_sub(self.total())
    }

    fn add(&mut self, other: &Self) {
        self.cancelled += other.cancelled;
        self.skipped += other.skipped;
        self.requests += other.requests;
        self.purged += other.purged;
        self.tests += other.tests;
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
        if batch.total() == 0 || pause(stop).await.is_none() {
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

/// Does one batch of everything there is to sweep: up to [`BATCH`] rows in all, and of what is deleted no more than a
/// [`Share`] has time for.
///
/// # Errors
/// The store's.
pub(crate) fn sweep(tx: &Tx<'_>) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    close(tx, &mut swept)?;
    pull_in(tx, &mut swept)?;
    let left = swept.left();
    if left > 0 {
        swept.secrets = sql::secrets::delete_expired(tx, left)?;
    }
    purge(tx, &mut swept, Share::begin())?;
    Ok(swept)
}

/// What waits for disabled endpoints, or was asked for of them, is closed.
fn close(tx: &Tx<'_>, swept: &mut Swept) -> Result<(), StoreError> {
    for one in sql::sweep::disabled_with_work(tx, BATCH)? {
        if swept.left() == 0 {
            return Ok(());
        }
        swept.requests += sql::sweep::drop_requests(tx, one.endpoint, swept.left())?;
        match one.is_gone {
            true => swept.cancelled += sql::sweep::cancel(tx, one.endpoint, swept.left())?,
            false => swept.skipped += sql::sweep::skip(tx, one.endpoint, swept.left())?,
        }
    }
    Ok(())
}

fn pull_in(tx: &Tx<'_>, swept: &mut Swept) -> Result<(), StoreError> {
    for endpoint in sql::sweep::due_too_late(tx, latest(tx), BATCH)? {
        swept.pulled_in += sql::sweep::pull_in(tx, endpoint, latest(tx), swept.left())?;
    }
    if swept.pulled_in > 0 {
        tx.wake(super::DELIVERIES);
    }
    Ok(())
}

/// Deliveries and test attempts of deleted endpoints go, and with the last ones the endpoint itself. What is being sent to
/// one stays until its attempt has ended.
fn purge(tx: &Tx<'_>, swept: &mut Swept, time: Share) -> Result<(), StoreError> {
    for endpoint in sql::sweep::deleted(tx, BATCH)? {
        for delivery in sql::sweep::deliveries_at_rest(tx, endpoint, swept.left())? {
            swept.purged += usize::from(with_body(tx, sql::keep::delete_at_rest(tx, delivery)?)?);
            if time.is_over() {
                return Ok(());
            }
        }
        swept.tests += sql::keep::delete_tests_of(tx, endpoint, swept.left())?;
        if time.is_over() || swept.left() == 0 {
            return Ok(());
        }
        swept.endpoints += sql::sweep::delete_endpoint(tx, endpoint)?;
    }
    Ok(())
}

fn latest(tx: &Tx<'_>) -> i64 {
    tx.now().saturating_add(LONGEST_WAIT_MS)
}

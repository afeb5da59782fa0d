//! Takes up the runs that commands beside the server have asked for, and sees that each is answered.
//!
//! A request is taken, its run begun, and the two tied in one transaction: so a request is waiting, or has a run. A
//! request for a job that is running waits for its end, and keeps no other waiting. What an earlier process took and
//! did not end is answered as interrupted by the next one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::driver::Driver;
use super::{JOB_REQUESTED, find, sql};
use crate::kernel::store::{StoreError, Tx};

/// Requests that are looked at at one time; the others wait until one of these is answered.
const PAGE: i64 = 100;
/// Requests are looked for after this time even if nothing was heard; in real time, as a store that fails recovers.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a run is told that its process did not live to end.
const INTERRUPTED: &str = "the process that ran it ended first";
const UNKNOWN: &str = "there is no job of that name";

/// A request that waits.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: i64,
    pub(super) job: String,
}

/// Answers requests until `stop`, then lets the runs in hand end.
pub(super) async fn answer(driver: Arc<Driver>, stop: CancellationToken) {
    let db = driver.app().db().clone();
    let requested = db.subscribe(JOB_REQUESTED);
    let mut tasks = JoinSet::new();
    let mut in_hand = HashSet::new();
    let mut pause = FIRST_PAUSE;
    while !stop.is_cancelled() {
        // By reading: every foreign commit wakes this task, and most are no requests.
        let waiting = db.read(|tx| sql::waiting_requests(tx, PAGE)).await;
        let wait = match note(waiting, &mut pause) {
            None => pause,
            Some(waiting) => {
                for request in waiting.into_iter().filter(|request| in_hand.insert(request.id)) {
                    tasks.spawn(answer_one(Arc::clone(&driver), request, stop.clone()));
                }
                LONGEST_PAUSE
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            Some(ended) = tasks.join_next() => match ended {
                Ok(id) => drop(in_hand.remove(&id)),
                Err(error) => tracing::error!(%error, "a requested run ended abnormally"),
            },
            () = requested.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// What was read, or none after a failure, which is told unless one came before it.
fn note(waiting: Result<Vec<Request>, StoreError>, pause: &mut Duration) -> Option<Vec<Request>> {
    match waiting {
        Ok(waiting) => {
            *pause = FIRST_PAUSE;
            Some(waiting)
        }
        Err(error) => {
            if *pause == FIRST_PAUSE {
                tracing::error!(%error, "requested runs could not be looked for and are looked for again");
            }
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            None
        }
    }
}

async fn answer_one(driver: Arc<Driver>, request: Request, stop: CancellationToken) -> i64 {
    let Request { id, job } = request;
    if let Err(error) = run_requested(&driver, id, &job, &stop).await {
        tracing::error!(job, request.id = id, %error, "a requested run could not be answered");
        // It waits still, and is taken up again then; or it has a run, which the next start ends.
        stop.run_until_cancelled(tokio::time::sleep(LONGEST_PAUSE)).await;
    }
    id
}

async fn run_requested(driver: &Driver, id: i64, name: &str, stop: &CancellationToken) -> Result<(), StoreError> {
    let db = driver.app().db();
    let Some(job) = find(name) else {
        tracing::warn!(job = name, "a run of an unknown job was asked for");
        let name = name.to_owned();
        return db.settle(move |tx| close(tx, id, &name, "failed", UNKNOWN)).await;
    };
    let Some(mut past) = stop.run_until_cancelled(driver.past(job).lock()).await else { return Ok(()) };
    if stop.is_cancelled() {
        return Ok(());
    }
    let row = db.settle(move |tx| begin(tx, id, job.name)).await?;
    if row.is_some() {
        driver.run_recorded(job, &mut past, row).await?;
    }
    Ok(())
}

/// Takes a request and begins its run; `None` if it was taken already.
pub(super) fn begin(tx: &Tx<'_>, id: i64, job: &str) -> Result<Option<i64>, StoreError> {
    if sql::take_request(tx, id)? == 0 {
        return Ok(None);
    }
    let run = sql::begin(tx, job, None)?;
    if let Some(run) = run {
        sql::tie_request(tx, id, run)?;
    }
    Ok(run)
}

/// Answers a request without running anything.
fn close(tx: &Tx<'_>, id: i64, job: &str, outcome: &str, error: &str) -> Result<(), StoreError> {
    sql::take_request(tx, id)?;
    if let Some(run) = sql::begin(tx, job, None)? {
        sql::end(tx, run, outcome, None, Some(error))?;
        sql::tie_request(tx, id, run)?;
    }
    Ok(())
}

/// Ends the runs that an earlier process did not end, and answers the requests that it took without beginning one.
///
/// Relies on: single writer; whoever calls this holds the process lock, so nobody else is running anything.
pub(super) fn interrupt(tx: &Tx<'_>) -> Result<(), StoreError> {
    sql::end_running(tx, "interrupted", INTERRUPTED)?;
    for Request { id, job } in sql::unanswered_requests(tx)? {
        close(tx, id, &job, "interrupted", INTERRUPTED)?;
    }
    Ok(())
}

//! Runs the jobs: on their schedules, when they are woken, when they ask for it, and when a person does.
//!
//! A job runs once at a time. Who finds it running skips it if a clock or a commit sent them, since the run in hand does
//! the same work; a person waits for its end and then gets a run of their own, whose outcome they are told.
//!
//! A row says how the last run ended: so a success is recorded, too, when the last row is of one that did not succeed.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::timing::Timing;
use super::{Cause, JOBS, Job, Recorded, Schedule, Zone, find, last_runs, requests, sql};
use crate::app::{Again, App, Pass};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The pause after a run that was skipped because one was in hand; on the injected clock.
const BUSY_PAUSE_MS: i64 = 250;

/// Why a run that was asked for did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// There is no such job.
    #[error("there is no job of that name; `pillarbox jobs list` shows them")]
    Unknown,
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a run ended.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Settled {
    pub(crate) job: &'static str,
    /// `ok`, `failed`, or `skipped` when the job was busy.
    pub(crate) outcome: &'static str,
    pub(crate) counts: Option<serde_json::Value>,
    pub(crate) error: Option<String>,
}

/// What is remembered of a job from run to run.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// How the last run failed: a fault that lasts is told when it comes and when it goes, not at every attempt.
    failure: Option<String>,
    /// Whether the job's last row is of a run that did not succeed.
    is_shown_failed: bool,
}

/// The running jobs of one process.
pub(crate) struct Driver {
    app: Arc<App>,
    /// One per job, held while it runs. An optimisation; truth rests on the claims.
    pasts: HashMap<&'static str, Mutex<Past>>,
}

impl Driver {
    pub(crate) fn new(app: Arc<App>) -> Arc<Self> {
        Arc::new(Self { app, pasts: JOBS.iter().map(|job| (job.name, Mutex::default())).collect() })
    }

    pub(super) fn app(&self) -> &App {
        &self.app
    }

    pub(super) fn past(&self, job: &Job) -> &Mutex<Past> {
        self.pasts.get(job.name).expect("every job of the list has one")
    }

    /// Runs every job until `stop`, then lets the passes in hand end.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        if let Err(error) = self.take_over().await {
            tracing::error!(%error, "the runs of an earlier process could not be marked as interrupted");
        }
        let mut tasks = JoinSet::new();
        for job in JOBS {
            tasks.spawn(Arc::clone(&self).drive(job, stop.clone()));
        }
        tasks.spawn(requests::answer(Arc::clone(&self), stop));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a job's task ended abnormally");
            }
        }
    }

    /// Ends the runs that an earlier process did not, and learns how each job's last one ended.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn take_over(&self) -> Result<(), StoreError> {
        self.app.db().settle(requests::interrupt).await?;
        for (job, last) in self.app.db().read(last_runs).await? {
            let is_shown_failed = last.is_some_and(|run| matches!(run.outcome.as_str(), "failed" | "interrupted"));
            self.past(job).lock().await.is_shown_failed = is_shown_failed;
        }
        Ok(())
    }

    /// Runs a job because a person asked for it: after the run in hand, should there be one.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) async fn run_now(&self, name: &str) -> Result<Settled, RunError> {
        let job = find(name).ok_or(RunError::Unknown)?;
        let mut past = self.past(job).lock().await;
        let row = self.app.db().settle(|tx| sql::begin(tx, job.name, None)).await?;
        Ok(self.run_recorded(job, &mut past, row).await?.settled)
    }

    async fn drive(self: Arc<Self>, job: &'static Job, stop: CancellationToken) {
        let clock = self.app.db().clock().clone();
        let wakes: Vec<Arc<Notify>> = job.wakes.iter().map(|topic| self.app.db().subscribe(*topic)).collect();
        // What was left by an earlier process is looked for at once.
        let first = (job.at_start || !job.wakes.is_empty()).then(|| clock.now());
        let mut timing = Timing::new(self.schedule(job), first, clock.now());
        let mut is_recording = true;
        loop {
            let woken = tokio::select! {
                // In this order: a pass that always finds more to do must not begin anew after the stop.
                biased;
                () = stop.cancelled() => return,
                () = any(&wakes) => Some(Cause::Wake),
                () = clock.nap_until(timing.due()) => None,
            };
            let Some(cause) = timing.look(clock.now()).or(woken) else { continue };
            match self.run_by_itself(job, cause).await {
                Ok(Run { again: Some(again), .. }) => timing.ended(again),
                Ok(Run { again: None, .. }) => timing.failed(),
                Err(error) => {
                    // Told once: the store says for itself when it works again.
                    if std::mem::take(&mut is_recording) {
                        tracing::error!(job = job.name, %error, "a run of a job could not be recorded");
                    }
                    timing.failed();
                    continue;
                }
            }
            is_recording = true;
        }
    }

    fn schedule(&self, job: &Job) -> Option<Schedule> {
        let zone = match job.zone {
            Zone::Utc => chrono_tz::UTC,
            Zone::Configured => self.app.time_zone(),
        };
        Some(Schedule::parse(job.cron?, zone).expect("a test parses every schedule of the list"))
    }

    /// Runs a job that is due or was woken, unless it is running.
    async fn run_by_itself(&self, job: &'static Job, cause: Cause) -> Result<Run, StoreError> {
        let db = self.app.db();
        let scheduled_for = match cause {
            Cause::Schedule(at) if job.recorded == Recorded::Always => Some(at),
            Cause::Schedule(_) | Cause::Wake => None,
        };
        let Ok(mut past) = self.past(job).try_lock() else {
            count(job, "skipped");
            if scheduled_for.is_some() {
                db.settle(move |tx| record(tx, job, scheduled_for, &settled(job, "skipped"))).await?;
            }
            // Whatever the run in hand asks to be followed by, it tells its own caller: so look again soon.
            return Ok(Run::skipped(job, Again::At(db.clock().now().saturating_add(BUSY_PAUSE_MS))));
        };
        let mut row = None;
        if scheduled_for.is_some() {
            row = db.settle(move |tx| sql::begin(tx, job.name, scheduled_for)).await?;
            if row.is_none() {
                return Ok(Run::skipped(job, Again::Later));
            }
        }
        self.run_recorded(job, &mut past, row).await
    }

    /// One pass of a job that is ours to run, and the end of its `row`; a notable one without a row is given one.
    pub(super) async fn run_recorded(
        &self,
        job: &'static Job,
        past: &mut Past,
        row: Option<i64>,
    ) -> Result<Run, StoreError> {
        let run = self.run_pass(job).await;
        let is_notable = past.remember(&run.settled);
        if row.is_some() || is_notable {
            let settled = run.settled.clone();
            let end = move |tx: &Tx<'_>| match row {
                Some(id) => end(tx, id, &settled),
                None => record(tx, job, None, &settled),
            };
            self.app.db().settle(end).await?;
            past.is_shown_failed = run.again.is_none();
        }
        Ok(run)
    }

    /// One pass. A panic is a failed run.
    async fn run_pass(&self, job: &'static Job) -> Run {
        let started = std::time::Instant::now();
        let pass = std::panic::AssertUnwindSafe((job.run)(&self.app)).catch_unwind().await;
        let run = match pass.unwrap_or_else(|_| Err(anyhow::anyhow!("the job panicked"))) {
            Ok(Pass { counts, again }) => {
                Run { settled: Settled { counts: Some(counts), ..settled(job, "ok") }, again: Some(again) }
            }
            Err(error) => {
                Run { settled: Settled { error: Some(format!("{error:#}")), ..settled(job, "failed") }, again: None }
            }
        };
        count(job, run.settled.outcome);
        metrics::histogram!("pillarbox_job_seconds", "job" => job.name).record(started.elapsed().as_secs_f64());
        run
    }
}

impl Past {
    /// Takes note of how a run ended and tells what is new of it. Whether it is to have a row even if nobody asked.
    fn remember(&mut self, run: &Settled) -> bool {
        let before = std::mem::replace(&mut self.failure, run.error.clone());
        match &run.error {
            None => {
                if before.is_some() {
                    tracing::info!(job = run.job, "a job that failed works again");
                }
                self.is_shown_failed
            }
            Some(error) if before.as_ref() == Some(error) => {
                tracing::debug!(job = run.job, error, "a job failed again");
                false
            }
            Some(error) => {
                tracing::error!(job = run.job, error, "a job failed and will be tried again");
                true
            }
        }
    }
}

/// A run, as the driver goes on from it.
pub(super) struct Run {
    settled: Settled,
    /// `None` after a failure.
    again: Option<Again>,
}

impl Run {
    fn skipped(job: &'static Job, again: Again) -> Self {
        Self { settled: settled(job, "skipped"), again: Some(again) }
    }
}

/// Leaves the row of a run that is over.
fn record(tx: &Tx<'_>, job: &Job, scheduled_for: Option<UnixMs>, settled: &Settled) -> Result<(), StoreError> {
    match sql::begin(tx, job.name, scheduled_for)? {
        Some(id) => end(tx, id, settled),
        None => Ok(()),
    }
}

fn end(tx: &Tx<'_>, id: i64, settled: &Settled) -> Result<(), StoreError> {
    let counts = settled.counts.as_ref().map(ToString::to_string);
    sql::end(tx, id, settled.outcome, counts.as_deref(), settled.error.as_deref())
}

fn settled(job: &'static Job, outcome: &'static str) -> Settled {
    Settled { job: job.name, outcome, counts: None, error: None }
}

fn count(job: &Job, outcome: &'static str) {
    metrics::counter!("pillarbox_job_runs_total", "job" => job.name, "outcome" => outcome).increment(1);
}

/// Returns when one of the signals has been set; never without signals.
async fn any(signals: &[Arc<Notify>]) {
    if signals.is_empty() {
        return std::future::pending().await;
    }
    select_all(signals.iter().map(|signal| Box::pin(signal.notified()))).await;
}

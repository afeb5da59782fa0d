//! Runs the jobs: on their schedules, when they are woken, when they ask for it, and when a person does.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{JOB_REQUESTED, JOBS, Job, Recorded, Schedule, Zone, find, sql};
use crate::app::{Again, App, Pass};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::StoreError;

/// The pause after a failed run, doubled up to the longest; on the injected clock.
const FIRST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 30_000;
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

/// Why a run is made.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Schedule(UnixMs),
    Wake,
    Person,
}

/// The running jobs of one process.
pub(crate) struct Driver {
    app: Arc<App>,
    /// One per job: a busy job is skipped. An optimisation; truth rests on the claims. In it, how the last run failed:
    /// a fault that lasts is told when it comes and when it goes, not at every attempt.
    busy: HashMap<&'static str, Mutex<Option<String>>>,
}

impl Driver {
    pub(crate) fn new(app: Arc<App>) -> Arc<Self> {
        Arc::new(Self { app, busy: JOBS.iter().map(|job| (job.name, Mutex::new(None))).collect() })
    }

    /// Runs every job until `stop`, then lets the passes in hand end.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        if let Err(error) = self.app.db().settle(sql::interrupt_running).await {
            tracing::error!(%error, "the runs of an earlier process could not be marked as interrupted");
        }
        let mut tasks = JoinSet::new();
        for job in JOBS {
            tasks.spawn(Arc::clone(&self).drive(job, stop.clone()));
        }
        tasks.spawn(Arc::clone(&self).answer_requests(stop));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a job's task ended abnormally");
            }
        }
    }

    /// Runs a job now because a person asked for it.
    pub(crate) async fn run_now(&self, name: &str) -> Result<Settled, RunError> {
        let job = find(name).ok_or(RunError::Unknown)?;
        Ok(self.record(job, Cause::Person).await?.settled)
    }

    async fn drive(self: Arc<Self>, job: &'static Job, stop: CancellationToken) {
        let clock = self.app.db().clock().clone();
        let wakes: Vec<Arc<Notify>> = job.wakes.iter().map(|topic| self.app.db().subscribe(*topic)).collect();
        let schedule = self.schedule(job);
        let next = |after: UnixMs| schedule.as_ref().and_then(|schedule| schedule.next_after(after));
        let mut scheduled = next(clock.now());
        // What was left by an earlier process is looked for at once.
        let mut again = (!job.wakes.is_empty()).then(|| clock.now());
        let mut pause = FIRST_PAUSE_MS;
        loop {
            let due = [scheduled, again].into_iter().flatten().min().unwrap_or(UnixMs::MAX);
            tokio::select! {
                // In this order: a pass that always finds more to do must not begin anew after the stop.
                biased;
                () = stop.cancelled() => return,
                () = any(&wakes) => {}
                () = clock.sleep_until(due) => {}
            }
            let now = clock.now();
            let cause = match scheduled.filter(|at| *at <= now) {
                Some(at) => Cause::Schedule(at),
                None => Cause::Wake,
            };
            if matches!(cause, Cause::Schedule(_)) {
                scheduled = next(now);
            }
            let Ok(Run { again: Some(wanted), .. }) = self.record(job, cause).await else {
                again = Some(now.saturating_add(pause));
                pause = (pause * 2).min(LONGEST_PAUSE_MS);
                continue;
            };
            pause = FIRST_PAUSE_MS;
            again = match wanted {
                Again::Later => None,
                Again::Now => Some(now),
                Again::At(at) => Some(at),
            };
        }
    }

    fn schedule(&self, job: &Job) -> Option<Schedule> {
        let zone = match job.zone {
            Zone::Utc => chrono_tz::UTC,
            Zone::Configured => self.app.time_zone(),
        };
        Some(Schedule::parse(job.cron?, zone).expect("a test parses every schedule of the list"))
    }

    /// Runs a job and leaves the row it is owed.
    async fn record(&self, job: &'static Job, cause: Cause) -> Result<Run, StoreError> {
        let db = self.app.db();
        let scheduled_for = match cause {
            Cause::Schedule(at) if job.recorded == Recorded::Always => Some(at),
            _ => None,
        };
        let is_owed = scheduled_for.is_some() || matches!(cause, Cause::Person);
        let mut row = None;
        if is_owed {
            row = db.settle(move |tx| sql::begin(tx, job.name, scheduled_for)).await?;
            if row.is_none() {
                return Ok(Run::of(settled(job, "skipped")));
            }
        }
        let run = self.run_one(job).await;
        if row.is_none() && run.failure == Failure::New {
            row = db.settle(move |tx| sql::begin(tx, job.name, None)).await?;
        }
        if let Some(id) = row {
            let settled = run.settled.clone();
            let counts = settled.counts.as_ref().map(ToString::to_string);
            let end = move |tx: &crate::kernel::store::Tx<'_>| {
                sql::end(tx, id, settled.outcome, counts.as_deref(), settled.error.as_deref())
            };
            db.settle(end).await?;
        }
        Ok(Run { row, ..run })
    }

    /// One pass, unless one is under way. A panic is a failed run.
    async fn run_one(&self, job: &'static Job) -> Run {
        let Some(mut failing) = self.busy.get(job.name).and_then(|lock| lock.try_lock().ok()) else {
            metrics::counter!("pillarbox_job_runs_total", "job" => job.name, "outcome" => "skipped").increment(1);
            // Whatever the run in hand asks to be followed by, it tells its own caller: so look again soon.
            let again = Some(Again::At(self.app.db().clock().now().saturating_add(BUSY_PAUSE_MS)));
            return Run { again, ..Run::of(settled(job, "skipped")) };
        };
        let started = std::time::Instant::now();
        let pass = std::panic::AssertUnwindSafe((job.run)(&self.app)).catch_unwind().await;
        let pass = pass.unwrap_or_else(|_| Err(anyhow::anyhow!("the job panicked")));
        let run = match pass {
            Ok(Pass { counts, again }) => {
                if failing.take().is_some() {
                    tracing::info!(job = job.name, "a job that failed works again");
                }
                Run { again: Some(again), ..Run::of(Settled { counts: Some(counts), ..settled(job, "ok") }) }
            }
            Err(error) => {
                let error = format!("{error:#}");
                let failure = if failing.as_ref() == Some(&error) { Failure::Repeated } else { Failure::New };
                match failure {
                    Failure::New => tracing::error!(job = job.name, error, "a job failed and will be tried again"),
                    _ => tracing::debug!(job = job.name, error, "a job failed again"),
                }
                *failing = Some(error.clone());
                let settled = Settled { error: Some(error), ..settled(job, "failed") };
                Run { again: None, failure, ..Run::of(settled) }
            }
        };
        let outcome = run.settled.outcome;
        metrics::counter!("pillarbox_job_runs_total", "job" => job.name, "outcome" => outcome).increment(1);
        metrics::histogram!("pillarbox_job_seconds", "job" => job.name).record(started.elapsed().as_secs_f64());
        run
    }

    /// Takes up the runs that commands beside the server have asked for.
    async fn answer_requests(self: Arc<Self>, stop: CancellationToken) {
        let requested = self.app.db().subscribe(JOB_REQUESTED);
        loop {
            match self.answer_one().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "a requested run could not be answered"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = requested.notified() => {}
            }
        }
    }

    async fn answer_one(&self) -> Result<bool, StoreError> {
        // Looked for by reading first: every foreign commit wakes this task, and most are no requests.
        let db = self.app.db();
        if !db.read(sql::has_request).await? {
            return Ok(false);
        }
        let Some((request, name)) = db.settle(sql::take_request).await? else { return Ok(false) };
        let Some(job) = find(&name) else {
            tracing::warn!(job = name, "a run of an unknown job was asked for");
            return Ok(true);
        };
        if let Some(run) = self.record(job, Cause::Person).await?.row {
            db.settle(move |tx| sql::answer_request(tx, request, run)).await?;
        }
        Ok(true)
    }
}

/// A run, as the driver goes on from it.
struct Run {
    settled: Settled,
    /// `None` after a failure.
    again: Option<Again>,
    row: Option<i64>,
    failure: Failure,
}

/// How a run failed, seen from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    New,
    /// In the same way.
    Repeated,
}

impl Run {
    fn of(settled: Settled) -> Self {
        Self { settled, again: Some(Again::Later), row: None, failure: Failure::None }
    }
}

fn settled(job: &'static Job, outcome: &'static str) -> Settled {
    Settled { job: job.name, outcome, counts: None, error: None }
}

/// Returns when one of the signals has been set; never without signals.
async fn any(signals: &[Arc<Notify>]) {
    if signals.is_empty() {
        return std::future::pending().await;
    }
    select_all(signals.iter().map(|signal| Box::pin(signal.notified()))).await;
}

//! `pillarbox jobs`: what runs by itself, and running one of it now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono_tz::Tz;
use clap::Args;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::{JobsVerb, Location, Overrides, Printed, job_name};
use super::print::{Printer, Row, note, or_dash};
use super::{Exit, beside};
use crate::config::Config;
use crate::edge::host::assemble;
use crate::edge::jobs::{Driver, Job, RunRow, Schedule, Zone, find, last_runs, request, requested_run};
use crate::edge::log;
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{Db, OpenError};

/// How often the server's answer is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(75);

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The job's name, as `jobs list` shows it
    #[arg(value_parser = job_name())]
    name: String,
    /// How many seconds the server's answer is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    printed: Printed,
    #[command(flatten)]
    overrides: Overrides,
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: JobsVerb) -> anyhow::Result<Exit> {
    match verb {
        JobsVerb::List { printed, overrides } => {
            let config = Config::load(location.sources(&overrides.set))?;
            let db = beside::open(&config)?;
            let listed = list(&db, config.jobs.time_zone, printed).await;
            db.close().await;
            listed
        }
        JobsVerb::Run(args) => {
            let config = Config::load(location.sources(&args.overrides.set))?;
            run_job(&config, args).await
        }
    }
}

/// A job as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobBody {
    name: &'static str,
    schedule: Option<&'static str>,
    zone: &'static str,
    why: &'static str,
    next_at: Option<String>,
    last_run: Option<RunRow>,
}

impl JobBody {
    fn new(job: &Job, zone: Tz, now: UnixMs, last_run: Option<RunRow>) -> Self {
        let zone = match job.zone {
            Zone::Utc => Tz::UTC,
            Zone::Configured => zone,
        };
        let schedule = job.cron.and_then(|text| Schedule::parse(text, zone).ok());
        let next_at = schedule.and_then(|schedule| schedule.next_after(now)).map(rfc3339);
        Self { name: job.name, schedule: job.cron, zone: zone.name(), why: job.why, next_at, last_run }
    }
}

impl Row for JobBody {
    const HEADER: &'static [&'static str] =
        &["NAME", "SCHEDULE", "ZONE", "NEXT", "LAST RECORDED RUN", "OUTCOME", "WHY"];

    fn cells(&self) -> Vec<String> {
        let last = self.last_run.as_ref();
        vec![
            self.name.to_owned(),
            self.schedule.unwrap_or("on wake").to_owned(),
            self.zone.to_owned(),
            or_dash(self.next_at.as_deref()),
            or_dash(last.map(|run| run.started_at.as_str())),
            or_dash(last.map(|run| run.outcome.as_str())),
            self.why.to_owned(),
        ]
    }
}

async fn list(db: &Db, zone: Tz, printed: Printed) -> anyhow::Result<Exit> {
    let now = db.clock().now();
    let runs = db.read(last_runs).await?;
    let jobs: Vec<JobBody> = runs.into_iter().map(|(job, last)| JobBody::new(job, zone, now, last)).collect();
    Printer::stdout(printed).list(&jobs, "there are no jobs")?;
    Ok(Exit::Ok)
}

/// How a run that was asked for ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RanBody {
    job: String,
    outcome: String,
    counts: Option<serde_json::Value>,
    error: Option<String>,
}

async fn run_job(config: &Config, args: RunArgs) -> anyhow::Result<Exit> {
    let job = find(&args.name).expect("clap has checked the name against the same list");
    // A guest makes no database and migrates none, so a wrong directory is refused before one is made there.
    beside::open(config)?.close().await;
    let ran = match beside::take(config, "jobs run") {
        Ok(db) => Some(run_here(config, db, job).await?),
        Err(OpenError::Held { .. }) => ask(config, job, Duration::from_secs(args.timeout)).await?,
        Err(error) => return Err(error.into()),
    };
    let Some(ran) = ran else { return Ok(Exit::Failure) };
    let mut text = format!("{} {}", ran.job, ran.outcome);
    for detail in [ran.counts.as_ref().map(ToString::to_string), ran.error.clone()].into_iter().flatten() {
        text.push_str(": ");
        text.push_str(&detail);
    }
    Printer::stdout(args.printed).one(&ran, &text)?;
    Ok(if ran.outcome == "ok" { Exit::Ok } else { Exit::Failure })
}

/// Runs the job in this process, which holds the directory meanwhile.
async fn run_here(config: &Config, db: Db, job: &'static Job) -> anyhow::Result<RanBody> {
    log::init(&config.log)?;
    let app = Arc::new(assemble(config, db.clone(), CancellationToken::new()).await?);
    let driver = Driver::new(Arc::clone(&app));
    driver.take_over().await?;
    let settled = driver.run_now(job.name).await?;
    // What the pass has sent off is settled before the process ends.
    app.drain().await;
    db.close().await;
    let outcome = settled.outcome.to_owned();
    Ok(RanBody { job: settled.job.to_owned(), outcome, counts: settled.counts, error: settled.error })
}

/// Leaves a request for the process that holds the directory; `None` if it has not answered in time.
async fn ask(config: &Config, job: &'static Job, timeout: Duration) -> anyhow::Result<Option<RanBody>> {
    let db = beside::open(config)?;
    let id = request(&db, job).await?;
    // Real time: somebody waits at a terminal.
    let asked = Instant::now();
    let answer = loop {
        match requested_run(&db, id).await? {
            Some(run) => break Some(run),
            None if asked.elapsed() >= timeout => break None,
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    db.close().await;
    if answer.is_none() {
        let seconds = timeout.as_secs();
        note(&format!(
            "no answer within {seconds} s (--timeout); the request stays, and the process that holds the directory runs \
             {} when it can; `pillarbox jobs list` shows how it ended",
            job.name
        ));
    }
    let body = |run: RunRow| RanBody { job: run.job, outcome: run.outcome, counts: run.counts, error: run.error };
    Ok(answer.map(body))
}

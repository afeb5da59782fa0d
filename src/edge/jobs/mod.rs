//! Jobs: the one list of what runs by itself, and the driver that runs it.
//!
//! **What.** A job is a pass: no input, bounded, idempotent, answering what it did. The driver knows none of them. Each
//! runs one at a time (a mutex saves work; claims save truth). Timers: one task per job, which sleeps on the injected
//! clock until the schedule or the pass itself says, and is woken by commits.
//!
//! **States.** A run is running, then ok, failed or skipped; one that its process did not end is interrupted. A request
//! waits, or is taken and has its run.
//!
//! **Guarantees.**
//! - A wall clock set back stops no sweep: `src/edge/jobs/tests.rs::a_clock_set_back_stops_no_job`.
//! - Whoever asks for a run gets one, after the one in hand: `src/edge/jobs/tests.rs::a_person_waits_for_the_run_in_hand`.
//! - Every request is answered, also one for a job that there is not, or whose run was cut off:
//!   `src/edge/jobs/tests.rs::what_an_earlier_process_did_not_end_is_answered_as_interrupted`.
//! - What is listed is how the job's last run ended: `src/edge/jobs/tests.rs::a_success_after_a_failure_leaves_a_row`.
//!
//! **Windows.** Between the beginning of a recorded run and its end: the next start calls it interrupted. The work
//! itself is the pass's, and is found again by the next one.
//!
//! **Not here.** What the passes do. No parallel runs of one job, no queue of missed instants: a sweep catches up.

mod driver;
mod housekeeping;
mod requests;
mod schedule;
mod sql;
#[cfg(test)]
mod tests;
mod timing;

use futures_util::future::BoxFuture;

pub(crate) use driver::{Driver, RunError};
pub(crate) use schedule::{Schedule, Zone};

use crate::app::{App, Pass};
use crate::backend::BOT_EVENTS;
use crate::chat::inbox::UPDATES;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError, Tx, Wake};
use crate::leads::LEADS;
use crate::onboarding::broadcast::BROADCASTS;
use crate::onboarding::calls::BACKEND_CALLS;
use crate::outbox::OUTBOX_EVENTS;
use crate::webhooks::DELIVERIES;

/// A run was asked for by a command beside the server.
pub(crate) const JOB_REQUESTED: Wake = Wake("job-requested");

/// One job.
pub(crate) struct Job {
    /// Its name, on the command line and in `job_runs`.
    pub(crate) name: &'static str,
    /// Six-field cron text, with seconds; `None` for a job that only wakes and its own passes start.
    pub(crate) cron: Option<&'static str>,
    /// Whose wall clock the cron text means.
    pub(crate) zone: Zone,
    /// Why it exists.
    pub(crate) why: &'static str,
    /// What it is woken by.
    pub(crate) wakes: &'static [Wake],
    /// Whether it also runs once when the process starts. One that is woken always does.
    pub(crate) at_start: bool,
    /// Which runs leave a row in `job_runs`.
    pub(crate) recorded: Recorded,
    pub(crate) run: for<'a> fn(&'a App) -> BoxFuture<'a, anyhow::Result<Pass>>,
}

/// Which runs leave a row. Of any job those do that were asked for, that failed in another way than the run before, or
/// that are the first to succeed after one that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Also every scheduled one.
    Always,
    /// No others.
    WhenNotable,
}

/// What starts a run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// This instant of the schedule.
    Schedule(UnixMs),
    /// A commit, or the pass before.
    Wake,
}

/// Every job there is, by name.
pub(crate) const JOBS: &[Job] = &[
    Job {
        name: "backend-calls",
        cron: None,
        zone: Zone::Utc,
        why: "makes the calls that a remote backend is owed",
        wakes: &[BACKEND_CALLS],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.call_backend()),
    },
    Job {
        name: "bot-outbox-poll",
        cron: Some("0/10 * * * * *"),
        zone: Zone::Utc,
        why: "hands due bot events to the bot, in the order of each subject",
        wakes: &[BOT_EVENTS],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.poll_bot_outbox()),
    },
    Job {
        name: "broadcasts",
        cron: Some("0 * * * * *"),
        zone: Zone::Utc,
        why: "feeds running broadcasts to the send queue, a window at a time",
        wakes: &[BROADCASTS],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.run_broadcasts()),
    },
    Job {
        name: "digest",
        cron: Some("0 0 12-23 * * *"),
        zone: Zone::Configured,
        why: "sends leaders the numbers of their day, once a day",
        wakes: &[],
        at_start: true,
        recorded: Recorded::Always,
        run: |app| Box::pin(app.send_digests()),
    },
    Job {
        name: "housekeeping",
        cron: Some("0 30 3 * * *"),
        zone: Zone::Configured,
        why: "deletes runs, messages, calls and deliveries that ended long ago",
        wakes: &[],
        at_start: false,
        recorded: Recorded::Always,
        run: |app| Box::pin(housekeeping::run(app)),
    },
    Job {
        name: "lead-notifications",
        cron: Some("0 * * * * *"),
        zone: Zone::Utc,
        why: "tells the broker's chat of leads, each once",
        wakes: &[LEADS],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.notify_leads()),
    },
    Job {
        name: "ledger-prune",
        cron: Some("0 0 0 * * *"),
        zone: Zone::Configured,
        why: "deletes ledger marks that can no longer be needed",
        wakes: &[],
        at_start: false,
        recorded: Recorded::Always,
        run: |app| Box::pin(app.prune_ledger()),
    },
    Job {
        name: "outbox-prune",
        cron: Some("0 0 3 * * *"),
        zone: Zone::Configured,
        why: "deletes events that were published long ago, and idempotency keys that are over",
        wakes: &[],
        at_start: false,
        recorded: Recorded::Always,
        run: |app| Box::pin(app.prune_outbox()),
    },
    Job {
        name: "outbox-relay",
        cron: Some("0/5 * * * * *"),
        zone: Zone::Utc,
        why: "hands domain events to webhooks, communications and analytics",
        wakes: &[OUTBOX_EVENTS],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.relay_events()),
    },
    Job {
        name: "reminders",
        cron: Some("0 0 * * * *"),
        zone: Zone::Utc,
        why: "reminds whoever has been silent at a stage, once a stage",
        wakes: &[],
        at_start: false,
        recorded: Recorded::Always,
        run: |app| Box::pin(app.send_reminders()),
    },
    Job {
        name: "telegram-send",
        cron: None,
        zone: Zone::Utc,
        why: "sends queued Telegram messages within Telegram's limits",
        wakes: &[crate::chat::QUEUED],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.send_telegram()),
    },
    Job {
        name: "telegram-updates",
        cron: None,
        zone: Zone::Utc,
        why: "handles what people wrote and pressed, each chat in its order",
        wakes: &[UPDATES],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.handle_updates()),
    },
    Job {
        name: "webhooks-deliver",
        cron: Some("0/5 * * * * *"),
        zone: Zone::Utc,
        why: "sends webhooks, each until its endpoint has it or the schedule is exhausted",
        wakes: &[DELIVERIES],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.deliver_webhooks()),
    },
    Job {
        name: "webhooks-sweep",
        cron: Some("0/5 * * * * *"),
        zone: Zone::Utc,
        why: "closes deliveries of endpoints that were disabled and removes those of deleted ones, beside the sending",
        wakes: &[],
        at_start: false,
        recorded: Recorded::WhenNotable,
        run: |app| Box::pin(app.sweep_webhooks()),
    },
];

/// The job of that name.
pub(crate) fn find(name: &str) -> Option<&'static Job> {
    JOBS.iter().find(|job| job.name == name)
}

/// A row of `job_runs`, as people see it.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunRow {
    pub(crate) id: i64,
    pub(crate) job: String,
    pub(crate) scheduled_for: Option<String>,
    pub(crate) started_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) outcome: String,
    pub(crate) counts: Option<serde_json::Value>,
    pub(crate) error: Option<String>,
}

/// Every job with its last recorded run, in the order of the list.
///
/// # Errors
/// The store's.
pub(crate) fn last_runs(tx: &Tx<'_>) -> Result<Vec<(&'static Job, Option<RunRow>)>, StoreError> {
    JOBS.iter().map(|job| Ok((job, sql::find_last(tx, job.name)?))).collect()
}

/// Asks the server that holds the directory to run a job; the request's id.
///
/// # Errors
/// The store's.
pub(crate) async fn request(db: &Db, job: &'static Job) -> Result<i64, StoreError> {
    db.write(move |tx| {
        tx.wake(JOB_REQUESTED);
        sql::insert_request(tx, job.name)
    })
    .await
}

/// What came of a request: `None` while it waits or runs.
///
/// # Errors
/// The store's.
pub(crate) async fn requested_run(db: &Db, request_id: i64) -> Result<Option<RunRow>, StoreError> {
    db.read(move |tx| sql::find_requested_run(tx, request_id)).await
}

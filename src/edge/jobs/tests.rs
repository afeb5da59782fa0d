//! The driver on a real file with a clock that is moved: what it runs, what it records, and whom it answers.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Driver, JOBS, Schedule, find, request, requested_run};
use crate::app::{App, Parts};
use crate::config::Config;
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError};

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

struct World {
    dir: TempDir,
    db: Db,
    clock: Clock,
    driver: Arc<Driver>,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl World {
    async fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap(), NOON).await
    }

    async fn on(dir: TempDir, now: i64) -> Self {
        let settings = Settings::small();
        let clock = Clock::stopped_at(now);
        let db = Db::open(dir.path(), Role::Owner("test"), &settings, clock.clone(), vec![]).unwrap();
        let mut config = Config::default();
        config.jobs.time_zone = chrono_tz::UTC;
        let stop = CancellationToken::new();
        let parts = Parts {
            db: db.clone(),
            messenger: None,
            lead_messenger: None,
            remote: None,
            reader: None,
            stop: stop.clone(),
        };
        let driver = Driver::new(Arc::new(App::build(&config, parts).await.unwrap()));
        Self { dir, db, clock, driver, stop, running: None }
    }

    /// Runs the jobs, and returns once each has looked at the clock.
    async fn start(&mut self) {
        self.running = Some(tokio::spawn(Arc::clone(&self.driver).run(self.stop.clone())));
        // Answered by a task that is begun last.
        self.answered("ledger-prune").await;
    }

    async fn stop(self) -> TempDir {
        self.stop.cancel();
        if let Some(running) = self.running {
            running.await.unwrap();
        }
        self.db.close().await;
        self.dir
    }

    async fn restart(self) -> Self {
        let now = self.clock.now();
        Self::on(self.stop().await, now).await
    }

    async fn write(&self, sql: &'static str) {
        self.db.settle(move |tx| tx.execute(sql, []).map(|_| ())).await.unwrap();
    }

    /// The rows of a query, as text.
    async fn texts(&self, sql: &'static str) -> Vec<String> {
        let rows = self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await;
        rows.unwrap_or_else(|error: StoreError| panic!("{error}"))
    }

    /// Returns once a query of one row says `wanted`.
    async fn until(&self, sql: &'static str, wanted: &str) {
        let waiting = async {
            while self.texts(sql).await != [wanted] {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("{wanted}: {sql}"));
    }

    async fn ask(&self, job: &str) -> i64 {
        request(&self.db, find(job).unwrap()).await.unwrap()
    }

    /// Asks for a run; its outcome and error.
    async fn answered(&self, job: &str) -> (String, Option<String>) {
        let id = self.ask(job).await;
        self.answer(id).await
    }

    async fn answer(&self, id: i64) -> (String, Option<String>) {
        let waiting = async {
            loop {
                if let Some(run) = requested_run(&self.db, id).await.unwrap() {
                    return (run.outcome, run.error);
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the request is answered")
    }
}

fn said(outcome: &str, error: &str) -> (String, Option<String>) {
    (outcome.to_owned(), Some(error.to_owned()))
}

#[test]
fn the_list_is_sorted_unique_documented_and_every_schedule_parses() {
    let names: Vec<_> = JOBS.iter().map(|job| job.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
    let readme = include_str!("../../../README.md");
    for job in JOBS {
        assert!(job.cron.is_none_or(|text| Schedule::parse(text, chrono_tz::UTC).is_ok()), "{}", job.name);
        assert!(readme.contains(&format!("| `{}` |", job.name)), "README.md says nothing of {}", job.name);
    }
}

#[tokio::test]
async fn a_clock_set_back_stops_no_job() {
    let mut world = World::new().await;
    world.start().await;
    // Two days and a bit: the midnight that is waited for lies far ahead now.
    world.clock.set(NOON - 2 * DAY - HOUR);
    tokio::task::yield_now().await;
    world.clock.set(NOON - 2 * DAY + 12 * HOUR);
    let due = (NOON - 2 * DAY + 12 * HOUR).to_string();
    let recorded = "SELECT CAST(scheduled_for AS TEXT) FROM job_runs
                    WHERE job = 'ledger-prune' AND scheduled_for IS NOT NULL AND outcome = 'ok'";
    world.until(recorded, &due).await;
    world.stop().await;
}

#[tokio::test]
async fn a_person_waits_for_the_run_in_hand() {
    let mut world = World::new().await;
    world.start().await;
    let job = find("bot-outbox-poll").unwrap();
    let in_hand = world.driver.past(job).lock().await;
    let request = world.ask(job.name).await;
    let driver = Arc::clone(&world.driver);
    let by_hand = tokio::spawn(async move { driver.run_now("bot-outbox-poll").await.unwrap().outcome });
    // It keeps nobody else waiting.
    assert_eq!(world.answered("ledger-prune").await, ("ok".into(), None));
    assert!(requested_run(&world.db, request).await.unwrap().is_none() && !by_hand.is_finished());
    drop(in_hand);
    assert_eq!(world.answer(request).await, ("ok".into(), None));
    assert_eq!(by_hand.await.unwrap(), "ok");
    world.stop().await;
}

#[tokio::test]
async fn a_run_that_a_schedule_wants_meanwhile_is_skipped_and_says_so() {
    let mut world = World::new().await;
    world.start().await;
    let in_hand = world.driver.past(find("housekeeping").unwrap()).lock().await;
    world.clock.advance(Duration::from_secs(16 * 3600));
    world.until("SELECT outcome FROM job_runs WHERE job = 'housekeeping'", "skipped").await;
    drop(in_hand);
    world.stop().await;
}

#[tokio::test]
async fn a_request_that_waits_at_the_stop_is_left_to_the_next_start() {
    let mut world = World::new().await;
    world.start().await;
    let driver = Arc::clone(&world.driver);
    let in_hand = driver.past(find("ledger-prune").unwrap()).lock().await;
    let request = world.ask("ledger-prune").await;
    world.answered("housekeeping").await;
    let mut world = world.restart().await;
    drop(in_hand);
    world.start().await;
    assert_eq!(world.answer(request).await, ("ok".into(), None));
    world.stop().await;
}

#[tokio::test]
async fn a_request_for_a_job_that_there_is_not_is_answered() {
    let mut world = World::new().await;
    world.write("INSERT INTO job_requests (id, job, requested_at) VALUES (7, 'tidy-attic', 1)").await;
    world.start().await;
    assert_eq!(world.answer(7).await, said("failed", "there is no job of that name"));
    world.stop().await;
}

#[tokio::test]
async fn what_an_earlier_process_did_not_end_is_answered_as_interrupted() {
    let mut world = World::new().await;
    let id = world.ask("ledger-prune").await;
    // As it is between the taking of a request and the end of its run; the second as earlier versions left it.
    world.write("INSERT INTO job_runs (id, job, started_at, outcome) VALUES (40, 'ledger-prune', 1, 'running')").await;
    world.write("UPDATE job_requests SET taken_at = 1, run_id = 40").await;
    world.write("INSERT INTO job_requests (id, job, requested_at, taken_at) VALUES (9, 'ledger-prune', 1, 1)").await;
    world.start().await;
    let interrupted = said("interrupted", "the process that ran it ended first");
    assert_eq!((world.answer(id).await, world.answer(9).await), (interrupted.clone(), interrupted));
    world.stop().await;
}

#[tokio::test]
async fn a_request_is_taken_with_its_run_or_not_at_all() {
    let world = World::new().await;
    let id = world.ask("ledger-prune").await;
    // Whatever fails in that transaction, the request waits as before.
    world.write("CREATE TRIGGER no_runs BEFORE INSERT ON job_runs BEGIN SELECT RAISE(ABORT, 'no'); END").await;
    let taken = world.db.settle(move |tx| super::requests::begin(tx, id, "ledger-prune")).await;
    assert!(taken.is_err());
    assert_eq!(world.texts("SELECT job FROM job_requests WHERE taken_at IS NULL").await, ["ledger-prune"]);
    world.stop().await;
}

#[tokio::test]
async fn a_success_after_a_failure_leaves_a_row() {
    let mut world = World::new().await;
    world.start().await;
    world
        .write(
            "CREATE TRIGGER keeps_marks BEFORE DELETE ON bot_processed_events
             BEGIN SELECT RAISE(ABORT, 'not now'); END",
        )
        .await;
    world
        .write(
            "INSERT INTO bot_processed_events (source, outbox_event_id, event_created_at, processed_at, acked_at)
             VALUES ('local', 1, 1, 1, 1)",
        )
        .await;
    world.clock.advance(Duration::from_secs(12 * 3600));
    let last = "SELECT outcome || COALESCE(' ' || scheduled_for, '') FROM job_runs
                WHERE job = 'ledger-prune' ORDER BY id DESC LIMIT 1";
    world.until(last, &format!("failed {}", NOON + 12 * HOUR)).await;
    world.write("DROP TRIGGER keeps_marks").await;
    let recovered = async {
        while world.texts(last).await != ["ok"] {
            world.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), recovered).await.expect("it is tried again, and that shows");
    world.stop().await;
}

#[tokio::test]
async fn a_failure_that_an_earlier_process_recorded_is_followed_by_the_first_success() {
    let mut world = World::new().await;
    world
        .write(
            "INSERT INTO job_runs (job, started_at, finished_at, outcome, error)
             VALUES ('bot-outbox-poll', 1, 2, 'failed', 'x')",
        )
        .await;
    world.start().await;
    let last = "SELECT outcome FROM job_runs WHERE job = 'bot-outbox-poll' ORDER BY id DESC LIMIT 1";
    world.until(last, "ok").await;
    for _ in 0..3 {
        world.clock.advance(Duration::from_secs(10));
        world.answered("ledger-prune").await;
    }
    let rows = "SELECT CAST(count(*) AS TEXT) FROM job_runs WHERE job = 'bot-outbox-poll'";
    assert_eq!(world.texts(rows).await, ["2"], "later ones are no news");
    world.stop().await;
}

#[tokio::test]
async fn housekeeping_deletes_counts_of_posts_after_a_week_and_no_lead_without_a_policy() {
    let world = World::new().await;
    world
        .write(
            "INSERT INTO broker_lead_rate_limits
               (fingerprint, window_start, attempt_count, first_attempt_at, last_attempt_at)
             VALUES ('old', unixepoch('2026-11-23 11:00') * 1000, 1, 1, 1),
               ('new', unixepoch('2026-11-23 13:00') * 1000, 1, 1, 1)",
        )
        .await;
    world.write("INSERT INTO broker_leads (phone, created_at, notification_status) VALUES ('7', 1, 'sent')").await;
    let counts = world.driver.run_now("housekeeping").await.unwrap().counts.unwrap();
    assert_eq!((&counts["leadRateLimits"], &counts["leads"]), (&1.into(), &0.into()), "{counts}");
    assert_eq!(world.texts("SELECT fingerprint FROM broker_lead_rate_limits").await, ["new"]);
    assert_eq!(world.texts("SELECT CAST(count(*) AS TEXT) FROM broker_leads").await, ["1"]);
    world.stop().await;
}

#[tokio::test]
async fn housekeeping_deletes_what_ended_long_ago_and_nothing_else() {
    let world = World::new().await;
    world
        .write(
            "INSERT INTO job_runs (id, job, started_at, finished_at, outcome) VALUES
               (1, 'a', 1, unixepoch('2026-10-31 11:59:59') * 1000, 'ok'),
               (2, 'a', 1, unixepoch('2026-10-31 12:00:01') * 1000, 'ok'),
               (3, 'b', 1, 1, 'failed'), (4, 'c', 1, NULL, 'running')",
        )
        .await;
    world
        .write(
            "INSERT INTO job_requests (id, job, requested_at, taken_at, run_id) VALUES
               (1, 'a', 1, unixepoch('2026-10-31 11:59:59') * 1000, 1),
               (2, 'a', 1, unixepoch('2026-10-31 12:00:01') * 1000, 2), (3, 'a', 1, NULL, NULL)",
        )
        .await;
    world
        .write(
            "INSERT INTO telegram_messages (id, chat_id, kind, lane, text, format, dedup_key, status, error_code, due_at,
               waiting_since, created_at, finished_at) VALUES
               (1, 5, 'event', 'transactional', 'x', 'plain', 'a', 'sent', NULL, 1, 1, 1, unixepoch('2026-09-01 11:59') * 1000),
               (2, 5, 'event', 'transactional', 'x', 'plain', 'b', 'unknown', 'crashed', 1, 1, 1, 1),
               (3, 5, 'event', 'transactional', 'x', 'plain', 'c', 'sent', NULL, 1, 1, 1, unixepoch('2026-09-01 12:01') * 1000),
               (4, 5, 'event', 'transactional', 'x', 'plain', 'd', 'pending', NULL, 1, 1, 1, NULL)",
        )
        .await;
    world
        .write(
            "INSERT INTO backend_calls (id, source, kind, body, dedup_key, status, error_code, due_at, created_at, finished_at)
             VALUES (1, 's', 'notification', '{}', 'a', 'done', NULL, 1, 1, unixepoch('2026-09-01 11:59') * 1000),
               (2, 's', 'notification', '{}', 'b', 'failed', 'x', 1, 1, 1),
               (3, 's', 'notification', '{}', 'c', 'done', NULL, 1, 1, unixepoch('2026-09-01 12:01') * 1000),
               (4, 's', 'notification', '{}', 'd', 'pending', NULL, 1, 1, NULL)",
        )
        .await;
    let counts = world.driver.run_now("housekeeping").await.unwrap().counts.unwrap();
    let expected = serde_json::json!({ "lanesMended": 0, "jobRequests": 1, "jobRuns": 1, "telegramMessages": 2, "backendCalls": 2,
        "broadcasts": 0, "connectLinks": 0, "digests": 0, "memberImports": 0, "telegramUpdates": 0, "leadRateLimits": 0, "leads": 0,
        "webhookDeliveries": 0, "webhookTests": 0 });
    assert_eq!(counts, expected);
    let ids = |table: &str| -> &'static str {
        match table {
            "job_runs" => "SELECT CAST(id AS TEXT) FROM job_runs WHERE job <> 'housekeeping' ORDER BY id",
            "job_requests" => "SELECT CAST(id AS TEXT) FROM job_requests ORDER BY id",
            "telegram_messages" => "SELECT CAST(id AS TEXT) FROM telegram_messages ORDER BY id",
            _ => "SELECT CAST(id AS TEXT) FROM backend_calls ORDER BY id",
        }
    };
    assert_eq!(world.texts(ids("job_runs")).await, ["2", "3", "4"], "the last run of a job stays");
    assert_eq!(world.texts(ids("job_requests")).await, ["2", "3"]);
    assert_eq!(world.texts(ids("telegram_messages")).await, ["3", "4"]);
    assert_eq!(world.texts(ids("backend_calls")).await, ["3", "4"]);
    let again = world.driver.run_now("housekeeping").await.unwrap().counts.unwrap();
    assert!(again.as_object().unwrap().values().all(|count| count == 0), "{again}");
    world.stop().await;
}

#[tokio::test]
async fn old_rows_are_found_by_their_indexes() {
    let world = World::new().await;
    for (sql, index) in [
        (
            "EXPLAIN QUERY PLAN SELECT id FROM telegram_messages INDEXED BY telegram_messages_finished_at
             WHERE finished_at < 5 ORDER BY finished_at LIMIT 500",
            "telegram_messages_finished_at (finished_at<?)",
        ),
        (
            "EXPLAIN QUERY PLAN SELECT id FROM backend_calls INDEXED BY backend_calls_finished_at
             WHERE finished_at < 5 ORDER BY finished_at LIMIT 500",
            "backend_calls_finished_at (finished_at<?)",
        ),
        ("EXPLAIN QUERY PLAN SELECT 1 FROM job_requests WHERE run_id = 5", "job_requests_by_run (run_id=?)"),
    ] {
        let read = move |tx: &crate::kernel::store::Tx<'_>| tx.query_all(sql, [], |row| row.get::<_, String>("detail"));
        let plan = world.db.read(read).await.unwrap_or_else(|error: StoreError| panic!("{error}")).join("; ");
        assert!(plan.contains(index) && !plan.contains("TEMP"), "{plan}");
    }
    world.stop().await;
}

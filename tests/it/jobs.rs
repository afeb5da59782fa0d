//! Jobs and signals through the real binary: a run that is asked for beside the server, and a start that is stopped.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::dev::Dev;
use crate::harness::file::{self, value};
use crate::harness::{Place, Process, text, until};

#[test]
fn a_job_that_the_request_itself_wakes_runs_for_the_one_who_asked() {
    let dev = Dev::start(&["store.ballast=0"]);
    for job in [
        "bot-outbox-poll",
        "broadcasts",
        "telegram-send",
        "telegram-updates",
        "backend-calls",
        "digest",
        "housekeeping",
        "lead-notifications",
        "ledger-prune",
        "outbox-prune",
        "outbox-relay",
        "reminders",
        "webhooks-deliver",
        "webhooks-sweep",
    ] {
        for _ in 0..3 {
            let ran = dev.command(&["jobs", "run", job, "--json"]);
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && said.contains(r#""outcome":"ok""#), "{job}: {ran:?}");
        }
    }
}

#[test]
fn a_run_that_a_kill_cut_off_is_told_as_interrupted() {
    let mut dev = Dev::start(&["store.ballast=0"]);
    dev.process.kill();
    let conn = dev.writer();
    conn.execute_batch(
        "INSERT INTO job_runs (id, job, started_at, outcome) VALUES (900, 'ledger-prune', 1, 'running');
         INSERT INTO job_requests (job, requested_at, taken_at, run_id) VALUES ('ledger-prune', 1, 1, 900);",
    )
    .unwrap();
    dev.start_again();
    until("the run is interrupted", || {
        let outcome: String = value(&conn, "SELECT outcome FROM job_runs WHERE id = 900", []);
        (outcome == "interrupted").then_some(())
    });
}

/// A place whose file needs the newest migration, as an earlier version left it.
fn older() -> Place {
    let place = Place::new();
    let migrated = place.command(&["migrate", "--data-dir", text(&place.data())]).status().unwrap();
    assert!(migrated.success());
    let conn = file::writer(&place.data());
    let all = "SELECT group_concat('DROP ' || type || ' ' || name || ';', ' ') FROM sqlite_schema
               WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'";
    let drop_all: String = value(&conn, all, []);
    conn.execute_batch(&format!("PRAGMA foreign_keys = OFF; {drop_all}")).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    for file in ["0001_bot.sql", "0002_chat.sql", "0003_backend_calls.sql", "0004_housekeeping.sql"] {
        conn.execute_batch(&std::fs::read_to_string(schema.join(file)).unwrap()).unwrap();
    }
    conn.execute_batch("PRAGMA user_version = 4").unwrap();
    place
}

/// Stops a start that cannot go on, since another program holds the write lock that opening the file needs.
fn stop_while_it_opens(place: &Place, start: impl Fn() -> Process) {
    let conn = file::writer(&place.data());
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut server = start();
    let lock = place.data().join("pillarbox.lock");
    let holder = format!("process {}", server.id());
    until("it has taken the directory", || {
        std::fs::read_to_string(&lock).is_ok_and(|text| text.contains(&holder)).then_some(())
    });
    server.signal(Signal::TERM);
    let ended = server.wait(Duration::from_secs(10));
    assert!(ended.success(), "{ended}: {}", server.log());
    assert!(server.log().contains("stopped before it served"), "{}", server.log());
    assert_eq!(value::<i64>(&conn, "SELECT user_version FROM pragma_user_version", []), 4, "nothing is half done");
    conn.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn a_signal_stops_serve_while_it_starts() {
    let place = older();
    stop_while_it_opens(&place, || place.start_serve("http://127.0.0.1:1", &["store.busy_timeout=60s"]));
    let mut server = place.start_serve("http://127.0.0.1:1", &[]);
    server.serving_url();
    let conn = file::reader(&place.data());
    assert!(value::<i64>(&conn, "SELECT user_version FROM pragma_user_version", []) > 4);
}

#[test]
fn a_signal_stops_dev_while_it_starts() {
    let place = older();
    let data = place.data();
    let args = ["dev", "--no-demo", "--listen", "127.0.0.1:0", "--data-dir", text(&data)];
    let args = [&args[..], &["--set", "store.busy_timeout=60s"]].concat();
    stop_while_it_opens(&place, || place.start(&args, &[]));
}

//! `pillarbox sql`, and the system's own `sqlite3`, on the same file.

use std::io::Write;
use std::process::{Command, Stdio};

use pillarbox::kernel::store::{FILE_NAME, newest_schema};

use crate::cli::{Place, Ran};

fn through_stdin(place: &Place, args: &[&str], sql: &str) -> Ran {
    let mut command = place.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    child.stdin.take().expect("it is piped").write_all(sql.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    Ran {
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn statements_come_from_the_argument_or_from_stdin() {
    let place = Place::migrated();
    let ran = through_stdin(
        &place,
        &["sql", "--write"],
        "BEGIN IMMEDIATE;
         INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', 7); -- one; only
         COMMIT;
         SELECT event_type, subject, NULL AS n, 1.5 AS r, x'00ff' AS b FROM bot_event_outbox",
    );
    let line = "{\"event_type\":\"registered\",\"subject\":\"uid:7\",\"n\":null,\"r\":1.5,\"b\":\"00ff\"}\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, line), "{ran:?}");
    let rows = place.query("SELECT 1 AS a; SELECT 2 AS a, 3 AS a");
    assert_eq!(rows.iter().map(ToString::to_string).collect::<Vec<_>>(), ["{\"a\":1}", "{\"a\":2,\"a:1\":3}"]);
    assert_eq!(place.run(&["sql", " -- nothing\n ; "]).succeeded().stdout, "");
}

#[test]
fn without_write_nothing_is_changed() {
    let place = Place::migrated();
    for sql in [
        "DELETE FROM members",
        "BEGIN IMMEDIATE",
        "CREATE TABLE t (a)",
        "PRAGMA query_only = OFF; INSERT INTO members (uid) VALUES (1)",
        "PRAGMA user_version = 9",
    ] {
        place.run(&["sql", sql]).refused(1, &["only reads", "--write"]);
    }
    assert_eq!(place.query("SELECT count(*) AS n FROM members")[0]["n"], 0);
    assert_eq!(place.query("PRAGMA user_version")[0]["user_version"], newest_schema());
}

#[test]
fn a_failing_statement_says_why_and_ends_the_run() {
    let place = Place::migrated();
    let ran = place.run(&["sql", "SELECT 1 AS a; SELCT 2; SELECT 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "{\"a\":1}\n"), "{ran:?}");
    assert!(ran.stderr.contains("near \"SELCT\": syntax error"), "{ran:?}");
    let missing = "INSERT INTO job_requests (job, requested_at, taken_at, run_id) VALUES ('x', 1, 1, 99)";
    place.run(&["sql", "--write", missing]).refused(1, &["FOREIGN KEY"]);
    let early = "BEGIN; INSERT INTO members (uid) VALUES (1)";
    place.run(&["sql", "--write", early]).refused(1, &["not committed", "rolled back"]);
    assert_eq!(place.query("SELECT count(*) AS n FROM members")[0]["n"], 0);
    let ran = through_stdin(&place, &["sql", "--write"], "INSERT INTO members (uid) VALUES (1); nonsense;");
    assert_eq!((ran.code, place.query("SELECT uid FROM members").len()), (1, 1), "what came before is done: {ran:?}");
}

#[test]
fn a_file_of_another_version_is_refused_when_newer_and_never_migrated() {
    let place = Place::migrated();
    place.write("PRAGMA user_version = 1");
    assert_eq!(place.query("PRAGMA user_version")[0]["user_version"], 1);
    place.run(&["outbox", "list"]).refused(1, &["schema version 1", "pillarbox migrate"]);
    let status = place.run(&["migrate", "--status"]).succeeded().row();
    assert_eq!(status["found"], 1);
    place.write("PRAGMA user_version = 99");
    for args in [&["sql", "SELECT 1"][..], &["sql", "--write", "SELECT 1"], &["migrate", "--status"], &["migrate"]] {
        place.run(args).refused(1, &["schema version 99", "newer pillarbox"]);
    }
}

#[test]
fn a_file_of_another_program_is_refused() {
    let place = Place::migrated();
    place.write("PRAGMA application_id = 7");
    place.run(&["sql", "SELECT 1"]).refused(1, &["another program", "0x7"]);
}

#[test]
fn the_system_shell_inserts_in_a_transaction_of_its_own() {
    let place = Place::migrated();
    if Command::new("sqlite3").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no sqlite3 on this machine");
        return;
    }
    place.write("INSERT INTO members (uid, telegram_id) VALUES (70, 700)");
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY); BEGIN IMMEDIATE; INSERT INTO orders DEFAULT VALUES;
               INSERT INTO bot_event_outbox (event_type, telegram_id, payload) VALUES ('registered', 700, '{}');
               INSERT INTO bot_event_outbox (event_type, telegram_id) VALUES ('reactivation', 701);
               COMMIT;";
    let done = Command::new("sqlite3").arg(place.data().join(FILE_NAME)).arg(sql).status().unwrap();
    assert!(done.success());
    let events = place.run(&["outbox", "list", "--state", "open"]).succeeded().rows();
    assert_eq!((&events[0]["subject"], &events[1]["subject"]), (&"uid:70".into(), &"tg:701".into()));
    assert!(events[0]["createdAt"].as_str().unwrap() > "2026", "{events:?}");
    let lanes = place.query("SELECT subject, head_id, due_at FROM bot_event_lanes ORDER BY head_id");
    assert_eq!(lanes.len(), 2);
    assert_eq!((&lanes[0]["subject"], &lanes[0]["head_id"]), (&"uid:70".into(), &events[0]["id"]));
    let refused = Command::new("sqlite3")
        .arg(place.data().join(FILE_NAME))
        .arg("INSERT INTO bot_event_outbox (event_type, magnet_uid, payload) VALUES ('registered', 1, '[]')")
        .stderr(Stdio::null())
        .status();
    assert!(!refused.unwrap().success(), "the schema's checks hold for everybody");
}

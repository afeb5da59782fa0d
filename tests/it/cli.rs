//! The command line, through the real binary: verbs, exit codes, and what goes to which stream.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pillarbox::kernel::clock::Clock;
use pillarbox::kernel::store::{Db, FILE_NAME, ProcessLock, Role, Settings, StoreError, Synchronous, newest_schema};
use serde_json::Value;
use tempfile::TempDir;

/// A directory with the binary's working place and its data.
pub(crate) struct Place(TempDir);

/// How a run ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// A place with an empty database.
    pub(crate) fn migrated() -> Self {
        let place = Self::new();
        place.run(&["migrate"]).succeeded();
        place
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.0.path().join("pillarbox-data")
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The binary with `args`, in this place and with an empty environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox"));
        command.env_clear().current_dir(self.0.path()).args(args).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args))
    }

    /// Runs SQL that changes the file.
    pub(crate) fn write(&self, sql: &str) {
        self.run(&["sql", "--write", sql]).succeeded();
    }

    /// The rows of a query.
    pub(crate) fn query(&self, sql: &str) -> Vec<Value> {
        self.run(&["sql", sql]).succeeded().rows()
    }
}

impl Ran {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.output().expect("the binary runs");
        Self {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// Ended with `code`, printed no data, and said all of `parts`.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:#?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {}", self.stderr);
        }
    }

    /// Every line of stdout as JSON.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
    }

    #[track_caller]
    pub(crate) fn row(&self) -> Value {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1, "{self:#?}");
        rows.remove(0)
    }
}

/// One event of every state: 1 open, 2 handled, 3 abandoned, 4 dead, 5 open behind a failure.
const EVENTS: &str = "
    INSERT INTO bot_event_outbox (id, event_type, magnet_uid, telegram_id, payload) VALUES
      (1, 'registered', 7, NULL, '{\"parentUid\":3}'), (2, 'new_partner', 8, NULL, NULL),
      (3, 'wallet_connected', NULL, 90, NULL), (4, 'registered', 9, NULL, NULL), (5, 'reactivation', 10, NULL, NULL);
    UPDATE bot_event_outbox SET processed_at = 1000, outcome = 'handled' WHERE id = 2;
    UPDATE bot_event_outbox SET processed_at = 1000, outcome = 'abandoned', attempts = 10 WHERE id = 3;
    UPDATE bot_event_outbox SET dead_lettered_at = 1000, attempts = 10, last_error = 'no' WHERE id = 4;
    UPDATE bot_event_outbox SET attempts = 1, next_retry_at = 9000000000000, last_error = char(27) || '[2Jlate'
      WHERE id = 5;";

fn with_events() -> Place {
    let place = Place::migrated();
    place.write(EVENTS);
    place
}

fn ids(rows: &[Value]) -> Vec<i64> {
    rows.iter().map(|row| row["id"].as_i64().expect("a number")).collect()
}

#[test]
fn a_new_installation_is_made_with_three_verbs() {
    let place = Place::new();
    let init = place.run(&["init", "--data-dir", "box"]).succeeded();
    assert!(init.stdout.contains("pillarbox.toml"), "{init:?}");
    assert!(place.run(&["init"]).stderr.contains("exists"));
    let check = place.run(&["config", "check"]).succeeded();
    assert!(check.stdout.starts_with("ok (pillarbox.toml)"), "{check:?}");
    let shown = place.run(&["config", "show"]).succeeded().rows();
    assert!(shown.iter().any(|row| row["key"] == "store.data_dir" && row["value"] == "box"));

    let status = place.run(&["migrate", "--status"]).succeeded().row();
    assert_eq!((&status["found"], &status["known"]), (&Value::Null, &newest_schema().into()));
    assert!(!place.path().join("box").exists(), "looking makes nothing");
    place.run(&["outbox", "list"]).refused(1, &["no database in box", "--data-dir"]);

    let made = place.run(&["migrate"]).succeeded().row();
    assert_eq!((&made["from"], &made["to"]), (&Value::Null, &newest_schema().into()));
    let again = place.run(&["migrate"]).succeeded().row();
    assert_eq!((&again["from"], &again["copy"]), (&newest_schema().into(), &Value::Null));
    for verb in [["outbox", "list"], ["messages", "list"]] {
        assert_eq!(place.run(&verb).succeeded().stdout, "");
    }
}

#[test]
fn events_are_listed_by_state_type_subject_and_page() {
    let place = with_events();
    let list = |args: &[&str]| place.run(&[&["outbox", "list"], args].concat()).succeeded();
    assert_eq!(ids(&list(&[]).rows()), [1, 2, 3, 4, 5]);
    assert_eq!(ids(&list(&["--state", "open"]).rows()), [1, 5]);
    assert_eq!(ids(&list(&["--state", "processed"]).rows()), [2]);
    assert_eq!(ids(&list(&["--state", "abandoned"]).rows()), [3]);
    assert_eq!(ids(&list(&["--state", "dead", "--json"]).rows()), [4]);
    assert_eq!(ids(&list(&["--type", "registered"]).rows()), [1, 4]);
    assert_eq!(ids(&list(&["--subject", "tg:90"]).rows()), [3]);
    let page = list(&["--limit", "2", "--after", "1"]);
    assert_eq!(ids(&page.rows()), [2, 3]);
    assert!(page.stderr.contains("go on with --after 3"), "{page:?}");
    assert_eq!(list(&["--state", "dead"]).stderr, "");
    place.run(&["outbox", "list", "--state", "ded"]).refused(2, &["dead"]);
    place.run(&["outbox", "list", "--limit", "501"]).refused(2, &["501"]);
}

#[test]
fn one_event_is_shown_whole_and_the_numbers_say_who_waits() {
    let place = with_events();
    let event = place.run(&["outbox", "show", "1"]).succeeded().row();
    assert_eq!((&event["subject"], &event["payload"]["parentUid"]), (&"uid:7".into(), &3.into()));
    assert!(event["createdAt"].as_str().unwrap().ends_with('Z'), "{event}");
    place.run(&["outbox", "show", "99"]).refused(1, &["no event 99"]);
    let stats = place.run(&["outbox", "stats"]).succeeded().row();
    assert_eq!((&stats["open"], &stats["abandoned"], &stats["dead"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!((&stats["waiting"][0]["subject"], &stats["waiting"][0]["headId"]), (&"uid:10".into(), &5.into()));
    let raw = place.run(&["outbox", "show", "5"]).succeeded();
    assert!(!raw.stdout.contains('\u{1b}'), "{raw:?}");
    assert_eq!(raw.row()["lastError"], "\u{1b}[2Jlate");
}

#[test]
fn only_what_was_given_up_is_retried() {
    let place = with_events();
    let ran = place.run(&["outbox", "retry", "1", "2", "3", "4", "99", "4"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let answers: Vec<_> =
        ran.rows().iter().map(|row| (row["id"].clone(), row["reopened"] == true, row["what"].clone())).collect();
    assert_eq!(
        answers,
        [
            (1.into(), false, "still open: it is retried by itself".into()),
            (2.into(), false, "already handled: only abandoned and dead events are retried".into()),
            (3.into(), true, "reopened".into()),
            (4.into(), true, "reopened".into()),
            (99.into(), false, "no such event".into()),
        ]
    );
    let rows = place.query("SELECT id FROM bot_event_outbox WHERE attempts = 0 AND outcome IS NULL ORDER BY id");
    assert_eq!(ids(&rows), [1, 3, 4]);
    let lanes = place.query("SELECT head_id AS id FROM bot_event_lanes WHERE due_at = 0 ORDER BY head_id");
    assert_eq!(ids(&lanes), [1, 3, 4]);
    for (args, part) in [(&["0"][..], "0"), (&[][..], "<ID>"), (&["--all-dead"], "--yes"), (&["x"], "x")] {
        place.run(&[&["outbox", "retry"], args].concat()).refused(2, &[part]);
    }
}

#[test]
fn all_dead_events_are_retried_with_one_confirmed_command() {
    let place = Place::migrated();
    place.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
         INSERT INTO bot_event_outbox (event_type, magnet_uid, dead_lettered_at) SELECT 'registered', i, 1 FROM n",
    );
    let ran = place.run(&["outbox", "retry", "--all-dead", "--yes"]).succeeded();
    assert_eq!(ran.rows().len(), 1100);
    assert_eq!(place.run(&["outbox", "list", "--state", "dead"]).succeeded().stdout, "");
    let none = place.run(&["outbox", "retry", "--all-dead", "--yes"]).succeeded();
    assert_eq!((none.stdout.as_str(), none.stderr.contains("no dead events")), ("", true));
}

#[test]
fn messages_are_listed_without_their_text_and_retried() {
    let place = Place::migrated();
    place.write(
        "INSERT INTO telegram_messages (id, chat_id, kind, lane, text, format, dedup_key, status, error_code, due_at,
           waiting_since, created_at, finished_at) VALUES
         (1, 5, 'event', 'transactional', 'private', 'plain', 'a', 'undeliverable', 'blocked', 1000, 1000, 1000, 2000),
         (2, -6, 'digest', 'bulk', 'private', 'plain', 'b', 'sent', NULL, 1000, 1000, 1000, 2000),
         (3, 5, 'reply', 'interactive', 'private', 'plain', 'c', 'pending', NULL, 1000, 1000, 1000, NULL)",
    );
    let list = |args: &[&str]| place.run(&[&["messages", "list"], args].concat()).succeeded();
    let all = list(&[]);
    assert_eq!(ids(&all.rows()), [1, 2, 3]);
    assert!(!all.stdout.contains("private"));
    assert_eq!(all.rows()[0]["dueAt"], "1970-01-01T00:00:01.000Z");
    assert_eq!(ids(&list(&["--status", "sent"]).rows()), [2]);
    assert_eq!(ids(&list(&["--chat", "-6"]).rows()), [2]);
    assert_eq!(ids(&list(&["--kind", "reply", "--chat", "5"]).rows()), [3]);
    place.run(&["messages", "list", "--kind", "repl"]).refused(2, &["'reply'"]);

    let ran = place.run(&["messages", "retry", "1", "2", "3", "9"]);
    assert_eq!(ran.code, 1);
    let reopened: Vec<_> = ran.rows().iter().map(|row| row["reopened"] == true).collect();
    assert_eq!(reopened, [true, false, false, false]);
    assert_eq!(ran.rows()[3]["what"], "no such message");
    assert_eq!(ids(&list(&["--status", "pending"]).rows()), [1, 3]);
}

#[test]
fn a_job_runs_here_when_no_server_does() {
    let place = Place::migrated();
    let ran = place.run(&["jobs", "run", "ledger-prune"]).succeeded().row();
    assert_eq!(
        (&ran["job"], &ran["outcome"], &ran["counts"]["deleted"]),
        (&"ledger-prune".into(), &"ok".into(), &0.into())
    );
    let jobs = place.run(&["jobs", "list"]).succeeded().rows();
    let named = |name: &str| jobs.iter().find(|job| job["name"] == name).unwrap();
    assert_eq!(named("ledger-prune")["lastRun"]["outcome"], "ok");
    assert_eq!(named("bot-outbox-poll")["lastRun"], Value::Null);
    assert!(named("bot-outbox-poll")["nextAt"].is_string());
    place.run(&["jobs", "run", "ledger-prun"]).refused(2, &["ledger-prune"]);
    place.run(&["jobs", "run", "ledger-prune", "--data-dir", "nowhere"]).refused(1, &["no database in nowhere"]);
    assert!(!place.path().join("nowhere").exists(), "running a job makes no database");
}

fn settings() -> Settings {
    Settings {
        synchronous: Synchronous::Full,
        readers: 1,
        queue: 16,
        busy_timeout: Duration::from_secs(5),
        cache: 1 << 20,
        min_free: 0,
        ballast: 0,
    }
}

#[tokio::test]
async fn a_job_is_asked_of_the_process_that_holds_the_directory() {
    let place = Place::migrated();
    let server = Db::open(&place.data(), Role::Owner("serve"), &settings(), Clock::system(), vec![]).unwrap();
    let asking = place.command(&["jobs", "run", "ledger-prune"]).stdout(Stdio::piped()).spawn().unwrap();
    let take = || {
        server.write(|tx| -> Result<bool, StoreError> {
            let taken = tx.execute("UPDATE job_requests SET taken_at = 1 WHERE taken_at IS NULL", [])?;
            if taken == 1 {
                tx.execute(
                    "INSERT INTO job_runs (job, started_at, finished_at, outcome, error)
                     VALUES ('ledger-prune', 1, 2, 'failed', 'no')",
                    [],
                )?;
                tx.execute("UPDATE job_requests SET run_id = ?1", [tx.last_insert_id()])?;
            }
            Ok(taken == 1)
        })
    };
    // The other process is real, and so is the time it takes to start.
    while !take().await.unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let output = asking.wait_with_output().unwrap();
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &row["outcome"], &row["error"]), (Some(1), &"failed".into(), &"no".into()));
    server.close().await;
}

#[test]
fn a_running_server_runs_the_job_and_ends_at_a_signal() {
    let place = Place::new();
    let args = ["serve", "--listen", "127.0.0.1:0", "--set", "log.format=json", "--data-dir", "box"];
    let mut server = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("pillarbox is serving")));
    let beside = |args: &[&str]| place.run(&[args, &["--data-dir", "box"]].concat());
    let ran = beside(&["jobs", "run", "ledger-prune"]).succeeded().row();
    assert_eq!((&ran["outcome"], &ran["counts"]["deleted"]), (&"ok".into(), &0.into()));
    beside(&["migrate"]).refused(1, &["in use by", "serve"]);
    beside(&["serve", "--listen", "127.0.0.1:0"]).refused(1, &["in use by"]);
    assert_eq!(beside(&["outbox", "list"]).succeeded().stdout, "");
    let term = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(term.success() && server.wait().unwrap().success());
}

#[test]
fn what_needs_the_directory_says_who_holds_it() {
    let place = Place::migrated();
    let lock = ProcessLock::acquire(&place.data(), "serve").unwrap();
    place.run(&["migrate"]).refused(1, &["in use by", "serve, process", "stop that process"]);
    place.run(&["jobs", "run", "ledger-prune", "--timeout", "1"]).refused(1, &["no answer within 1 s", "--timeout"]);
    place.run(&["migrate", "--status"]).succeeded();
    place.run(&["outbox", "list"]).succeeded();
    drop(lock);
}

#[test]
fn a_wrong_command_line_is_exit_2_and_a_wrong_configuration_exit_3() {
    let place = Place::new();
    place.run(&["outbx"]).refused(2, &["outbox"]);
    place.run(&["outbox", "list", "--lmit", "3"]).refused(2, &["--limit"]);
    place.run(&["dev", "--fake", "nonsense"]).refused(2, &["http://127.0.0.1:8081"]);
    for verb in [&["outbox", "list"][..], &["migrate"], &["sql", "SELECT 1"], &["jobs", "list"], &["config", "show"]] {
        place.run(&[verb, &["--set", "log.levl=info"]].concat()).refused(3, &["log.levl", "log.level"]);
    }
    let check = place.run(&["config", "check", "--set", "store.readers=0"]);
    assert_eq!((check.code, check.stdout.contains("store.readers")), (3, true), "{check:?}");
    place.run(&["config", "show", "--config", "missing.toml"]).refused(3, &["missing.toml"]);
}

#[test]
fn a_directory_that_cannot_be_used_is_answered_with_what_to_do() {
    let place = Place::new();
    std::fs::write(place.path().join("file"), "x").unwrap();
    place.run(&["migrate", "--data-dir", "file"]).refused(1, &["file", "check that it"]);
    std::fs::create_dir(place.path().join("foreign")).unwrap();
    std::fs::write(place.path().join("foreign").join(FILE_NAME), "not a database, but text of some length").unwrap();
    for verb in [&["migrate"][..], &["migrate", "--status"], &["outbox", "list"], &["sql", "SELECT 1"]] {
        place.run(&[verb, &["--data-dir", "foreign"]].concat()).refused(1, &["damaged or not a database"]);
    }
}

#[test]
fn versions_and_completions_are_printed() {
    let place = Place::new();
    let version = place.run(&["version"]).succeeded();
    assert!(version.stdout.starts_with(concat!("pillarbox ", env!("CARGO_PKG_VERSION"), "\nschema ")), "{version:?}");
    let json = place.run(&["version", "--json"]).succeeded().row();
    assert_eq!(json["schema"], newest_schema());
    assert!(json["sqlite"].as_str().unwrap().starts_with("3."), "{json}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&["completions", shell]).succeeded().stdout.contains("outbox"));
    }
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = Place::migrated();
    place.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
         INSERT INTO bot_event_outbox (event_type, magnet_uid) SELECT 'registered', i FROM n",
    );
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    for args in [&["outbox", "list", "--limit", "500"][..], &["sql", endless]] {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        drop(lines);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

//! `pillarbox leads`: looking, exporting and repairing beside a server, or without one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::cli::{Place, Ran};
use crate::harness::dev::Dev;
use crate::harness::{file, until};

/// The chat that `dev` tells of leads.
const CHAT: i64 = -1001;

/// One lead of every notification status: 1 pending, 2 sending since long ago, 3 sent, 4 failed, 5 disabled.
const LEADS: &str = "
    INSERT INTO broker_leads (id, request_id, client_name, phone, city, source, created_at, notification_status) VALUES
      ('00000000-0000-7000-8000-000000000001', 'IP-20261101-AAAAA1', 'Anna', '+7 (900) 000-00-01', 'Perm', 'site', 1793491200000, 'pending'),
      ('00000000-0000-7000-8000-000000000002', NULL, 'Boris', '79000000002', NULL, 'site', 1793577600000, 'sending'),
      ('00000000-0000-7000-8000-000000000003', 'IP-20261103-AAAAA3', '=cmd()', '79000000003', char(27) || '[2J', 'crm', 1793664000000, 'sent'),
      ('00000000-0000-7000-8000-000000000004', 'IP-20261104-AAAAA4', CAST(x'c0eded61' AS TEXT), '79000000004', NULL, 'crm', 1793750400000, 'failed'),
      ('00000000-0000-7000-8000-000000000005', 'IP-20261105-AAAAA5', 'Dmitri', '79000000005', NULL, 'crm', 1793836800000, 'disabled');
    UPDATE broker_leads SET status = 'in_progress', notification_last_error = 'telegram_http_403' WHERE request_id = 'IP-20261104-AAAAA4';
    INSERT INTO broker_lead_events (lead_id, event_type, payload)
      SELECT id, 'notification_failed', '{\"attempt\":1}' FROM broker_leads WHERE notification_status = 'failed';";

fn with_leads() -> Place {
    let place = Place::migrated();
    place.write(LEADS);
    place
}

fn id(number: u32) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

fn texts(rows: &[Value], key: &str) -> Vec<String> {
    rows.iter().map(|row| row[key].as_str().unwrap_or("-").to_owned()).collect()
}

fn leads(place: &Place, args: &[&str]) -> Ran {
    let mut all = vec!["leads"];
    all.extend(args);
    place.run(&all)
}

/// A command beside a server: its exit code and its lines.
fn beside(dev: &Dev, args: &[&str]) -> (i32, Vec<Value>) {
    let Output { status, stdout, .. } = dev.command(args);
    let lines = String::from_utf8(stdout).unwrap();
    (status.code().unwrap(), lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn until_lead(dev: &Dev, request_id: &str, status: &str) {
    let conn = dev.reader();
    let sql = "SELECT notification_status FROM broker_leads WHERE request_id = ?1";
    until(&format!("lead {request_id} is {status}"), || {
        let found: String = conn.query_row(sql, [request_id], |row| row.get(0)).ok()?;
        (found == status).then_some(())
    });
}

#[test]
fn the_list_is_newest_first_and_goes_on_behind_its_last_lead() {
    let place = with_leads();
    let all = leads(&place, &["list"]).succeeded().rows();
    assert_eq!(texts(&all, "id"), [5, 4, 3, 2, 1].map(id));
    let shown = leads(&place, &["list", "--limit", "2", "--from", "2026-11-02"]).succeeded();
    assert_eq!(texts(&shown.rows(), "id"), [5, 4].map(id));
    let go_on = format!("cut at 2; go on with --after {}", id(4));
    assert!(shown.stderr.contains(&go_on), "{}", shown.stderr);
    let next = leads(&place, &["list", "--limit", "2", "--after", &id(4), "--from", "2026-11-02"]).succeeded();
    assert_eq!(texts(&next.rows(), "id"), [3, 2].map(id));
    // Also behind the id that its form gave it.
    let behind = leads(&place, &["list", "--after", "IP-20261103-AAAAA3"]).succeeded().rows();
    assert_eq!(texts(&behind, "id"), [2, 1].map(id));
    leads(&place, &["list", "--after", "IP-20261103-NONE00"]).refused(1, &["there is no lead IP-20261103-NONE00"]);
}

#[test]
fn a_list_is_narrowed_by_both_statuses_and_by_time_and_shows_no_phone() {
    let place = with_leads();
    let ids = |args: &[&str]| texts(&leads(&place, args).succeeded().rows(), "id");
    assert_eq!(ids(&["list", "--status", "failed"]), [id(4)]);
    assert_eq!(ids(&["list", "--crm-status", "in_progress"]), [id(4)]);
    assert_eq!(ids(&["list", "--crm-status", "new", "--status", "failed"]), Vec::<String>::new());
    assert_eq!(ids(&["list", "--from", "2026-11-03", "--to", "2026-11-04"]), [id(3)]);
    assert_eq!(ids(&["list", "--to", "2026-11-01T03:00:01+03:00"]), [id(1)]);
    let all = leads(&place, &["list"]).succeeded();
    assert!(!all.stdout.contains("000-00-01") && !all.stdout.contains("79000000005"), "{}", all.stdout);
    assert!(!all.stdout.contains('\u{1b}'), "{}", all.stdout);
    leads(&place, &["list", "--status", "new"]).refused(2, &["pending", "disabled"]);
    leads(&place, &["list", "--from", "yesterday"]).refused(2, &["write a day"]);
}

#[test]
fn one_lead_is_shown_whole_by_either_of_its_ids() {
    let place = with_leads();
    for name in [id(4), "IP-20261104-AAAAA4".to_owned()] {
        let shown = leads(&place, &["show", &name]).succeeded().row();
        assert_eq!(shown["lead"]["id"], id(4));
        assert_eq!(shown["lead"]["created_at"], "2026-11-04T00:00:00.000Z");
        assert_eq!(shown["lead"]["client_name"], "\u{fffd}\u{fffd}\u{fffd}a", "the name is in another encoding");
        assert_eq!(shown["lead"]["has_matkapital"], false);
        assert_eq!(shown["events"][0]["event_type"], "notification_failed");
        assert_eq!(shown["events"][0]["payload"], json!({"attempt": 1}));
    }
    leads(&place, &["show", "nobody"]).refused(1, &["there is no lead nobody", "leads list"]);
    leads(&place, &["summary", "nobody"]).refused(1, &["there is no lead nobody"]);
}

#[test]
fn numbers_and_alerts_are_told() {
    let place = with_leads();
    let stats = leads(&place, &["stats"]).succeeded().row();
    for status in ["pending", "sending", "sent", "failed", "disabled"] {
        assert_eq!(stats["queue"][status]["count"], 1, "{status}: {stats}");
    }
    let alerts = stats["queue"]["alerts"].as_array().unwrap();
    assert!(alerts.contains(&json!("failed_present")) && alerts.contains(&json!("stale_sending")), "{stats}");
    assert_eq!(stats["by_source"], json!([["crm", 3], ["site", 2]]));
}

/// The records of a CSV text in which no cell holds a line break.
fn records(text: &str, delimiter: char) -> Vec<Vec<String>> {
    let text = text.strip_prefix('\u{feff}').expect("it begins with a byte order mark");
    let lines: Vec<&str> = text.strip_suffix("\r\n").expect("it ends with CRLF").split("\r\n").collect();
    lines.iter().map(|line| line.split(delimiter).map(str::to_owned).collect()).collect()
}

#[test]
fn an_export_has_every_lead_and_no_formula() {
    let place = with_leads();
    for delimiter in [',', ';'] {
        let text = leads(&place, &["export", "--delimiter", &delimiter.to_string()]).succeeded().stdout;
        let table = records(&text, delimiter);
        let at = |row: usize, column: &str| {
            let at = table[0].iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"));
            table[row][at].as_str()
        };
        assert_eq!(table.len(), 6);
        assert_eq!([1, 2, 3, 4, 5].map(|row| at(row, "id").to_owned()), [1, 2, 3, 4, 5].map(id));
        assert_eq!(at(1, "phone"), "'+7 (900) 000-00-01");
        assert_eq!(at(3, "client_name"), "'=cmd()");
        assert_eq!(at(3, "city"), "\u{fffd}[2J");
        assert_eq!(at(1, "created_at"), "2026-11-01T00:00:00.000Z");
        assert_eq!((at(2, "request_id"), at(2, "consent_accepted"), at(2, "raw_payload")), ("", "false", "{}"));
    }
    let narrowed = leads(&place, &["export", "--format", "ndjson", "--status", "sent", "--crm-status", "new"]);
    let row = narrowed.succeeded().row();
    assert_eq!((&row["client_name"], &row["city"]), (&json!("=cmd()"), &json!("\u{1b}[2J")), "nothing is changed");
    leads(&place, &["export", "--delimiter", "|"]).refused(2, &["possible values"]);
}

#[test]
fn an_export_of_many_pages_has_each_lead_once() {
    let place = Place::migrated();
    place.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1201)
         INSERT INTO broker_leads (request_id, phone, created_at)
         SELECT 'IP-20261101-' || printf('%06d', i), '79000000000', 1793491200000 + i / 300 FROM n",
    );
    let rows = leads(&place, &["export", "--format", "ndjson"]).succeeded().rows();
    let mut ids = texts(&rows, "request_id");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((rows.len(), ids.len()), (1201, 1201));
}

#[test]
fn a_file_of_leads_is_its_owners_and_there_whole_or_not_at_all() {
    let place = with_leads();
    let path = place.path().join("leads.csv");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = leads(&place, &["export", "--output", "leads.csv"]).succeeded();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "5 leads in leads.csv\n"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(records(&fs::read_to_string(&path).unwrap(), ',').len(), 6);
    let target = place.path().join("target");
    fs::write(&target, "kept").unwrap();
    symlink(&target, place.path().join("link")).unwrap();
    for special in ["link", ".", "/dev/null"] {
        leads(&place, &["export", "--output", special]).refused(1, &["not a plain file"]);
    }
    leads(&place, &["export", "--output", "nowhere/leads.csv"]).refused(1, &["cannot write nowhere/leads.csv"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    let left: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_full_disk_and_a_reader_that_goes_away_are_errors() {
    let place = with_leads();
    let mut command = place.command(&["leads", "export"]);
    command.stdout(Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap()));
    Ran::of(command).refused(1, &["not whole", "No space left"]);
    // More than a pipe holds.
    place.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO broker_leads (phone, comment) SELECT '79000000000', printf('%500s', 'x') FROM n",
    );
    let log = place.path().join("stderr");
    let mut command = place.command(&["leads", "export", "--format", "ndjson"]);
    command.stdout(Stdio::piped()).stderr(Stdio::from(File::create(&log).unwrap()));
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let said = fs::read_to_string(log).unwrap();
    assert!(said.contains("the export is not whole: whoever reads it went away"), "{said}");
}

#[test]
fn deleting_asks_first_and_says_what_went() {
    let place = with_leads();
    let counts =
        "SELECT (SELECT count(*) FROM broker_leads) AS leads, (SELECT count(*) FROM broker_lead_events) AS events";
    leads(&place, &["delete", &id(4)]).refused(2, &["this is final; add --yes", "IP-20261104-AAAAA4", "1 event"]);
    assert_eq!(place.query(counts)[0], json!({"leads": 5, "events": 1}));
    let ran = leads(&place, &["delete", &id(4), "IP-20261104-AAAAA4", &id(1), "--yes"]).succeeded();
    assert_eq!(texts(&ran.rows(), "id"), [id(4), id(1)], "named by both its ids, a lead goes once");
    assert_eq!(ran.rows()[0]["what"], "deleted with 1 event; its notification was failed");
    assert_eq!(place.query(counts)[0], json!({"leads": 3, "events": 0}));
    let gone = leads(&place, &["delete", &id(4), &id(5), "--yes"]);
    assert_eq!((gone.code, gone.rows().len()), (1, 1), "{gone:#?}");
    place.write(
        "UPDATE broker_leads SET notification_attempted_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
         WHERE notification_status = 'sending'",
    );
    let held = leads(&place, &["delete", &id(2), "--yes"]);
    assert_eq!((held.code, &held.row()["deleted"]), (1, &json!(false)));
}

#[test]
fn a_failed_notification_is_sent_once_more_when_a_person_asks() {
    let dev = Dev::start(&[]);
    dev.fault(&json!({"status": 403, "description": "Forbidden: bot was kicked", "chat_id": CHAT}));
    let insert = "INSERT INTO broker_leads (request_id, phone) VALUES (?1, '79000000001')";
    dev.writer().execute(insert, ["IP-20261101-AAAAA1"]).unwrap();
    until_lead(&dev, "IP-20261101-AAAAA1", "failed");
    assert_eq!(dev.texts(CHAT), Vec::<String>::new());
    let (code, answers) = beside(&dev, &["leads", "retry", "IP-20261101-AAAAA1", "--reason", "telegram_config_fixed"]);
    let id = "IP-20261101-AAAAA1";
    let expected = json!({"id": id, "retry_requested": true, "current_status": "pending", "retry_count": 1});
    assert_eq!((code, answers), (0, vec![expected]));
    until_lead(&dev, id, "sent");
    // What was sent is what `summary` prints.
    let summary = String::from_utf8(dev.command(&["leads", "summary", id]).stdout).unwrap();
    assert_eq!(dev.texts(CHAT), [summary.trim_end()]);
    let (code, answers) = beside(&dev, &["leads", "retry", id, "nobody", "--reason", "manual_recovery"]);
    assert_eq!((code, texts(&answers, "current_status")), (1, vec!["sent".to_owned(), "missing".to_owned()]));
    let refused = dev.command(&["leads", "retry", id, "--reason", "because"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("manual_recovery"), "it says what may be given");
    assert_eq!(dev.texts(CHAT).len(), 1);
}

#[test]
fn a_lead_whose_request_id_cannot_be_read_is_retried_and_deleted_by_its_own_id() {
    let place = with_leads();
    place.write(&format!(
        "UPDATE broker_leads SET request_id = 'IP' || char(0) || CAST(x'ff' AS TEXT) || printf('%90s', 'x') WHERE id = '{}'",
        id(4)
    ));
    let ran = leads(&place, &["retry", &id(4), "--reason", "manual_recovery"]).succeeded();
    assert_eq!(ran.row()["current_status"], "pending");
    leads(&place, &["export"]).succeeded();
    leads(&place, &["show", &id(4)]).succeeded();
    leads(&place, &["delete", &id(4), "--yes"]).succeeded();
}

#[test]
fn what_came_while_nobody_was_to_be_told_is_told_when_a_person_asks() {
    let place = Place::migrated();
    place.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450)
         INSERT INTO broker_leads (phone, notification_status) SELECT '79000000000', 'disabled' FROM n",
    );
    let ran = leads(&place, &["enqueue-disabled", "--reason", "telegram_config_fixed"]).succeeded();
    assert_eq!(ran.row(), json!({"enqueued": 450}));
    assert!(ran.stderr.contains("leads.delivery is `off`"), "{}", ran.stderr);
    let recorded = place.query(
        "SELECT count(*) AS n, min(payload ->> 'reason_code') AS reason FROM broker_lead_events
         WHERE event_type = 'notification_retry_requested'",
    );
    assert_eq!(recorded[0], json!({"n": 450, "reason": "telegram_config_fixed"}));
    let again = leads(&place, &["enqueue-disabled", "--reason", "telegram_config_fixed"]).succeeded();
    assert_eq!((again.row(), again.stderr.as_str()), (json!({"enqueued": 0}), ""));
}

#[test]
fn whoever_only_looks_does_so_beside_a_server() {
    let dev = Dev::start(&[]);
    dev.writer()
        .execute("INSERT INTO broker_leads (request_id, phone) VALUES ('IP-20261101-AAAAA1', '7')", [])
        .unwrap();
    until_lead(&dev, "IP-20261101-AAAAA1", "sent");
    for verb in ["list", "stats", "export"] {
        assert!(dev.command(&["leads", verb]).status.success(), "{verb}");
    }
    let known: i64 = file::value(&dev.reader(), "SELECT count(*) FROM broker_leads", []);
    assert_eq!(known, 1);
}

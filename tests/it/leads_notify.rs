//! The broker's chat is told of leads: through the real binary, against the fake Bot API and its faults.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, rows, value};
use crate::harness::until;

/// The chat of leads in `dev`: a group.
const CHAT: i64 = -1001;
/// Time-outs are real time, so they are short here; limits are out of the way, but for the group's.
const SETS: [&str; 4] =
    ["leads.telegram_timeout=1s", "telegram.chat_interval=0s", "telegram.per_second=1000", "store.ballast=0"];

/// A lead of another program; its id.
fn insert(conn: &Connection, request_id: &str) -> String {
    let sql =
        "INSERT INTO broker_leads (request_id, client_name, phone) VALUES (?1, 'Boris', '79990001122') RETURNING id";
    value(conn, sql, [request_id])
}

/// Status, attempts and code of a lead.
fn standing(conn: &Connection, id: &str) -> (String, i64, Option<String>) {
    let sql = "SELECT notification_status, notification_attempt_count, notification_last_error FROM broker_leads WHERE id = ?1";
    conn.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("the lead is there")
}

fn until_standing(conn: &Connection, id: &str, status: &str, attempts: i64) -> Option<String> {
    until(&format!("the lead is {status} after {attempts} attempts"), || {
        let (now, count, code) = standing(conn, id);
        (now == status && count == attempts).then_some(code)
    })
}

fn run_job(dev: &Dev) -> Value {
    let ran = dev.http.done("/dev/jobs/lead-notifications/run", &json!({}));
    assert_eq!(ran["outcome"], "ok", "{ran}");
    ran["counts"].clone()
}

/// How often each request id stands in what the fake accepted.
fn ids(dev: &Dev) -> Vec<String> {
    let texts = dev.texts(CHAT);
    texts
        .iter()
        .map(|text| text.lines().find_map(|line| line.strip_prefix("ID: ")).expect("an ID").to_owned())
        .collect()
}

#[test]
fn a_lead_that_another_program_inserts_is_told_once() {
    let dev = Dev::start(&SETS);
    let conn = dev.writer();
    let lead = insert(&conn, "IP-20261130-ABCDEF");
    until_standing(&conn, &lead, "sent", 1);
    assert_eq!(ids(&dev), ["IP-20261130-ABCDEF"]);
    let types: Vec<String> = column(&conn, "SELECT type FROM outbox_events WHERE type LIKE 'lead.%' ORDER BY id", []);
    assert_eq!(types, ["lead.received", "lead.notification_sent"]);
    dev.advance(Duration::from_secs(48 * 3600));
    assert_eq!(run_job(&dev), json!({"announced": 0, "sent": 0, "failed": 0, "givenUp": 0, "overtaken": 0}));
    assert_eq!(dev.texts(CHAT).len(), 1);
    let metrics = dev.http.get("/metrics").body;
    assert!(metrics.contains(r#"pillarbox_lead_notifications_total{outcome="sent"} 1"#), "{metrics}");
}

#[test]
fn a_telegram_that_hangs_fails_the_attempt_and_only_a_person_repeats_it() {
    let dev = Dev::start(&SETS);
    let conn = dev.writer();
    dev.fault(&json!({"chat_id": CHAT, "status": 500, "delay_ms": 20_000, "times": 10}));
    let leads = [insert(&conn, "r-1"), insert(&conn, "r-2")];
    for lead in &leads {
        assert_eq!(until_standing(&conn, lead, "failed", 1).as_deref(), Some("telegram_timeout"));
    }
    assert_eq!(dev.http.try_call("DELETE", "/dev/telegram/faults", None).unwrap().status / 100, 2);
    for _ in 0..3 {
        dev.advance(Duration::from_secs(16 * 60));
        assert_eq!(run_job(&dev)["sent"], 0, "nothing repeats by itself");
    }
    assert_eq!(dev.texts(CHAT).len(), 0);
    let again = "UPDATE broker_leads SET notification_status = 'pending', notification_cycle_claims = 0 WHERE id = ?1";
    for lead in &leads {
        conn.execute(again, [lead]).expect("a person asks for it");
        until_standing(&conn, lead, "sent", 2);
    }
    let mut told = ids(&dev);
    told.sort();
    assert_eq!(told, ["r-1", "r-2"]);
}

#[test]
fn a_kill_between_send_and_completion_costs_one_more_message_after_15_minutes() {
    // The attempt must not end by its own time-out before the kill.
    let mut dev = Dev::start(&[&SETS[1..], &["leads.telegram_timeout=15s"]].concat());
    let conn = dev.writer();
    // Accepted at once, answered after the process has gone.
    dev.fault(&json!({"chat_id": CHAT, "delay_ms": 20_000}));
    let lead = insert(&conn, "r-1");
    until("the fake has accepted it", || (dev.texts(CHAT).len() == 1).then_some(()));
    dev.process.kill();
    assert_eq!(standing(&conn, &lead), ("sending".into(), 1, None));
    dev.start_again();
    let since: i64 = value(&conn, "SELECT notification_attempted_at FROM broker_leads WHERE id = ?1", [&lead]);
    let wait = since + (14 * 60 + 50) * 1000 - dev.now();
    dev.advance(Duration::from_millis(wait.unsigned_abs()));
    assert_eq!(run_job(&dev)["sent"], 0);
    assert_eq!((standing(&conn, &lead), dev.texts(CHAT).len()), (("sending".into(), 1, None), 1));
    dev.advance(Duration::from_secs(11));
    run_job(&dev);
    until_standing(&conn, &lead, "sent", 2);
    assert_eq!(ids(&dev), ["r-1", "r-1"], "one more, with the same ID");
    dev.advance(Duration::from_secs(3600));
    assert_eq!(run_job(&dev)["sent"], 0);
    assert_eq!(dev.texts(CHAT).len(), 2);
}

#[test]
fn four_hundred_leads_to_a_group_all_arrive_once_and_none_is_claimed_before_its_slot() {
    let dev = Dev::start(&SETS);
    let conn = dev.writer();
    conn.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
         INSERT INTO broker_leads (request_id, client_name, phone) SELECT 'r-' || i, 'Boris', '79990001122' FROM n",
    )
    .expect("400 leads of another program");
    let counts = "SELECT count(*) FILTER (WHERE notification_status = 'sent'), sum(notification_attempt_count),
                         count(*) FILTER (WHERE notification_status = 'pending') FROM broker_leads";
    for minute in 1..=20_i64 {
        let due = minute * 20;
        until(&format!("{due} leads are told"), || {
            let (sent, claims, pending): (i64, i64, i64) =
                conn.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("counts");
            assert!(claims <= due && sent <= due, "minute {minute}: {claims} claims, {sent} sent");
            (sent == due && pending == 400 - due).then_some(())
        });
        dev.advance(Duration::from_secs(60));
    }
    let told = ids(&dev);
    assert_eq!((told.len(), told.iter().collect::<HashSet<_>>().len()), (400, 400), "each once");
    let shown = dev.http.get(&format!("/dev/telegram/messages?chat_id={CHAT}")).json();
    let at = |message: &Value| {
        let at = message["sent_at"].as_str().expect("an instant");
        chrono::DateTime::parse_from_rfc3339(at).expect("in RFC 3339").timestamp_millis()
    };
    let sent: Vec<i64> = shown["messages"].as_array().expect("a list").iter().map(at).collect();
    for window in sent.windows(21) {
        assert!(window[20] - window[0] >= 60_000, "more than 20 in a minute: {window:?}");
    }
    let failed: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE notification_attempt_count <> 1", []);
    assert_eq!(failed, 0);
}

#[test]
fn another_program_that_claims_beside_the_worker_and_the_worker_never_tell_the_same_lead() {
    let dev = Dev::start(&[&SETS[..], &["telegram.group_per_minute=1000"]].concat());
    let conn = dev.writer();
    let claim = "UPDATE broker_leads
                 SET notification_status = 'sending', notification_attempt_count = notification_attempt_count + 1,
                     notification_attempted_at = ?1
                 WHERE id = (SELECT id FROM broker_leads WHERE notification_status = 'pending' LIMIT 1)
                 RETURNING request_id";
    let mut theirs = HashSet::new();
    for number in 0..60 {
        insert(&conn, &format!("r-{number}"));
        let claimed: Vec<String> = rows(&conn, claim, [dev.now()], |row| row.get(0));
        theirs.extend(claimed);
    }
    until("every lead is claimed", || {
        let open: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE notification_status = 'pending'", []);
        (open == 0).then_some(())
    });
    let done = "UPDATE broker_leads SET notification_status = 'sent' WHERE notification_status = 'sending' AND request_id = ?1";
    for id in &theirs {
        conn.execute(done, [id]).expect("they complete theirs");
    }
    until("every lead is told", || {
        let sent: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE notification_status = 'sent'", []);
        (sent == 60).then_some(())
    });
    let ours = ids(&dev);
    let distinct: HashSet<String> = ours.iter().cloned().collect();
    assert_eq!(ours.len(), distinct.len(), "none twice");
    assert!(distinct.is_disjoint(&theirs), "{:?}", distinct.intersection(&theirs));
    assert_eq!(distinct.len() + theirs.len(), 60);
    assert!(!theirs.is_empty(), "the other program had its part");
}

#[test]
fn a_group_that_became_a_supergroup_is_followed_and_the_file_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;

    let mut dev = Dev::start(&SETS);
    let conn = dev.writer();
    dev.fault(&json!({"chat_id": CHAT, "migrate_to_chat_id": -1_001_001}));
    let first = insert(&conn, "r-1");
    until_standing(&conn, &first, "sent", 1);
    dev.start_again();
    let second = insert(&conn, "r-2");
    until_standing(&conn, &second, "sent", 1);
    assert_eq!((dev.texts(CHAT).len(), dev.texts(-1_001_001).len()), (0, 2));
    let kept = dev.place.data().join("lead-chat.json");
    assert_eq!(std::fs::metadata(kept).expect("it is kept").permissions().mode() & 0o777, 0o600);
}

#[test]
fn without_a_smoke_test_readiness_says_so_and_stays() {
    let dev = Dev::start(&SETS);
    let ready = dev.http.get("/readyz");
    let check = &ready.json()["checks"]["leads"];
    assert_eq!((ready.status, &check["ok"]), (200, &json!(true)), "{}", ready.body);
    assert!(check["detail"].as_str().is_some_and(|detail| detail.contains("leads smoke")), "{}", ready.body);
    assert_eq!(dev.process.log().matches("leads smoke").count(), 1, "{}", dev.process.log());
    let passed = json!({"chat_id": CHAT, "smoke_passed_at": dev.now()});
    std::fs::write(dev.place.data().join("lead-chat.json"), passed.to_string()).expect("a command beside wrote it");
    run_job(&dev);
    assert_eq!(dev.http.get("/readyz").json()["checks"]["leads"], json!({"ok": true}));
}

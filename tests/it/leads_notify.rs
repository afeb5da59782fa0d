//! The broker's chat is told of leads: through the real binary, against the fake Bot API and its faults.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::http::Client;
use crate::harness::{Place, until};

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

/// Whoever has the service-role key.
fn service(dev: &Dev) -> Client {
    let ready = std::fs::read(dev.place.path("dev.ready")).expect("the ready file");
    let ready: Value = serde_json::from_slice(&ready).expect("it is JSON");
    Client::new(dev.http.url(), ready["service_role_key"].as_str())
}

/// What a site's form posts.
fn form(request_id: &str) -> Value {
    json!({
        "schema_version": 1, "request_id": request_id, "form_version": "2.1", "form_fill_ms": 5000,
        "client": {"name": "Boris", "phone": "9991234567", "city": "Kazan"}, "mortgage": {"scenario": "a flat"},
        "personal_data_consent": "yes", "consent": true,
    })
}

/// The request id of every message that the fake accepted, oldest first.
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
    let told = |what: &str| dev.process.log().lines().filter(|line| line.contains(what)).count();
    until("the alert is told", || (told("\"failed_present\"") == 1).then_some(()));
    let metrics = dev.http.get("/metrics").body;
    assert!(metrics.contains(r#"pillarbox_leads{status="failed"} 2"#), "{metrics}");
    for _ in 0..3 {
        dev.advance(Duration::from_secs(16 * 60));
        assert_eq!(run_job(&dev)["sent"], 0, "nothing repeats by itself");
    }
    assert_eq!(dev.texts(CHAT).len(), 0);
    for (lead, request_id) in leads.iter().zip(["r-1", "r-2"]) {
        let reason =
            json!({"p_lead_id": lead, "p_request_id": request_id, "p_reason_code": "telegram_temporary_error"});
        let asked = service(&dev).done("/rest/v1/rpc/request_broker_lead_notification_retry", &reason);
        assert_eq!(asked, json!([{"retry_requested": true, "current_status": "pending", "retry_count": 1}]));
        until_standing(&conn, lead, "sent", 2);
    }
    let mut told = ids(&dev);
    told.sort();
    assert_eq!(told, ["r-1", "r-2"]);
    dev.advance(Duration::from_secs(60));
    run_job(&dev);
    let alerts: Vec<String> =
        dev.process.log().lines().filter(|line| line.contains("\"failed_present\"")).map(str::to_owned).collect();
    assert_eq!(alerts.len(), 2, "once when it began, once when it was over: {alerts:?}");
    assert!(alerts[0].contains("WARN") && alerts[1].contains("INFO"), "{alerts:?}");
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
fn a_site_is_answered_while_telegram_hangs_and_its_repeat_tells_nobody_twice() {
    let dev = Dev::start(&[&SETS[..], &["leads.allow_originless=true"]].concat());
    let conn = dev.writer();
    dev.fault(&json!({"chat_id": CHAT, "status": 500, "delay_ms": 20_000}));
    let lead = form("IP-20261130-HANGING1");
    let stored = dev.http.post("/leads", &lead);
    assert_eq!((stored.status, &stored.json()["notification_status"]), (201, &json!("pending")), "{}", stored.body);
    let id: String = value(&conn, "SELECT id FROM broker_leads", []);
    until("it is being sent", || (standing(&conn, &id).0 == "sending").then_some(()));
    let again = dev.http.post("/leads", &lead);
    assert_eq!((again.status, &again.json()["notification_status"]), (200, &json!("sending")), "{}", again.body);
    assert_eq!(until_standing(&conn, &id, "failed", 1).as_deref(), Some("telegram_timeout"));
    assert_eq!(dev.http.post("/leads", &lead).status, 200);
    run_job(&dev);
    assert_eq!((standing(&conn, &id).1, dev.texts(CHAT).len()), (1, 0), "a repeated form repeats no failed attempt");
}

#[test]
fn sixty_four_equal_posts_at_once_make_one_lead_and_one_notification() {
    let dev = Dev::start(&[&SETS[..], &["leads.allow_originless=true"]].concat());
    let conn = dev.writer();
    let lead = form("IP-20261130-MANYATONCE");
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let posts: Vec<_> = (0..64).map(|_| scope.spawn(|| dev.http.post("/leads", &lead).status)).collect();
        posts.into_iter().map(|post| post.join().expect("an answer")).collect()
    });
    statuses.sort_unstable();
    assert_eq!((statuses[63], &statuses[..63]), (201, &[200; 63][..]));
    let rows: Vec<String> = column(&conn, "SELECT id FROM broker_leads", []);
    let [id] = &rows[..] else { panic!("one lead: {rows:?}") };
    until_standing(&conn, id, "sent", 1);
    run_job(&dev);
    let events: Vec<String> = column(&conn, "SELECT event_type FROM broker_lead_events ORDER BY id", []);
    assert_eq!(events, ["created", "notification_sent"]);
    assert_eq!(ids(&dev), ["IP-20261130-MANYATONCE"]);
}

#[test]
fn callers_of_the_rpc_surface_and_the_worker_never_tell_the_same_lead() {
    let dev = Dev::start(&[&SETS[..], &["telegram.group_per_minute=1000"]].concat());
    let (conn, service) = (dev.writer(), service(&dev));
    let mut theirs = HashSet::new();
    for number in 0..60 {
        let request_id = format!("r-{number}");
        let lead = insert(&conn, &request_id);
        let arguments = json!({"p_lead_id": lead, "p_request_id": request_id});
        let claim = &service.done("/rest/v1/rpc/claim_broker_lead_notification", &arguments)[0];
        if claim["claimed"] == true {
            let ended = json!({"p_lead_id": lead, "p_request_id": request_id, "p_success": true, "p_error": null});
            assert_eq!(service.done("/rest/v1/rpc/complete_broker_lead_notification", &ended), json!("sent"));
            theirs.insert(request_id);
        }
        if number % 2 == 0 {
            // Without this the caller is nearly always the faster one.
            insert(&conn, &format!("w-{number}"));
        }
    }
    until("every lead is told", || {
        let open: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE notification_status <> 'sent'", []);
        (open == 0).then_some(())
    });
    let claims: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE notification_attempt_count <> 1", []);
    assert_eq!(claims, 0, "each has one attempt");
    let ours = ids(&dev);
    let distinct: HashSet<String> = ours.iter().cloned().collect();
    assert_eq!(ours.len(), distinct.len(), "none twice");
    assert!(distinct.is_disjoint(&theirs));
    assert_eq!((distinct.len() + theirs.len(), theirs.is_empty()), (90, false));
}

#[test]
fn what_is_being_sent_here_is_refused_to_a_caller_whatever_the_clock_says() {
    let dev = Dev::start(&[&SETS[1..], &["leads.telegram_timeout=3s"]].concat());
    let (conn, service) = (dev.writer(), service(&dev));
    dev.fault(&json!({"chat_id": CHAT, "delay_ms": 2_000}));
    let lead = insert(&conn, "r-1");
    until_standing(&conn, &lead, "sending", 1);
    dev.advance(Duration::from_secs(20 * 60));
    let arguments = json!({"p_lead_id": lead, "p_request_id": "r-1"});
    let claim = service.done("/rest/v1/rpc/claim_broker_lead_notification", &arguments);
    assert_eq!(claim, json!([{"claimed": false, "current_status": "sending", "attempt_count": 1}]));
    until_standing(&conn, &lead, "sent", 1);
    assert_eq!(ids(&dev), ["r-1"]);
}

#[test]
fn a_signal_lets_the_send_in_hand_end() {
    let mut dev = Dev::start(&[&SETS[1..], &["leads.telegram_timeout=10s"]].concat());
    let conn = dev.writer();
    dev.fault(&json!({"chat_id": CHAT, "delay_ms": 1_500}));
    let lead = insert(&conn, "r-1");
    // The fake ends with this process: it must have the call before, or there is nobody to answer it.
    until("the fake has accepted it", || (dev.texts(CHAT).len() == 1).then_some(()));
    assert_eq!(standing(&conn, &lead), ("sending".into(), 1, None));
    dev.process.stop();
    assert_eq!(standing(&conn, &lead), ("sent".into(), 1, None));
}

#[test]
fn old_leads_are_deleted_by_the_policy_and_never_one_that_is_still_to_be_told() {
    let dev = Dev::start(&[&SETS[..], &["leads.retention_days=30", "leads.delivery=rpc"]].concat());
    let conn = dev.writer();
    let day = 86_400_000;
    let sql = "INSERT INTO broker_leads (request_id, phone, created_at, notification_status) VALUES (?1, '7', ?2, ?3)";
    for (id, days, status) in
        [("old", 31, "sent"), ("old-failed", 31, "failed"), ("old-pending", 31, "pending"), ("new", 29, "sent")]
    {
        conn.execute(sql, (id, dev.now() - days * day, status)).expect("a lead of another program");
    }
    run_job(&dev);
    let ran = dev.http.done("/dev/jobs/housekeeping/run", &json!({}));
    assert_eq!(ran["counts"]["leads"], 2, "{ran}");
    let left: Vec<String> = column(&conn, "SELECT request_id FROM broker_leads ORDER BY request_id", []);
    assert_eq!(left, ["new", "old-pending"]);
    let events: i64 = value(&conn, "SELECT count(*) FROM broker_lead_events", []);
    assert_eq!(events, 2, "theirs went with them");
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
    assert_eq!(dev.process.log().matches("leads smoke").count(), 0, "the fake's chat is nobody's to be asked");
    let passed = json!({"chat_id": CHAT, "smoke_passed_at": dev.now()});
    std::fs::write(dev.place.data().join("lead-chat.json"), passed.to_string()).expect("a command beside wrote it");
    assert_eq!(dev.http.get("/readyz").json()["checks"]["leads"], json!({"ok": true}), "seen at once");
    let place = Place::new();
    let (_fake, fake_url) = place.start_fake();
    let mut serve = place.start_serve(&fake_url, &[&format!("leads.chat_id={CHAT}")]);
    serve.serving_url();
    assert_eq!(serve.log().matches("leads smoke").count(), 1, "{}", serve.log());
}

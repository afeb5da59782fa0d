//! The relay through the real binary: one consumer that cannot does not make the others do it again, and nothing is lost.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::instant;
use crate::harness::{Place, text, until};

/// 30 s, doubled each time, an hour at the most.
const BACKOFF_S: [i64; 9] = [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600];

fn dev_with_analytics(folder: &Path) -> Dev {
    Dev::start(&["store.ballast=0", &format!("analytics.dir={}", text(folder))])
}

/// The events in the files of analytics, in order.
fn lines(folder: &Path) -> Vec<Value> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    text.split('\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn event(dev: &Dev, id: &str) -> Value {
    dev.api.load(&format!("/v1/events/{id}"))
}

/// Waits until the hand-over has failed so many times.
fn until_failed(dev: &Dev, id: &str, attempts: i64) -> Value {
    until(&format!("{id} was refused {attempts} times"), || {
        let shown = event(dev, id);
        (shown["attempts"] == attempts).then_some(shown)
    })
}

/// Lets the hand-over of an event fail until it is given up.
fn fail_ten_times(dev: &Dev, id: &str) -> Value {
    for (before, step_s) in BACKOFF_S.into_iter().enumerate() {
        let began = dev.now();
        let shown = until_failed(dev, id, i64::try_from(before).unwrap() + 1);
        let next = instant(&shown["next_attempt_at"]);
        assert_eq!(shown["status"], "pending", "{shown}");
        let least = if before == 0 { 0 } else { began + step_s * 1_000 - 5_000 };
        assert!(
            (least..=dev.now() + step_s * 1_000).contains(&next),
            "{step_s} s after failure {}: {shown}",
            before + 1
        );
        dev.advance_to(next);
    }
    let failed = until_failed(dev, id, 10);
    assert_eq!((&failed["status"], &failed["next_attempt_at"]), (&json!("failed"), &Value::Null), "{failed}");
    failed
}

#[test]
fn an_outage_of_analytics_for_a_day_loses_nothing_and_repeats_nothing_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("analytics");
    // A file where the folder should be: not even root can write below it.
    fs::write(&folder, "in the way").unwrap();
    let dev = dev_with_analytics(&folder);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let mut events = Vec::new();
    for hour in 0..24 {
        let event = dev.api.post_event("order.paid", &format!(r#"{{"hour":{hour}}}"#));
        dev.api.until_delivery(&endpoint, &event, "delivered");
        until_failed(&dev, &event, 1);
        events.push(event);
        dev.advance(Duration::from_secs(3_600));
    }
    // Those of the first hours have been given up, and say so; the last one is still tried.
    let first = until("the first event was given up", || {
        dev.advance(Duration::from_secs(60));
        Some(event(&dev, &events[0])).filter(|shown| shown["status"] == "failed")
    });
    assert!(first["last_error"].as_str().unwrap().contains("analytics"), "{first}");
    assert!(first["acceptances"]["webhooks"].is_string() && first["acceptances"]["analytics"].is_null(), "{first}");
    let listed = dev.api.list("/v1/events?status=failed");
    assert!(listed.iter().any(|one| one["event_id"] == events[0].as_str()), "{listed:?}");
    assert_eq!(event(&dev, &events[23])["status"], "pending");

    fs::remove_file(&folder).unwrap();
    dev.advance(Duration::from_secs(3_600));
    until("the last event is published without help", || {
        Some(()).filter(|()| event(&dev, &events[23])["status"] == "published")
    });
    for given_up in dev.api.list("/v1/events?status=failed") {
        let path = format!("/v1/events/{}/retry", given_up["event_id"].as_str().unwrap());
        let answer = dev.api.post(&path, &json!({}));
        assert!((200..300).contains(&answer.status), "{}", answer.body);
    }
    for id in &events {
        until("it is published", || (event(&dev, id)["status"] == "published").then_some(()));
    }
    let mut written: Vec<String> =
        lines(&folder).iter().map(|line| line["event_id"].as_str().unwrap().to_owned()).collect();
    written.sort();
    let mut posted = events.clone();
    posted.sort();
    assert_eq!(written, posted, "each is in the files once");
    for id in &events {
        let times = receiver.came().iter().filter(|came| came.id() == id).count();
        assert_eq!(times, 1, "webhooks accepted {id} once and was not asked again");
    }
    let doubled: i64 = value(&dev.reader(), "SELECT count(*) FROM webhook_deliveries", []);
    assert_eq!(doubled, 24);
}

#[test]
fn ten_refusals_with_growing_pauses_and_then_a_person_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("analytics");
    fs::write(&folder, "in the way").unwrap();
    let dev = dev_with_analytics(&folder);
    let id = dev.api.post_event("order.paid", r#"{"distinctive":"xyzzy"}"#);
    let failed = fail_ten_times(&dev, &id);
    assert!(instant(&failed["failed_at"]) <= dev.now());
    assert!(!failed["last_error"].as_str().unwrap().contains("xyzzy"), "{failed}");
    dev.advance(Duration::from_secs(40 * 86_400));
    for job in ["outbox-relay", "outbox-prune"] {
        dev.run_job(job);
    }
    assert_eq!(event(&dev, &id)["attempts"], 10, "it is neither tried nor deleted without a person");

    fs::remove_file(&folder).unwrap();
    let retried = dev.command(&["events", "retry", &id]);
    assert!(retried.status.success(), "{}", String::from_utf8_lossy(&retried.stderr));
    let published = until("it is published", || Some(event(&dev, &id)).filter(|shown| shown["status"] == "published"));
    assert!(published["acceptances"]["analytics"].is_string() && published["failed_at"].is_null(), "{published}");
    assert_eq!(lines(&folder).len(), 1);
    let again = dev.api.post(&format!("/v1/events/{id}/retry"), &json!({}));
    assert!(again.status >= 400 || event(&dev, &id)["status"] == "published", "{}", again.body);
}

#[test]
fn a_rule_that_fails_for_a_day_makes_no_webhook_go_twice() {
    let place = Place::new();
    let (config, folder) = (place.path("pillarbox.toml"), place.path("analytics"));
    let rule = "[[communications.rule]]\nevent = \"order.*\"\nblock = \"event_any\"\nchat = -100500\n";
    fs::write(&config, rule).unwrap();
    let analytics = format!("analytics.dir={}", text(&folder));
    let dev = Dev::start_in(place, &["store.ballast=0", &analytics]);
    let conn = dev.writer();
    // Another program's rule: the chat takes no messages today.
    conn.execute_batch(
        "CREATE TRIGGER not_today BEFORE INSERT ON telegram_messages WHEN NEW.chat_id = -100500
         BEGIN SELECT RAISE(ABORT, 'not today'); END",
    )
    .unwrap();
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let events: Vec<String> = (0..20).map(|n| dev.api.post_event("order.paid", &format!(r#"{{"n":{n}}}"#))).collect();
    let other = dev.api.post_event("stock.low", "{}");
    for id in events.iter().chain([&other]) {
        dev.api.until_delivery(&endpoint, id, "delivered");
    }
    until("no rule is about the other one", || (event(&dev, &other)["status"] == "published").then_some(()));
    for id in &events {
        fail_ten_times_or_late(&dev, id);
    }
    conn.execute_batch("DROP TRIGGER not_today").unwrap();
    let retried = dev.command(&["events", "retry", "--all-failed"]);
    assert!(retried.status.success(), "{}", String::from_utf8_lossy(&retried.stderr));
    for id in &events {
        until("it is published", || (event(&dev, id)["status"] == "published").then_some(()));
    }
    let told: i64 = value(&conn, "SELECT count(*) FROM telegram_messages WHERE chat_id = -100500", []);
    assert_eq!(told, 20, "one message for each");
    let ids: Vec<String> = receiver.came().iter().map(|came| came.id().to_owned()).collect();
    assert_eq!(ids.len(), 21, "one request for each: {ids:?}");
    // It would tell every hand-over: nothing keeps a line from being written twice but that it was accepted.
    assert_eq!(lines(&folder).len(), 21, "one line for each");
    let accepted: Vec<String> = column(&conn, "SELECT acceptances FROM outbox_events WHERE published_at IS NULL", []);
    assert_eq!(accepted, [""; 0]);
}

/// Moves the clock until an event is given up.
fn fail_ten_times_or_late(dev: &Dev, id: &str) {
    until("it is given up", || {
        let shown = event(dev, id);
        if shown["status"] == "failed" {
            assert_eq!(shown["attempts"], 10, "{shown}");
            return Some(());
        }
        if let Some(next) = shown["next_attempt_at"].is_string().then(|| instant(&shown["next_attempt_at"])) {
            dev.advance_to(next);
        }
        None
    });
}

//! What is deleted with time, and what is kept however old it is.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::value;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::{text, until};

const DAY: Duration = Duration::from_secs(86_400);

fn prune(dev: &Dev) {
    for job in ["outbox-prune", "housekeeping"] {
        dev.run_job(job);
    }
}

#[test]
fn what_is_finished_goes_after_its_days_and_what_is_not_stays() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let ready = json!({"url": receiver.url("/ready"), "event_types": ["order.*"]});
    let paused = json!({"url": receiver.url("/paused"), "event_types": ["order.paid"]});
    let (ready, paused) = (dev.api.create_endpoint(&ready), dev.api.create_endpoint(&paused));
    dev.api.change(&paused, &json!({"status": "paused"}));
    let done = dev.api.post_event("order.sent", "{}");
    let waits = dev.api.post_event("order.paid", r#"{"kept":true}"#);
    let unheard = dev.api.post_event("stock.low", "{}");
    for event in [&done, &waits] {
        dev.api.until_delivery(&ready, event, "delivered");
    }
    dev.api.until_delivery(&paused, &waits, "pending");
    let is_there = |event: &str| dev.api.get(&format!("/v1/events/{event}")).status == 200;

    dev.advance(29 * DAY);
    prune(&dev);
    assert!([&done, &waits, &unheard].iter().all(|event| is_there(event)), "thirty days are not over");
    dev.advance(2 * DAY);
    prune(&dev);
    assert!(!is_there(&done) && !is_there(&unheard), "published and finished, so it goes");
    assert!(is_there(&waits), "one delivery is unfinished");

    // The delivery outlives its event, and what is frozen outlives them as long as it is needed.
    assert_eq!(dev.api.until_delivery(&ready, &done, "delivered")["attempts"], 1);
    dev.advance(60 * DAY);
    prune(&dev);
    assert_eq!(dev.api.list(&format!("/v1/deliveries?endpoint_id={}", ready.id)), [json!(null); 0], "90 days are over");
    assert!(is_there(&waits), "it waits still");
    dev.api.change(&paused, &json!({"status": "active"}));
    dev.api.until_delivery(&paused, &waits, "delivered");
    let came = receiver.came_to("/paused");
    assert!(came.len() == 1 && came[0].text().ends_with(r#""data":{"kept":true}}"#), "{came:?}");
    assert_eq!(came[0].body, receiver.came_to("/ready").iter().find(|came| came.id() == waits).unwrap().body);
    dev.advance(91 * DAY);
    prune(&dev);
    assert!(!is_there(&waits));
    let conn = dev.reader();
    for table in ["outbox_events", "webhook_messages", "webhook_deliveries", "webhook_attempts"] {
        let left: i64 = value(&conn, &format!("SELECT count(*) FROM {table}"), []);
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn an_event_that_was_given_up_is_never_deleted_silently() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("analytics");
    std::fs::write(&blocked, "in the way").unwrap();
    let dev = Dev::start(&["store.ballast=0", &format!("analytics.dir={}", text(&blocked))]);
    let event = dev.api.post_event("order.paid", "{}");
    let path = format!("/v1/events/{event}");
    until("it is given up", || {
        dev.advance(Duration::from_secs(1_800));
        (dev.api.load(&path)["status"] == "failed").then_some(())
    });
    dev.advance(400 * DAY);
    prune(&dev);
    assert_eq!(dev.api.load(&path)["status"], "failed");
    std::fs::remove_file(&blocked).unwrap();
    assert_eq!(dev.api.post(&format!("{path}/retry"), &json!({})).status / 100, 2);
    until("it is published", || (dev.api.load(&path)["status"] == "published").then_some(()));
    prune(&dev);
    assert_eq!(dev.api.get(&path).status, 200, "its days begin when it is published");
}

#[test]
fn attempts_of_the_test_button_are_kept_for_thirty_days() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let tried: Value = dev.api.done(&format!("{}/test", endpoint.path()), &json!({}));
    assert_eq!(tried["delivered"], true, "{tried}");
    let conn = dev.reader();
    let kept = || value::<i64>(&conn, "SELECT count(*) FROM webhook_tests", []);
    dev.advance(29 * DAY);
    prune(&dev);
    assert_eq!(kept(), 1);
    dev.advance(2 * DAY);
    prune(&dev);
    assert_eq!(kept(), 0);
}

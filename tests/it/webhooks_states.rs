//! What endpoints and deliveries go through by people's hands and by what receivers say: paused, disabled, gone, replayed,
//! recovered, resent, deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::{Endpoint, instant};
use crate::harness::until;

/// A `dev`, a receiver that says what it is told to say, and its endpoint.
struct Scene {
    dev: Dev,
    receiver: Receiver,
    says: Arc<AtomicU16>,
    endpoint: Endpoint,
}

impl Scene {
    fn new(says: u16) -> Self {
        let dev = Dev::start(&["store.ballast=0"]);
        let status = Arc::new(AtomicU16::new(says));
        let told = Arc::clone(&status);
        let receiver = Receiver::start(move |_| Reply::Status(told.load(Ordering::Relaxed)));
        // What becomes of an endpoint is told to every other one that wants everything.
        let wanted = json!({"url": receiver.url("/"), "event_types": ["order.*"]});
        let endpoint = dev.api.create_endpoint(&wanted);
        Self { dev, receiver, says: status, endpoint }
    }

    fn says(&self, status: u16) {
        self.says.store(status, Ordering::Relaxed);
    }

    fn post(&self, number: usize) -> String {
        self.dev.api.post_event("order.paid", &format!(r#"{{"number":{number}}}"#))
    }

    fn until(&self, event: &str, status: &str) -> Value {
        self.dev.api.until_delivery(&self.endpoint, event, status)
    }

    /// How often an event came.
    fn times(&self, event: &str) -> usize {
        self.receiver.came().iter().filter(|came| came.id() == event).count()
    }

    fn ask(&self, verb: &str, body: &Value) -> Value {
        self.dev.api.done(&format!("{}/{verb}", self.endpoint.path()), body)
    }

    fn shown(&self) -> Value {
        self.dev.api.load(&self.endpoint.path())
    }

    /// Posts an event, and lets all nine attempts at it fail.
    fn exhaust(&self, event: &str) -> Value {
        loop {
            let shown = until("the attempt has ended", || {
                let path = format!("/v1/deliveries?endpoint_id={}", self.endpoint.id);
                let all = self.dev.api.list(&path);
                let shown = all.into_iter().find(|one| one["event_id"] == event)?;
                let is_due = shown["status"] == "pending" && instant(&shown["next_attempt_at"]) <= self.dev.now();
                (shown["status"] != "sending" && !is_due).then_some(shown)
            });
            if shown["status"] != "pending" {
                return shown;
            }
            self.dev.advance_to(instant(&shown["next_attempt_at"]));
        }
    }
}

#[test]
fn a_paused_endpoint_waits_and_loses_nothing() {
    let scene = Scene::new(200);
    let paused = scene.dev.api.change(&scene.endpoint, &json!({"status": "paused"}));
    assert_eq!((&paused["status"], &paused["disabled_reason"]), (&json!("paused"), &Value::Null), "{paused}");
    let events: Vec<String> = (0..5).map(|number| scene.post(number)).collect();
    events.iter().for_each(|event| {
        scene.until(event, "pending");
    });
    scene.dev.advance(Duration::from_secs(3 * 86_400));
    scene.dev.run_job("webhooks-deliver");
    assert_eq!(scene.receiver.count(), 0, "nothing is sent while it is paused");
    scene.dev.api.change(&scene.endpoint, &json!({"status": "active"}));
    for event in &events {
        assert_eq!(scene.until(event, "delivered")["attempts"], 1);
        assert_eq!(scene.times(event), 1);
    }
}

#[test]
fn gone_disables_the_endpoint_and_cancels_what_waits() {
    let scene = Scene::new(500);
    let waiting: Vec<String> = (0..3).map(|number| scene.post(number)).collect();
    waiting.iter().for_each(|event| {
        until("its first attempt has failed", || (scene.until(event, "pending")["attempts"] == 1).then_some(()));
    });
    scene.says(410);
    let last = scene.post(3);
    let failed = scene.until(&last, "failed");
    assert_eq!((&failed["attempts"], &failed["next_attempt_at"]), (&json!(1), &Value::Null), "{failed}");
    let shown = scene.shown();
    assert_eq!((&shown["status"], &shown["disabled_reason"]), (&json!("disabled"), &json!("gone")), "{shown}");
    for event in &waiting {
        scene.until(event, "cancelled");
    }
    let later = scene.post(4);
    scene.until(&later, "skipped");
    let count = scene.receiver.count();
    scene.dev.advance(Duration::from_secs(86_400));
    scene.dev.run_job("webhooks-deliver");
    assert_eq!(scene.receiver.count(), count, "nothing is sent to one that is gone");
    // It is there again: what came meanwhile can be had.
    scene.says(200);
    let since = shown["created_at"].clone();
    scene.dev.api.change(&scene.endpoint, &json!({"status": "active"}));
    scene.ask("replay-skipped", &json!({"since": since}));
    scene.until(&later, "delivered");
    assert_eq!(scene.times(&later), 1);
}

#[test]
fn five_days_without_a_success_disable_the_endpoint_and_somebody_is_told_before() {
    let scene = Scene::new(500);
    let other = Receiver::start(|_| Reply::Status(200));
    let watcher = json!({"url": other.url("/"), "event_types": ["webhook.*"]});
    scene.dev.api.create_endpoint(&watcher);
    scene.exhaust(&scene.post(0));
    assert_eq!(scene.shown()["status"], "active", "two and a half days are not five");
    scene.exhaust(&scene.post(1));
    let event = scene.post(2);
    let last = scene.exhaust(&event);
    let shown = scene.shown();
    assert_eq!((&shown["status"], &shown["disabled_reason"]), (&json!("disabled"), &json!("failing")), "{shown}");
    assert!(last["status"] == "skipped" || last["status"] == "failed", "{last}");
    let told = until("both were told", || {
        let came = other.came();
        (came.len() == 2).then_some(came)
    });
    let told: Vec<Value> = told.iter().map(|came| serde_json::from_str(came.text()).unwrap()).collect();
    assert_eq!(told[0]["type"], "webhook.endpoint_failing", "{told:?}");
    assert_eq!(told[1]["type"], "webhook.endpoint_disabled", "{told:?}");
    for one in &told {
        assert_eq!((&one["data"]["endpoint_id"], &one["tenant"]), (&json!(scene.endpoint.id), &json!("default")));
    }
    scene.until(&scene.post(3), "skipped");
}

#[test]
fn one_success_in_five_days_is_enough_to_stay() {
    let scene = Scene::new(200);
    let first = scene.post(0);
    scene.until(&first, "delivered");
    for number in 1..4 {
        scene.says(500);
        scene.exhaust(&scene.post(number));
        scene.says(200);
        let well = scene.post(number + 100);
        scene.until(&well, "delivered");
    }
    assert_eq!(scene.shown()["status"], "active", "{}", scene.shown());
}

#[test]
fn what_was_skipped_while_it_was_disabled_is_replayed_once() {
    let scene = Scene::new(500);
    let conn = scene.dev.reader();
    let before = scene.post(0);
    until("it has failed once", || (scene.until(&before, "pending")["attempts"] == 1).then_some(()));
    let disabled = scene.dev.command(&["webhooks", "endpoints", "disable", &scene.endpoint.id]);
    assert!(disabled.status.success(), "{}", String::from_utf8_lossy(&disabled.stderr));
    assert_eq!(scene.shown()["disabled_reason"], "manual");
    let since = scene.dev.now();
    let skipped: Vec<String> = (1..300).map(|number| scene.post(number)).collect();
    scene.until(&skipped[298], "skipped");
    scene.dev.run_job("webhooks-deliver");
    scene.until(&before, "skipped");
    scene.says(200);
    scene.dev.api.change(&scene.endpoint, &json!({"status": "active"}));
    let told = scene.ask("replay-skipped", &json!({"since": rfc3339(since - 3_600_000)}));
    assert_eq!(told["queued"], 300, "{told}");
    let again = scene.ask("replay-skipped", &json!({"since": rfc3339(since - 3_600_000)}));
    assert_eq!(again["queued"], 0, "what is queued is not skipped any more: {again}");
    for event in skipped.iter().chain([&before]) {
        until("it arrives", || (scene.times(event) > 0).then_some(()));
    }
    let undelivered = "SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered'";
    until("all are delivered", || (value::<i64>(&conn, undelivered, []) == 0).then_some(()));
    assert!(skipped.iter().all(|event| scene.times(event) == 1), "each once");
}

fn rfc3339(at_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(at_ms).unwrap().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[test]
fn recover_brings_back_what_failed_since_then_and_nothing_else() {
    let scene = Scene::new(500);
    let old = scene.post(0);
    scene.exhaust(&old);
    scene.says(200);
    scene.until(&scene.post(1), "delivered");
    scene.says(500);
    let since = scene.dev.now();
    let young: Vec<String> = (2..5).map(|number| scene.post(number)).collect();
    young.iter().for_each(|event| assert_eq!(scene.exhaust(event)["status"], "failed"));
    scene.says(200);
    let told = scene.ask("recover", &json!({"since": rfc3339(since)}));
    assert_eq!(told["queued"], 3, "{told}");
    for event in &young {
        scene.until(event, "delivered");
        assert_eq!(scene.times(event), 10, "nine that failed and the one that did not");
    }
    assert_eq!(scene.until(&old, "failed")["attempts"], 9, "it failed before");
    assert_eq!(scene.times(&old), 9);
}

#[test]
fn a_resend_is_an_attempt_of_its_own_and_leaves_the_schedule_alone() {
    let scene = Scene::new(500);
    let event = scene.post(0);
    let shown = until("it has failed once", || {
        let shown = scene.until(&event, "pending");
        (shown["attempts"] == 1).then_some(shown)
    });
    let resend = format!("/v1/deliveries/{}/resend", shown["id"].as_str().unwrap());
    assert_eq!(scene.dev.api.post(&resend, &json!({})).status, 202);
    let after = until("the resend has ended", || {
        let after = scene.until(&event, "pending");
        (after["attempts"] == 2).then_some(after)
    });
    assert_eq!(after["next_attempt_at"], shown["next_attempt_at"], "the schedule is where it was");
    let attempts = scene.dev.api.attempts(&after);
    assert_eq!((&attempts[0]["trigger"], &attempts[1]["trigger"]), (&json!("schedule"), &json!("manual")));
    scene.says(200);
    scene.dev.advance_to(instant(&shown["next_attempt_at"]));
    scene.until(&event, "delivered");
    // Delivered ones can be had once more, and whatever becomes of that they stay delivered.
    for (status, attempts) in [(200, 4), (500, 5)] {
        scene.says(status);
        assert_eq!(scene.dev.api.post(&resend, &json!({})).status, 202);
        until("it was sent again", || (scene.until(&event, "delivered")["attempts"] == attempts).then_some(()));
        assert_eq!(scene.times(&event), usize::try_from(attempts).unwrap());
    }
    scene.dev.advance(Duration::from_secs(86_400));
    scene.dev.run_job("webhooks-deliver");
    assert_eq!(scene.times(&event), 5, "a resend that failed is not repeated");
}

#[test]
fn a_deleted_endpoint_is_gone_at_once_and_its_rows_after_a_while() {
    let scene = Scene::new(500);
    let event = scene.post(0);
    let waiting = until("it has failed once", || {
        let shown = scene.until(&event, "pending");
        (shown["attempts"] == 1).then_some(shown)
    });
    let deleted = scene.dev.api.call("DELETE", &scene.endpoint.path(), None);
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    assert_eq!(scene.dev.api.get(&scene.endpoint.path()).status, 404);
    assert_eq!(scene.dev.api.list("/v1/endpoints"), [json!(null); 0]);
    let delivery = format!("/v1/deliveries/{}", waiting["id"].as_str().unwrap());
    assert_eq!(scene.dev.api.get(&delivery).status, 404, "nobody's deliveries are shown");
    scene.post(1);
    scene.dev.advance(Duration::from_secs(86_400));
    let conn = scene.dev.reader();
    until("its rows are gone", || {
        scene.dev.run_job("webhooks-deliver");
        scene.dev.run_job("housekeeping");
        let tables = ["endpoints", "secrets", "deliveries", "attempts"];
        let left = tables.map(|table| value::<i64>(&conn, &format!("SELECT count(*) FROM webhook_{table}"), []));
        (left == [0; 4]).then_some(())
    });
    assert_eq!(scene.receiver.count(), 1, "nothing was sent to it since");
    let broken: Vec<String> = column(&conn, "SELECT \"table\" FROM pragma_foreign_key_check", []);
    assert_eq!(broken, [""; 0]);
}

#[test]
fn the_test_button_goes_the_same_way_and_leaves_no_delivery() {
    let scene = Scene::new(418);
    let tried = scene.ask("test", &json!({}));
    assert_eq!(
        (&tried["delivered"], &tried["http_status"], &tried["error"]),
        (&json!(false), &json!(418), &json!("http_4xx")),
        "{tried}"
    );
    scene.says(200);
    let tried = scene.ask("test", &json!({}));
    assert_eq!((&tried["delivered"], &tried["error"]), (&json!(true), &Value::Null), "{tried}");
    let came = scene.receiver.came();
    assert_eq!(came.len(), 2);
    for one in &came {
        assert!(one.is_signed_by(&scene.endpoint.secret), "{one:?}");
        let body: Value = serde_json::from_str(one.text()).unwrap();
        assert_eq!(body["type"], "webhook.test", "{body}");
    }
    assert_eq!(tried["request"]["body"].as_str().unwrap(), came[1].text(), "what is shown is what was sent");
    assert_eq!(tried["request"]["headers"]["webhook-id"], came[1].id());
    assert_eq!(scene.dev.api.list("/v1/deliveries"), [json!(null); 0]);
}

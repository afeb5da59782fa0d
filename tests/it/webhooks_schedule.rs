//! When a delivery is attempted, on the moved clock, as the receiver sees it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::tenant::{Endpoint, instant};
use crate::harness::until;

/// What passes between two attempts, before up to a tenth is added.
const STEPS_S: [i64; 8] = [5, 300, 1_800, 7_200, 18_000, 36_000, 72_000, 86_400];
const HOUR_S: i64 = 3_600;

/// An endpoint at the sink of `dev`, which says `status` and checks signatures. It does not want to be told that it fails.
fn sink_endpoint(dev: &Dev, name: &str, status: u16) -> Endpoint {
    let path = format!("/dev/sink/{name}");
    let wanted = json!({"url": format!("{}{path}", dev.http.url()), "event_types": ["order.*"]});
    let endpoint = dev.api.create_endpoint(&wanted);
    let told = dev.http.call("PUT", &path, Some(&json!({"status": status, "secret": endpoint.secret})));
    assert_eq!(told.status, 204, "{}", told.body);
    endpoint
}

fn sink_requests(dev: &Dev, name: &str) -> Vec<Value> {
    let shown = dev.http.get(&format!("/dev/sink/{name}/requests")).json();
    shown["requests"].as_array().expect("a list").clone()
}

/// Waits until a delivery has ended so many attempts; what is shown of it.
fn until_ended(dev: &Dev, delivery: &Value, attempts: usize) -> Value {
    let path = format!("/v1/deliveries/{}", delivery["id"].as_str().expect("an id"));
    until(&format!("attempt {attempts} has ended"), || {
        let shown = dev.api.load(&path);
        (shown["attempts"] == attempts && shown["status"] != "sending").then_some(shown)
    })
}

#[test]
fn nine_attempts_are_spread_over_two_and_a_half_days_and_then_it_has_failed() {
    let dev = Dev::start(&["store.ballast=0"]);
    let endpoint = sink_endpoint(&dev, "down", 500);
    let event = dev.api.post_event("order.paid", r#"{"total":0.10}"#);
    let mut shown = until("the event is to be delivered", || {
        dev.api.list(&format!("/v1/deliveries?endpoint_id={}", endpoint.id)).pop()
    });
    let mut due = vec![0];
    for (number, step_s) in STEPS_S.into_iter().enumerate() {
        shown = until_ended(&dev, &shown, number + 1);
        let latest = dev.now();
        assert_eq!((&shown["status"], &shown["delivered_at"]), (&json!("pending"), &Value::Null), "{shown}");
        let began = instant(&dev.api.attempts(&shown)[number]["started_at"]);
        let next = instant(&shown["next_attempt_at"]);
        assert!(next >= began + step_s * 1_000, "{step_s} s: {} ms after the attempt began", next - began);
        assert!(next <= latest + step_s * 1_100, "{step_s} s and a tenth: {} ms before the end", next - latest);
        due.push(next);
        if step_s > HOUR_S {
            dev.advance_to(next - 60_000);
            dev.run_job("webhooks-deliver");
            assert_eq!(sink_requests(&dev, "down").len(), number + 1, "nothing is sent before it is due");
        }
        dev.advance_to(next);
    }
    let last = until_ended(&dev, &shown, 9);
    assert_eq!((&last["status"], &last["next_attempt_at"]), (&json!("failed"), &Value::Null), "{last}");
    assert_eq!(last["event_id"], event.as_str());
    dev.advance(Duration::from_secs(2 * 86_400));
    dev.run_job("webhooks-deliver");

    let (came, attempts) = (sink_requests(&dev, "down"), dev.api.attempts(&last));
    assert_eq!((came.len(), attempts.len()), (9, 9), "what the receiver saw is what is journaled");
    for (number, (request, attempt)) in came.iter().zip(&attempts).enumerate() {
        let (received, began) = (instant(&request["received_at"]), instant(&attempt["started_at"]));
        assert!(received >= due[number] && began >= due[number], "attempt {number} came when it was due, not before");
        assert!((began..began + 20_000).contains(&received), "{began} {received}");
        assert_eq!(attempt["number"], number + 1);
        assert_eq!((&attempt["trigger"], &attempt["http_status"]), (&json!("schedule"), &json!(500)), "{attempt}");
        assert_eq!(
            (&attempt["error"], &attempt["resolved_ip"]),
            (&json!("http_5xx"), &json!("127.0.0.1")),
            "{attempt}"
        );
        assert_eq!((&request["verified"], &request["method"]), (&json!(true), &json!("POST")), "{request}");
        assert_eq!((&request["headers"]["webhook-id"], &request["body"]), (&json!(event), &came[0]["body"]));
        let signed: i64 = request["headers"]["webhook-timestamp"].as_str().unwrap().parse().unwrap();
        // It is signed a moment after it was claimed.
        assert!(
            (0..=1).contains(&(signed - began / 1_000)),
            "the seconds of this attempt are what is signed: {signed}"
        );
    }
    let took = instant(&came[8]["received_at"]) - instant(&came[0]["received_at"]);
    let whole_ms = STEPS_S.iter().sum::<i64>() * 1_000;
    assert_eq!(whole_ms, ((61 * 60 + 35) * 60 + 5) * 1_000);
    assert!((whole_ms..whole_ms * 11 / 10 + 120_000).contains(&took), "{took}");
}

#[test]
fn what_fails_together_is_not_repeated_together() {
    let dev = Dev::start(&["store.ballast=0"]);
    let endpoint = sink_endpoint(&dev, "down", 503);
    let events: Vec<String> = (0..40)
        .map(|number| {
            format!(r#"{{"type": "order.sent", "version": 1, "aggregate": {{"type": "n", "id": "{number}"}}, "data": {{}}}}"#)
        })
        .collect();
    let batch = format!(r#"{{"events": [{}]}}"#, events.join(","));
    assert_eq!(dev.api.send("POST", "/v1/events/batch", Some(&batch)).unwrap().status, 202);
    let list = format!("/v1/deliveries?endpoint_id={}&status=pending", endpoint.id);
    for (attempt, step_s) in STEPS_S.into_iter().enumerate().take(3) {
        let all = until("all have failed once more", || {
            let all = dev.api.list(&list);
            (all.len() == 40 && all.iter().all(|one| one["attempts"] == attempt + 1)).then_some(all)
        });
        let mut offsets: Vec<i64> = all
            .iter()
            .map(|one| instant(&one["next_attempt_at"]) - instant(&dev.api.attempts(one)[attempt]["started_at"]))
            .collect();
        offsets.sort_unstable();
        assert!(offsets[0] >= step_s * 1_000, "{offsets:?}");
        // By chance alone, forty between 0 and a tenth are all within a quarter of that once in 10^22 runs.
        assert!(offsets[39] - offsets[0] > step_s * 25, "after {step_s} s: {offsets:?}");
        dev.advance_to(all.iter().map(|one| instant(&one["next_attempt_at"])).max().unwrap());
    }
}

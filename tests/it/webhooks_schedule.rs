//! When a delivery is attempted, on the moved clock, as the receiver sees it; and what each answer does to that.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::{Endpoint, instant};
use crate::harness::until;

/// What passes between two attempts, before up to a tenth is added.
const STEPS_S: [i64; 8] = [5, 300, 1_800, 7_200, 18_000, 36_000, 72_000, 86_400];
const HOUR_S: i64 = 3_600;

/// An endpoint at the sink of `dev`, which says `status` and checks signatures.
fn sink_endpoint(dev: &Dev, name: &str, status: u16) -> Endpoint {
    let path = format!("/dev/sink/{name}");
    let endpoint = dev.api.subscribe(&format!("{}{path}", dev.http.url()));
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
    let mut shown = until(&"the event is to be delivered", || {
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
        assert_eq!(signed, began / 1_000, "the seconds of this attempt are what is signed");
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
            format!(r#"{{"type": "a.b", "version": 1, "aggregate": {{"type": "n", "id": "{number}"}}, "data": {{}}}}"#)
        })
        .collect();
    let batch = format!(r#"{{"events": [{}]}}"#, events.join(","));
    assert_eq!(dev.api.send("POST", "/v1/events/batch", Some(&batch)).unwrap().status, 202);
    let list = format!("/v1/deliveries?endpoint_id={}&status=pending", endpoint.id);
    for (attempt, step_s) in STEPS_S.into_iter().enumerate().take(3) {
        let all = until(&"all have failed once more", || {
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

/// What a receiver does, and what is to be journaled and due: the class, the status, and the seconds until the next
/// attempt as a range; `None` for a delivery that has ended.
type Case = (&'static str, Reply, Option<&'static str>, Option<u16>, Option<std::ops::RangeInclusive<i64>>);

fn cases() -> Vec<Case> {
    const FIRST: std::ops::RangeInclusive<i64> = 5..=6;
    vec![
        ("ok", Reply::Status(200), None, Some(200), None),
        ("accepted", Reply::Whole(202, "", "later"), None, Some(202), None),
        ("empty", Reply::Bytes(b"HTTP/1.1 204 \r\n\r\n"), None, Some(204), None),
        ("unusual", Reply::Status(299), None, Some(299), None),
        (
            "informed",
            Reply::Bytes(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            None,
            Some(200),
            None,
        ),
        ("moved", Reply::Whole(301, "Location: /ok\r\n", ""), Some("http_3xx"), Some(301), Some(FIRST)),
        ("see", Reply::Whole(303, "Location: /ok\r\n", ""), Some("http_3xx"), Some(303), Some(FIRST)),
        ("temporary", Reply::Whole(307, "Location: /ok\r\n", ""), Some("http_3xx"), Some(307), Some(FIRST)),
        ("unchanged", Reply::Status(304), Some("http_3xx"), Some(304), Some(FIRST)),
        ("bad", Reply::Status(400), Some("http_4xx"), Some(400), Some(FIRST)),
        ("missing", Reply::Status(404), Some("http_4xx"), Some(404), Some(FIRST)),
        ("broken", Reply::Status(500), Some("http_5xx"), Some(500), Some(FIRST)),
        ("odd", Reply::Status(599), Some("http_5xx"), Some(599), Some(FIRST)),
        ("busy", Reply::Whole(503, "Retry-After: 120\r\n", ""), Some("http_5xx"), Some(503), Some(120..=150)),
        ("many", Reply::Whole(429, "Retry-After: 120\r\n", ""), Some("http_4xx"), Some(429), Some(120..=150)),
        ("soon", Reply::Whole(429, "Retry-After: 0\r\n", ""), Some("http_4xx"), Some(429), Some(FIRST)),
        ("words", Reply::Whole(503, "Retry-After: soon\r\n", ""), Some("http_5xx"), Some(503), Some(FIRST)),
        ("minus", Reply::Whole(503, "Retry-After: -5\r\n", ""), Some("http_5xx"), Some(503), Some(FIRST)),
        (
            "absurd",
            Reply::Whole(503, "Retry-After: 99999999999999999999\r\n", ""),
            Some("http_5xx"),
            Some(503),
            Some(5..=24 * HOUR_S),
        ),
        (
            "years",
            Reply::Whole(503, "Retry-After: 99999999\r\n", ""),
            Some("http_5xx"),
            Some(503),
            Some(24 * HOUR_S - 60..=24 * HOUR_S + 60),
        ),
        (
            "past",
            Reply::Whole(503, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", ""),
            Some("http_5xx"),
            Some(503),
            Some(FIRST),
        ),
        (
            "future",
            Reply::Whole(503, "Retry-After: Sun, 06 Nov 2050 08:49:37 GMT\r\n", ""),
            Some("http_5xx"),
            Some(503),
            Some(24 * HOUR_S - 60..=24 * HOUR_S + 60),
        ),
        ("other", Reply::Whole(500, "Retry-After: 120\r\n", ""), Some("http_5xx"), Some(500), Some(FIRST)),
        ("silent", Reply::Hang, Some("timeout"), None, Some(FIRST)),
        ("closed", Reply::Close, Some("protocol"), None, Some(FIRST)),
        ("reset", Reply::Reset, Some("protocol"), None, Some(FIRST)),
        ("half", Reply::Bytes(b"HTTP/1.1 20"), Some("protocol"), None, Some(FIRST)),
        ("noise", Reply::Bytes(b"\0\0\0\0\r\n\r\n"), Some("protocol"), None, Some(FIRST)),
    ]
}

#[test]
fn every_answer_has_its_class_and_its_next_time() {
    let dev = Dev::start(&["store.ballast=0", "webhooks.timeout=3s"]);
    let receiver = Receiver::start(|came| {
        let name = came.path.trim_start_matches('/');
        cases().into_iter().find(|case| case.0 == name).map_or(Reply::Status(200), |case| case.1)
    });
    let endpoints: Vec<Endpoint> =
        cases().iter().map(|case| dev.api.subscribe(&receiver.url(&format!("/{}", case.0)))).collect();
    let event = dev.api.post_event("order.paid", "{}");
    for ((name, _, class, status, due), endpoint) in cases().into_iter().zip(&endpoints) {
        let ended = if class.is_none() { "delivered" } else { "pending" };
        let shown = until(&format!("the attempt at {name} has ended"), || {
            let shown = dev.api.list(&format!("/v1/deliveries?endpoint_id={}", endpoint.id)).pop()?;
            (shown["status"] != "sending" && shown["attempts"] == 1).then_some(shown)
        });
        assert_eq!((&shown["status"], &shown["event_id"]), (&json!(ended), &json!(event)), "{name}: {shown}");
        let attempts = dev.api.attempts(&shown);
        let [attempt] = &attempts[..] else { panic!("{name}: {attempts:?}") };
        assert_eq!((&attempt["error"], &attempt["http_status"]), (&json!(class), &json!(status)), "{name}: {attempt}");
        let Some(due) = due else { continue };
        let wait_s = (instant(&shown["next_attempt_at"]) - instant(&attempt["started_at"])) as f64 / 1_000.0;
        // What a receiver asked for holds the whole endpoint, so that it may be told there and not in the delivery.
        let held = dev.reader().query_row(
            "SELECT COALESCE(held_until, 0) FROM webhook_endpoints WHERE endpoint_id = ?1",
            [&endpoint.id],
            |row| row.get::<_, i64>(0),
        );
        let held_s = (held.unwrap() - instant(&attempt["started_at"])) as f64 / 1_000.0;
        let wait_s = wait_s.max(held_s);
        let duration_s = attempt["duration_ms"].as_f64().unwrap() / 1_000.0;
        let (least, most) = (*due.start() as f64, *due.end() as f64 + duration_s + 10.0);
        assert!((least..most).contains(&wait_s), "{name}: {wait_s} s until the next attempt");
    }
    assert_eq!(receiver.count(), cases().len(), "no redirect was followed, and nothing was sent twice");
}

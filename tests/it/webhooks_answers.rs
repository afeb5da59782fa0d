//! What each answer of a receiver, and each way of giving none, is journaled as, and when the next attempt is due.

use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::{Endpoint, instant};
use crate::harness::until;

const HOUR_S: i64 = 3_600;

/// What is to come of an attempt.
struct Outcome {
    class: Option<&'static str>,
    status: Option<u16>,
    /// The seconds until the next attempt, between these; none for one that delivered.
    due_s: Option<(i64, i64)>,
}

type Case = (&'static str, Reply, Outcome);

fn delivers(status: u16) -> Outcome {
    Outcome { class: None, status: Some(status), due_s: None }
}

/// Fails by its status; by the schedule's first step, the next attempt is due in five seconds and up to half of one more.
fn fails(status: u16) -> Outcome {
    waits(status, 5, 6)
}

fn waits(status: u16, least: i64, most: i64) -> Outcome {
    let class = ["http_3xx", "http_4xx", "http_5xx"][usize::from(status / 100) - 3];
    Outcome { class: Some(class), status: Some(status), due_s: Some((least, most)) }
}

fn unanswered(class: &'static str) -> Outcome {
    Outcome { class: Some(class), status: None, due_s: Some((5, 6)) }
}

fn answers() -> Vec<Case> {
    let told = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let moved = |status| Reply::Whole(status, "Location: /ok\r\n", "");
    vec![
        ("ok", Reply::Status(200), delivers(200)),
        ("accepted", Reply::Whole(202, "", "later"), delivers(202)),
        ("empty", Reply::Bytes(b"HTTP/1.1 204 \r\n\r\n"), delivers(204)),
        ("unusual", Reply::Status(299), delivers(299)),
        ("informed", Reply::Bytes(told), delivers(200)),
        ("endless", Reply::Flood(200, 100 << 20), delivers(200)),
        ("promised", Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"), delivers(200)),
        ("dripping", Reply::Drip(200), delivers(200)),
        ("moved", moved(301), fails(301)),
        ("see", moved(303), fails(303)),
        ("temporary", moved(307), fails(307)),
        ("unchanged", Reply::Status(304), fails(304)),
        ("bad", Reply::Status(400), fails(400)),
        ("missing", Reply::Status(404), fails(404)),
        ("broken", Reply::Status(500), fails(500)),
        ("loud", Reply::Flood(500, 100 << 20), fails(500)),
        ("odd", Reply::Status(599), fails(599)),
        ("silent", Reply::Hang, unanswered("timeout")),
        ("closed", Reply::Close, unanswered("protocol")),
        ("reset", Reply::Reset, unanswered("protocol")),
        ("half", Reply::Bytes(b"HTTP/1.1 20"), unanswered("protocol")),
        ("noise", Reply::Bytes(b"\0\0\0\0\r\n\r\n"), unanswered("protocol")),
    ]
}

/// Those that say for how long they want nothing more.
fn pauses() -> Vec<Case> {
    let asks = |status, header| Reply::Whole(status, header, "");
    let (day, hours) = ((24 * HOUR_S - 60, 24 * HOUR_S + 60), (5, 24 * HOUR_S));
    vec![
        ("busy", asks(503, "Retry-After: 120\r\n"), waits(503, 120, 150)),
        ("many", asks(429, "Retry-After: 120\r\n"), waits(429, 120, 150)),
        ("soon", asks(429, "Retry-After: 0\r\n"), fails(429)),
        ("words", asks(503, "Retry-After: soon\r\n"), fails(503)),
        ("minus", asks(503, "Retry-After: -5\r\n"), fails(503)),
        ("years", asks(503, "Retry-After: 99999999\r\n"), waits(503, day.0, day.1)),
        ("absurd", asks(503, "Retry-After: 99999999999999999999\r\n"), waits(503, hours.0, hours.1)),
        ("past", asks(503, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), fails(503)),
        ("future", asks(503, "Retry-After: Sun, 06 Nov 2050 08:49:37 GMT\r\n"), waits(503, day.0, day.1)),
        ("other", asks(500, "Retry-After: 120\r\n"), fails(500)),
    ]
}

fn cases() -> impl Iterator<Item = Case> {
    answers().into_iter().chain(pauses())
}

#[test]
fn every_answer_has_its_class_and_its_next_time() {
    let dev = Dev::start(&["store.ballast=0", "webhooks.timeout=3s"]);
    let receiver = Receiver::start(|came| {
        let name = came.path.trim_start_matches('/');
        cases().find(|case| case.0 == name).map_or(Reply::Status(200), |case| case.1)
    });
    let endpoints: Vec<Endpoint> =
        cases().map(|case| dev.api.subscribe(&receiver.url(&format!("/{}", case.0)))).collect();
    let event = dev.api.post_event("order.paid", "{}");
    for ((name, _, outcome), endpoint) in cases().zip(&endpoints) {
        let Outcome { class, status, due_s } = outcome;
        let ended = if class.is_none() { "delivered" } else { "pending" };
        let shown = until(&format!("the attempt at {name} has ended"), || {
            let shown = dev.api.list(&format!("/v1/deliveries?endpoint_id={}", endpoint.id)).pop()?;
            (shown["status"] != "sending" && shown["attempts"] == 1).then_some(shown)
        });
        assert_eq!((&shown["status"], &shown["event_id"]), (&json!(ended), &json!(event)), "{name}: {shown}");
        let attempts = dev.api.attempts(&shown);
        let [attempt] = &attempts[..] else { panic!("{name}: {attempts:?}") };
        assert_eq!((&attempt["error"], &attempt["http_status"]), (&json!(class), &json!(status)), "{name}: {attempt}");
        let kept = attempt["response_body"].as_str().unwrap_or_default();
        assert!(kept.len() <= 4096, "{name}: {} bytes of the answer are kept", kept.len());
        if let Some((least, most)) = due_s {
            let wait_ms = next_attempt(&dev, endpoint, &shown["next_attempt_at"]) - instant(&attempt["started_at"]);
            // The next attempt is counted from the end of this one; and the machine may be busy.
            let slack_ms = attempt["duration_ms"].as_i64().unwrap() + 10_000;
            let range = least * 1_000..=most * 1_000 + slack_ms;
            assert!(range.contains(&wait_ms), "{name}: {wait_ms} ms until the next attempt");
        }
    }
    assert_eq!(receiver.count(), endpoints.len(), "no redirect was followed, and nothing was sent twice");
}

/// What a receiver asked for holds the whole endpoint, so that it is not in the delivery.
fn next_attempt(dev: &Dev, endpoint: &Endpoint, shown: &serde_json::Value) -> i64 {
    let sql = "SELECT COALESCE(held_until, 0) FROM webhook_endpoints WHERE endpoint_id = ?1";
    crate::harness::file::value::<i64>(&dev.reader(), sql, [&endpoint.id]).max(instant(shown))
}

#[test]
fn what_cannot_be_reached_has_its_class_too() {
    let dev = Dev::start(&["store.ballast=0", "webhooks.timeout=10s"]);
    let plain = Receiver::start(|_| Reply::Status(200));
    let closed = {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        gone.local_addr().unwrap()
    };
    let endpoints = [
        (plain.url("/").replace("http:", "https:"), "tls"),
        (format!("http://{closed}/"), "connect"),
        ("http://no-such-name.invalid/".to_owned(), "dns"),
    ]
    .map(|(url, class)| (dev.api.subscribe(&url), class));
    let event = dev.api.post_event("order.paid", "{}");
    for (endpoint, class) in &endpoints {
        let shown = until(&format!("an attempt ends with {class}"), || {
            let shown = dev.api.until_delivery(endpoint, &event, "pending");
            (shown["attempts"] == 1).then_some(shown)
        });
        let attempt = &dev.api.attempts(&shown)[0];
        assert_eq!((&attempt["error"], &attempt["http_status"]), (&json!(class), &json!(null)), "{attempt}");
    }
    assert_eq!(plain.count(), 0);
}

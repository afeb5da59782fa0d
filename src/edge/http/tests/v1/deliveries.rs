//! Deliveries: shown as they stand, sent again, and queued again in bounded calls.

use std::time::Duration;

use serde_json::{Value, json};

use super::World;
use crate::edge::http::Limits;
use crate::edge::http::tests::{Setup, TestServer};
use crate::tenants::Role;

impl World {
    /// Changes rows behind the server's back.
    async fn run(&self, sql: &'static str) {
        self.server.db.write(move |tx| tx.execute(sql, []).map(|_| ())).await.unwrap();
    }
}

#[tokio::test]
async fn a_delivery_is_shown_with_its_attempts() {
    let world = World::start().await;
    let own = world.furnish("acme").await;
    let path = format!("/v1/deliveries/{}", own.ids["delivery_id"]);
    let mut expected = json!({
        "id": own.ids["delivery_id"], "event_id": own.ids["event_id"], "event_type": "order.paid",
        "endpoint_id": own.ids["endpoint_id"], "status": "pending", "attempts": 0,
        "next_attempt_at": "2027-01-15T08:00:00.000Z", "resend_requested_at": null, "last_error": null,
        "delivered_at": null, "created_at": "2027-01-15T08:00:00.000Z",
    });
    assert_eq!(world.server.ask(&own.key, "GET", &path, None).await.json(), expected);
    world.run(
        "INSERT INTO webhook_attempts (delivery, number, trigger, started_at, duration_ms, http_status, error, response_body, resolved_ip)
         SELECT id, 1, 'schedule', 1800000000000, 12, 503, 'http_5xx', 'busy', '192.0.2.1' FROM webhook_deliveries
         UNION ALL SELECT id, 2, 'manual', 1800000005000, NULL, NULL, 'interrupted', NULL, NULL FROM webhook_deliveries
         UNION ALL SELECT id, 3, 'schedule', 1800000006000, 7, 204, NULL, '', '192.0.2.1' FROM webhook_deliveries",
    )
    .await;
    world.run("UPDATE webhook_deliveries SET attempts = 3, status = 'delivered', delivered_at = 1800000006007, last_error = 'http_503'").await;
    for (field, value) in [
        ("attempts", json!(3)),
        ("status", json!("delivered")),
        ("delivered_at", json!("2027-01-15T08:00:06.007Z")),
        ("last_error", json!("http_503")),
    ] {
        expected[field] = value;
    }
    let shown = world.server.ask(&own.key, "GET", &path, None).await.json();
    expected["next_attempt_at"] = shown["next_attempt_at"].clone();
    assert_eq!(shown, expected);
    let attempts = json!([
        {"number": 1, "trigger": "schedule", "started_at": "2027-01-15T08:00:00.000Z", "duration_ms": 12,
         "http_status": 503, "error": "http_5xx", "response_body": "busy", "resolved_ip": "192.0.2.1"},
        {"number": 2, "trigger": "manual", "started_at": "2027-01-15T08:00:05.000Z", "duration_ms": null,
         "http_status": null, "error": "interrupted", "response_body": null, "resolved_ip": null},
        {"number": 3, "trigger": "schedule", "started_at": "2027-01-15T08:00:06.000Z", "duration_ms": 7,
         "http_status": 204, "error": null, "response_body": "", "resolved_ip": "192.0.2.1"},
    ]);
    for limit in [1, 2, 50] {
        assert_eq!(Value::from(world.list(&own.key, &format!("{path}/attempts"), limit).await), attempts);
    }
}

#[tokio::test]
async fn a_delivery_is_sent_again_when_a_person_asks() {
    let world = World::start().await;
    let own = world.furnish("acme").await;
    let path = format!("/v1/deliveries/{}/resend", own.ids["delivery_id"]);
    let asked = world.server.ask(&own.key, "POST", &path, None).await;
    assert_eq!((asked.status, &asked.json()["id"]), (202, &json!(own.ids["delivery_id"])), "{asked:?}");
    assert_eq!(asked.json()["resend_requested_at"], "2027-01-15T08:00:00.000Z");
    assert_eq!(world.server.ask(&own.key, "POST", &path, None).await.status, 202, "twice is once");
    world.run("UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = 'manual'").await;
    world.server.ask(&own.key, "POST", &path, None).await.problem(409, "endpoint_disabled");
    for unknown in ["dlv_018bcfe5-6800-7000-8000-00000000ffff", "x", "%ff", "dlv_"] {
        for (method, path) in [("GET", ""), ("GET", "/attempts"), ("POST", "/resend")] {
            let path = format!("/v1/deliveries/{unknown}{path}");
            world.server.ask(&own.key, method, &path, None).await.problem(404, "not_found");
        }
    }
}

/// Deliveries of that status, a minute apart, the first when the test began.
async fn fill(world: &World, count: i64, status: &'static str) {
    let fill = "
        WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
        INSERT INTO webhook_messages (id, tenant_id, event_id, type, body, created_at)
        SELECT 1000 + i, 'acme', 'e' || i, 'order.paid', X'7B7D', 1800000000000 + i * 60000 FROM n";
    let deliver = "
        INSERT INTO webhook_deliveries (message, endpoint, status, attempts, created_at)
        SELECT m.id, (SELECT min(id) FROM webhook_endpoints), ?1, 9, m.created_at FROM webhook_messages m WHERE m.id >= 1000";
    let work = move |tx: &crate::kernel::store::Tx<'_>| {
        tx.execute(fill, [count])?;
        tx.execute(deliver, [status]).map(|_| ())
    };
    world.server.db.write(work).await.unwrap();
}

#[tokio::test]
async fn what_failed_or_was_skipped_waits_again() {
    for (verb, status) in [("recover", "failed"), ("replay-skipped", "skipped")] {
        let world = World::start().await;
        let own = world.furnish("acme").await;
        fill(&world, 1200, status).await;
        let path = format!("/v1/endpoints/{}/{verb}", own.ids["endpoint_id"]);
        let call = async |body: Value| {
            let answer = world.server.ask(&own.key, "POST", &path, Some(&body)).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            answer.json()
        };
        let window = json!({"since": "2027-01-15T08:10:00Z", "until": "2027-01-15T08:20:00Z"});
        assert_eq!(call(window.clone()).await, json!({"queued": 10, "complete": true}));
        assert_eq!(call(window).await, json!({"queued": 0, "complete": true}), "what was queued waits already");
        assert_eq!(call(json!({"since": "2027-01-15T08:10:00Z", "until": null})).await["queued"], 1180);
        assert_eq!(call(json!({"since": "2000-01-01T00:00:00Z"})).await["queued"], 10);
        let left = world.server.column("SELECT DISTINCT status FROM webhook_deliveries").await;
        assert_eq!(left, ["pending"]);
    }
}

#[tokio::test]
async fn a_call_that_cannot_queue_all_says_so_and_the_next_goes_on() {
    // Without any time every call does one batch.
    let limits = |limits: &mut Limits| limits.batches = Duration::ZERO;
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let world = World { server };
    let own = world.furnish("acme").await;
    fill(&world, 1200, "failed").await;
    let path = format!("/v1/endpoints/{}/recover", own.ids["endpoint_id"]);
    let body = json!({"since": "2000-01-01T00:00:00Z"});
    let mut queued = 0;
    for calls in 1.. {
        let answer = world.server.ask(&own.key, "POST", &path, Some(&body)).await.json();
        queued += answer["queued"].as_u64().unwrap();
        if answer["complete"] == true {
            assert!(calls > 1, "one call was enough");
            break;
        }
    }
    assert_eq!(queued, 1200);
}

#[tokio::test]
async fn a_window_of_another_form_names_its_fault() {
    let world = World::start().await;
    let own = world.furnish("acme").await;
    for verb in ["recover", "replay-skipped"] {
        let path = format!("/v1/endpoints/{}/{verb}", own.ids["endpoint_id"]);
        for (body, field) in [
            (json!({}), "since"),
            (json!({"since": null}), "since"),
            (json!({"since": "yesterday"}), "since"),
            (json!({"since": 5}), "since"),
            (json!({"since": "2027-01-15T08:00:00Z", "until": "x"}), "until"),
            (json!({"since": "2027-01-15T08:00:00Z", "until": "2027-01-15T08:00:00Z"}), "until"),
            (json!({"since": "2027-01-15T08:00:00Z", "until": "2026-01-15T08:00:00Z"}), "until"),
            (json!({"since": "2027-01-15T08:00:00Z", "more": 1}), "more"),
        ] {
            let refused = world.server.ask(&own.key, "POST", &path, Some(&body)).await;
            assert_eq!(refused.problem(422, "invalid_body"), [field], "{body}");
        }
        let window = json!({"since": "2027-01-15T08:00:00Z"});
        world.run("UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = 'manual'").await;
        world.server.ask(&own.key, "POST", &path, Some(&window)).await.problem(409, "endpoint_disabled");
        world.run("UPDATE webhook_endpoints SET status = 'active', disabled_reason = NULL").await;
        let reader = world.server.key("acme", Role::Read).await;
        world.server.ask(&reader, "POST", &path, Some(&window)).await.problem(403, "forbidden");
    }
}

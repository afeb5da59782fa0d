//! Events: what is posted is stored as it is, and shown as it stands.

use serde_json::{Value, json};

use super::{event, event_with};
use crate::edge::http::tests::{Setup, TestServer};
use crate::tenants::Role;

const POST: (&str, &str) = ("POST", "/v1/events");

/// Texts that a parser and writer of JSON would give back in another form.
const TEMPTING: [&str; 14] = [
    r#"{"b": 1, "a": 2, "b": 3}"#,
    r#"{"n": 1e400, "m": -0, "k": 0.10, "l": 1E+2, "big": 123456789012345678901234567890}"#,
    "{\"s\": \"\\/ \u{2028} \u{2029} \u{7f} 😀 \\ud83d\\ude00 \\u0041\"}",
    r#"{"half": "\ud800", "nul": "\u0000"}"#,
    "{ }",
    "{\n\t\"a\" :\r\n [ ] , \"\" : { } }",
    r#"{"html": "</script><!--", "quote": "\"\\\b\f\n\r\t"}"#,
    r#"{"Ключ": "знач", "e\u0301": "é"}"#,
    r#"{"a": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}"#,
    r#"{"type": "x", "data": {"data": {}}, "$serde_json::private::RawValue": "1"}"#,
    r#"{"a": true, "b": false, "c": null}"#,
    r#"{"a": 1.0, "b": 1, "c": 1.50}"#,
    r#"{"brackets": "}]{[\"}"}"#,
    r#"{"a":1}"#,
];

#[tokio::test]
async fn data_is_kept_and_shown_byte_for_byte() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    for data in TEMPTING {
        let aggregate = r#""aggregate": {"type": "t", "id": "i"}"#;
        let body = format!(r#"{{ "type": "a.b" , "data":   {data}   , {aggregate}, "version": 1}}"#);
        let posted = server.ask_bytes(&key, POST, &[], Some(body.as_bytes())).await;
        assert_eq!(posted.status, 202, "{data}: {posted:?}");
        let id = posted.json()["event_id"].as_str().unwrap().to_owned();
        let stored = server.column("SELECT payload FROM outbox_events ORDER BY id DESC LIMIT 1").await;
        assert_eq!(stored, [data]);
        let shown = server.ask(&key, "GET", &format!("/v1/events/{id}"), None).await;
        assert!(shown.text().ends_with(&format!(r#","data":{data}}}"#)), "{}", shown.text());
        let batch = format!(r#"{{"events": [{body}, {body}]}}"#);
        let posted = server.ask_bytes(&key, ("POST", "/v1/events/batch"), &[], Some(batch.as_bytes())).await;
        assert_eq!(posted.status, 202, "{data}: {posted:?}");
        let stored = server.column("SELECT payload FROM outbox_events ORDER BY id DESC LIMIT 2").await;
        assert_eq!(stored, [data, data]);
    }
}

#[tokio::test]
async fn an_event_is_shown_as_it_stands() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let id = "0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f";
    let mut body = event_with("event_id", json!(id.to_uppercase()));
    body["occurred_at"] = json!("2026-12-31T23:59:59.5+03:00");
    let posted = server.ask(&key, "POST", "/v1/events", Some(&body)).await;
    assert_eq!((posted.status, posted.json()), (202, json!({"event_id": id})));
    assert_eq!(posted.find_header("cache-control"), Some("no-store"));
    let shown = server.ask(&key, "GET", &format!("/v1/events/{id}"), None).await.json();
    let mut expected = json!({
        "event_id": id, "type": "order.paid", "version": 1, "aggregate": {"type": "order", "id": "17"},
        "occurred_at": "2026-12-31T20:59:59.500Z", "created_at": "2027-01-15T08:00:00.000Z", "status": "pending",
        "attempts": 0, "next_attempt_at": null, "last_error": null, "published_at": null, "failed_at": null,
        "acceptances": {}, "data": {"amount": 5},
    });
    assert_eq!(shown, expected);
    expected.as_object_mut().unwrap().remove("data");
    let listed = server.ask(&key, "GET", "/v1/events", None).await.json();
    assert_eq!(listed, json!({"items": [expected], "next": null}));
}

#[tokio::test]
async fn a_batch_is_stored_whole_or_not_at_all() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let batch = |events: Vec<Value>| json!({ "events": events });
    let good: Vec<Value> =
        (0..1000).map(|n| event_with("aggregate", json!({"type": "t", "id": n.to_string()}))).collect();
    let posted = server.ask(&key, "POST", "/v1/events/batch", Some(&batch(good.clone()))).await;
    assert_eq!(posted.status, 202, "{posted:?}");
    let ids = posted.json()["event_ids"].as_array().unwrap().clone();
    let stored = server.column("SELECT event_id FROM outbox_events ORDER BY id").await;
    assert_eq!(ids, stored, "in the order of the request");
    for (at, wrong, status, code, field) in [
        (999, event_with("type", json!("lead.received")), 422, "reserved_type", "events[999].type"),
        (0, event_with("version", json!(0)), 422, "invalid_body", "events[0].version"),
        (500, event_with("data", json!([])), 422, "invalid_body", "events[500].data"),
        (500, event_with("data", json!({"a": "x".repeat(64 << 10)})), 422, "invalid_body", "events[500].data"),
        (7, event_with("event_id", json!("7")), 422, "invalid_body", "events[7].event_id"),
    ] {
        let mut events = good.clone();
        events[at] = wrong;
        let refused = server.ask(&key, "POST", "/v1/events/batch", Some(&batch(events))).await;
        assert_eq!(refused.problem(status, code), [field]);
    }
    for events in [vec![], vec![event(); 1001]] {
        let refused = server.ask(&key, "POST", "/v1/events/batch", Some(&batch(events))).await;
        assert_eq!(refused.problem(422, "invalid_body"), ["events"]);
    }
    assert_eq!(server.column("SELECT event_id FROM outbox_events ORDER BY id").await, stored);
}

#[tokio::test]
async fn an_event_of_a_known_id_is_the_same_or_refused() {
    let server = TestServer::start().await;
    let (acme, other) = (server.key("acme", Role::Publish).await, server.key("other", Role::Publish).await);
    let id = json!("0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f");
    let first = event_with("event_id", id.clone());
    for key in [&acme, &acme, &other] {
        let posted = server.ask(key, "POST", "/v1/events", Some(&first)).await;
        assert_eq!((posted.status, &posted.json()["event_id"]), (202, &id));
    }
    assert_eq!(server.column("SELECT tenant_id FROM outbox_events ORDER BY id").await, ["acme", "other"]);
    let mut changed = first.clone();
    changed["data"] = json!({"amount": 6});
    let refused = server.ask(&acme, "POST", "/v1/events", Some(&changed)).await;
    assert_eq!(refused.problem(409, "event_conflict"), ["event_id"]);
    let batch = json!({"events": [event(), changed]});
    let refused = server.ask(&acme, "POST", "/v1/events/batch", Some(&batch)).await;
    assert_eq!(refused.problem(409, "event_conflict"), ["events[1].event_id"]);
    assert_eq!(server.column("SELECT tenant_id FROM outbox_events ORDER BY id").await, ["acme", "other"]);
}

#[tokio::test]
async fn own_types_are_nobody_elses_and_others_may_have_to_be_registered() {
    let server = TestServer::start().await;
    for tenant in ["default", "acme"] {
        let key = server.key(tenant, Role::Publish).await;
        for own in ["lead.received", "member.registered", "funnel.stage_advanced", "webhook.endpoint_disabled"] {
            let refused = server.ask(&key, "POST", "/v1/events", Some(&event_with("type", json!(own)))).await;
            assert_eq!(refused.problem(422, "reserved_type"), ["type"], "{tenant} {own}");
        }
    }
    let strict = TestServer::with(Setup { sets: &["events.strict_types=true"], ..Setup::default() }).await;
    let key = strict.key("acme", Role::Publish).await;
    let refused = strict.ask(&key, "POST", "/v1/events", Some(&event())).await;
    assert_eq!(refused.problem(422, "unregistered_type"), ["type"]);
    let register = "INSERT INTO event_types (tenant_id, type, registered_at) VALUES ('acme', 'order.paid', 1)";
    strict.db.write(move |tx| tx.execute(register, []).map(|_| ())).await.unwrap();
    assert_eq!(strict.ask(&key, "POST", "/v1/events", Some(&event())).await.status, 202);
    let other = strict.key("other", Role::Publish).await;
    strict.ask(&other, "POST", "/v1/events", Some(&event())).await.problem(422, "unregistered_type");
}

#[tokio::test]
async fn a_batch_may_be_eight_times_as_large_as_another_body() {
    let limits = |limits: &mut crate::edge::http::Limits| limits.body_bytes = 8 << 10;
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let key = server.key("acme", Role::Publish).await;
    let large = event_with("data", json!({"a": "x".repeat(7 << 10)}));
    assert_eq!(server.ask(&key, "POST", "/v1/events", Some(&large)).await.status, 202);
    let larger = event_with("data", json!({"a": "x".repeat(8 << 10)}));
    server.ask(&key, "POST", "/v1/events", Some(&larger)).await.problem(413, "body_too_large");
    let batch = |events: usize| json!({"events": vec![large.clone(); events]});
    assert_eq!(server.ask(&key, "POST", "/v1/events/batch", Some(&batch(8))).await.status, 202);
    server.ask(&key, "POST", "/v1/events/batch", Some(&batch(10))).await.problem(413, "body_too_large");
}

#[tokio::test]
async fn an_event_is_retried_until_it_is_published() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let id = server.ask(&key, "POST", "/v1/events", Some(&event())).await.json()["event_id"].clone();
    let path = format!("/v1/events/{}", id.as_str().unwrap());
    let change = |sql: &'static str| server.db.write(move |tx| tx.execute(sql, []).map(|_| ()));
    change("UPDATE outbox_events SET attempts = 10, failed_at = 5, last_error = 'webhooks: x'").await.unwrap();
    assert_eq!(server.ask(&key, "GET", &path, None).await.json()["status"], "failed");
    let retried = server.ask(&key, "POST", &format!("{path}/retry"), None).await;
    assert_eq!((retried.status, &retried.json()["status"]), (200, &json!("pending")), "{retried:?}");
    change("UPDATE outbox_events SET published_at = 5, failed_at = NULL").await.unwrap();
    server.ask(&key, "POST", &format!("{path}/retry"), None).await.problem(409, "already_published");
    for unknown in ["0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f", "x", "%ff", "..%2f", "%00"] {
        let path = format!("/v1/events/{unknown}");
        server.ask(&key, "GET", &path, None).await.problem(404, "not_found");
        server.ask(&key, "POST", &format!("{path}/retry"), None).await.problem(404, "not_found");
    }
}

//! Everything a client can get wrong under `/v1`: always a 4xx problem that names the field, never a 500.

use serde_json::{Value, json};

use super::{event, event_with};
use crate::edge::http::tests::TestServer;
use crate::tenants::Role;

/// Bodies that are not JSON, and what is said of them.
pub(super) const NOT_JSON: &[(&[u8], &str)] = &[
    (b"", "invalid_json"),
    (b"nonsense", "invalid_json"),
    (b"{", "invalid_json"),
    (b"{} {}", "invalid_json"),
    (b"{\"data\": {]}", "invalid_json"),
    (b"{\"data\": {\"a\": 01}}", "invalid_json"),
    (b"{\"data\": {\"a\": \"\x01\"}}", "invalid_json"),
    (b"\xff\xfe{}", "invalid_utf8"),
    (b"{\"data\": {\"a\": \"\xed\xa0\x80\"}}", "invalid_utf8"),
    (b"\xef\xbb\xbf{}", "invalid_json"),
];

#[tokio::test]
async fn an_event_of_another_form_names_its_fault() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    let mut table: Vec<(&str, Value, &str)> = vec![];
    let types = ["", "A", "a..b", ".a", "a.", "a b", "a-b", "é", &"a".repeat(129)];
    table.extend(types.map(|text| ("type", json!(text), "type")));
    table.extend([json!(null), json!(1), json!({}), json!(["a"])].map(|v| ("type", v, "type")));
    let versions =
        [json!(0), json!(-1), json!(1.5), json!(-1.0), json!("1"), json!(u64::MAX), json!(null), json!(1e30)];
    table.extend(versions.map(|v| ("version", v, "version")));
    table
        .extend([json!(null), json!("order"), json!([]), json!(["order", "1"])].map(|v| ("aggregate", v, "aggregate")));
    table.push(("aggregate", json!({"type": "t"}), "aggregate.id"));
    table.push(("aggregate", json!({"type": "t", "id": 5}), "aggregate.id"));
    table.push(("aggregate", json!({"type": "t", "id": ""}), "aggregate.id"));
    table.push(("aggregate", json!({"type": "t", "id": "a\u{0}"}), "aggregate.id"));
    table.push(("aggregate", json!({"type": "t", "id": "x".repeat(256)}), "aggregate.id"));
    table.push(("aggregate", json!({"type": "", "id": "i"}), "aggregate.type"));
    table.push(("aggregate", json!({"type": "t", "id": "i", "more": 1}), "aggregate.more"));
    let times = ["", "yesterday", "2027-01-15", "2027-01-15T08:00:00", "2027-02-30T08:00:00Z", "12027-01-01T00:00:00Z"];
    table.extend(times.map(|text| ("occurred_at", json!(text), "occurred_at")));
    table.extend([json!(1), json!({}), json!([1])].map(|v| ("occurred_at", v, "occurred_at")));
    table
        .extend([json!(null), json!(1), json!("{}"), json!([]), json!([{}]), json!(true)].map(|v| ("data", v, "data")));
    table.push(("data", json!({"a": "x".repeat(64 << 10)}), "data"));
    table.push(("data", nested(101), "data"));
    let ids = ["", "x", "{0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f}", "0190c6a87b1e7cc39e5f2a4b6c8d0e1f"];
    table.extend(ids.map(|text| ("event_id", json!(text), "event_id")));
    table.push(("event_id", json!(5), "event_id"));
    table.push(("extra", json!(1), "extra"));
    for (field, value, blamed) in table {
        let body = event_with(field, value.clone());
        let refused = server.ask(&key, "POST", "/v1/events", Some(&body)).await;
        assert_eq!(refused.problem(422, "invalid_body"), [blamed], "{field} {value}");
        let refused = server.ask(&key, "POST", "/v1/events/batch", Some(&json!({"events": [event(), body]}))).await;
        assert_eq!(refused.problem(422, "invalid_body"), [format!("events[1].{blamed}")], "{field} {value}");
    }
    for field in ["type", "version", "aggregate", "data"] {
        let mut body = event();
        body.as_object_mut().unwrap().remove(field);
        assert_eq!(server.ask(&key, "POST", "/v1/events", Some(&body)).await.problem(422, "invalid_body"), [field]);
    }
    for body in [json!({"events": {}}), json!({"events": null}), json!({}), json!({"events": "x"})] {
        let refused = server.ask(&key, "POST", "/v1/events/batch", Some(&body)).await;
        assert_eq!(refused.problem(422, "invalid_body"), ["events"], "{body}");
    }
    let listed = server.ask(&key, "POST", "/v1/events/batch", Some(&json!({"events": [["order.paid"]]}))).await;
    assert_eq!(listed.problem(422, "invalid_body"), ["events[0]"]);
    assert_eq!(server.column("SELECT event_id FROM outbox_events").await, Vec::<String>::new());
}

#[tokio::test]
async fn deep_data_is_a_422_and_no_overflow() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    for (depth, status) in [(100, 202), (101, 422), (5000, 422), (100_000, 422)] {
        let data = format!("{}{}", r#"{"a":"#.repeat(depth - 1) + "{}", "}".repeat(depth - 1));
        let body = event().to_string().replace(r#"{"amount":5}"#, &data);
        let answer = server.ask_bytes(&key, ("POST", "/v1/events"), &[], Some(body.as_bytes())).await;
        assert_eq!(answer.status, status, "{depth}: {}", answer.text());
    }
    let elsewhere = event().to_string().replace("\"order\"", &format!("{}{}", "[".repeat(9000), "]".repeat(9000)));
    let answer = server.ask_bytes(&key, ("POST", "/v1/events"), &[], Some(elsewhere.as_bytes())).await;
    assert!([400, 422].contains(&answer.status), "{}", answer.text());
}

#[tokio::test]
async fn optional_fields_may_be_null() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    for field in ["occurred_at", "event_id"] {
        let body = event_with(field, Value::Null);
        assert_eq!(server.ask(&key, "POST", "/v1/events", Some(&body)).await.status, 202);
    }
    let twice = br#"{"type": "a", "type": "b", "version": 1, "aggregate": {"type": "t", "id": "i"}, "data": {}}"#;
    let refused = server.ask_bytes(&key, ("POST", "/v1/events"), &[], Some(twice)).await;
    assert_eq!(refused.problem(422, "invalid_body"), ["type"]);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_400() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    for path in ["/v1/events", "/v1/events/batch"] {
        for (body, code) in NOT_JSON {
            server.ask_bytes(&key, ("POST", path), &[], Some(body)).await.problem(400, code);
        }
        let auth = format!("Bearer {key}");
        let plain: [(&str, &[u8]); 2] = [("Authorization", auth.as_bytes()), ("Content-Type", b"text/plain")];
        let refused = server.send("POST", path, &plain, b"{}").await;
        assert_eq!(refused.problem(415, "unsupported_media_type"), ["Content-Type"]);
    }
}

//! Everything a client can get wrong, on every address: always a 4xx problem that names the field, never a 500.

use serde_json::{Value, json};

use super::{Answer, SECRET, TestServer};

const TAKE_BODIES: [&str; 3] = ["/bot/events/ack", "/bot/events", "/bot/notification"];

async fn post_bytes(server: &TestServer, path: &str, content_type: Option<&str>, body: &[u8]) -> Answer {
    let auth = format!("Bearer {SECRET}");
    let mut headers = vec![("Authorization", auth.as_bytes())];
    headers.extend(content_type.map(|kind| ("Content-Type", kind.as_bytes())));
    server.send("POST", path, &headers, body).await
}

/// A body that would be taken, for each address.
fn valid(path: &str) -> Value {
    match path {
        "/bot/events/ack" => json!({"processedIds": [1], "retryIds": [{"id": 2, "error": "e"}]}),
        "/bot/events" => {
            json!({"eventType": "registered", "telegramId": "5", "magnetUid": 1, "payload": {}, "dedupKey": "k"})
        }
        _ => json!({"magnetUid": 1, "kind": "k", "title": "t", "body": "b", "dedupKey": "k"}),
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_400() {
    let server = TestServer::start().await;
    let bodies: &[(&[u8], &str)] = &[
        (b"", "invalid_json"),
        (b"   ", "invalid_json"),
        (b"nonsense", "invalid_json"),
        (b"{", "invalid_json"),
        (b"{\"eventType\": \"registered\"", "invalid_json"),
        (b"{} {}", "invalid_json"),
        (b"{\"processedIds\": [1,]}", "invalid_json"),
        (b"{'a': 1}", "invalid_json"),
        (b"\xff\xfe{}", "invalid_utf8"),
        (b"{\"kind\": \"\xc3\x28\"}", "invalid_utf8"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
    ];
    for path in TAKE_BODIES {
        for (body, code) in bodies {
            post_bytes(&server, path, Some("application/json"), body).await.problem(400, code);
        }
    }
    let lone = br#"{"eventType": "registered", "magnetUid": 1, "payload": {"a": "\ud800"}}"#;
    let answer = post_bytes(&server, "/bot/events", Some("application/json"), lone).await;
    assert_eq!(answer.problem(400, "invalid_json"), ["payload.a"]);
    let huge = br#"{"eventType": "registered", "magnetUid": 1e999}"#;
    let answer = post_bytes(&server, "/bot/events", Some("application/json"), huge).await;
    assert_eq!(answer.problem(400, "invalid_json"), ["magnetUid"]);
}

#[tokio::test]
async fn a_body_of_another_type_is_a_415() {
    let server = TestServer::start().await;
    for path in TAKE_BODIES {
        let body = valid(path).to_string();
        for kind in [
            None,
            Some(""),
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/jsonx"),
            Some("multipart/form-data; boundary=x"),
            Some("application/json; charset=koi8-r"),
        ] {
            let answer = post_bytes(&server, path, kind, body.as_bytes()).await;
            assert_eq!(answer.problem(415, "unsupported_media_type"), ["Content-Type"], "{kind:?}");
        }
        for kind in ["application/json", "Application/JSON; Charset=UTF-8", "application/vnd.api+json"] {
            let answer = post_bytes(&server, path, Some(kind), body.as_bytes()).await;
            assert!((200..300).contains(&answer.status), "{kind}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_a_413() {
    let server = TestServer::start().await;
    let large = format!("{{\"kind\": \"{}\"}}", "x".repeat(10 << 20));
    for path in TAKE_BODIES {
        post_bytes(&server, path, Some("application/json"), large.as_bytes()).await.problem(413, "body_too_large");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nAuthorization: Bearer {SECRET}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let raw = format!("{head}{}0\r\n\r\n", chunk.repeat(32));
        server.raw(raw.as_bytes()).await.problem(413, "body_too_large");
    }
}

#[tokio::test]
async fn deep_nesting_is_a_4xx_and_no_overflow() {
    let server = TestServer::start().await;
    for depth in [127, 128, 400_000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for path in TAKE_BODIES {
            let answer = post_bytes(&server, path, Some("application/json"), nested.as_bytes()).await;
            assert!([400, 422].contains(&answer.status), "{depth}: {}", answer.text());
        }
        let inside = format!(r#"{{"eventType": "registered", "magnetUid": 1, "payload": {{"a": {nested}}}}}"#);
        let answer = post_bytes(&server, "/bot/events", Some("application/json"), inside.as_bytes()).await;
        assert!([400, 422].contains(&answer.status), "{depth}: {}", answer.text());
    }
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    let event = |payload: Value| json!({"eventType": "registered", "magnetUid": 1, "payload": payload});
    assert_eq!(server.post("/bot/events", event(nested(32))).await.status, 201);
    assert_eq!(server.post("/bot/events", event(nested(33))).await.problem(422, "invalid_body"), ["payload"]);
}

/// What is put in place of a field, for fields that are numbers, texts, objects or lists.
fn replace(path: &str, field: &str, with: &Value) -> Value {
    let mut body = valid(path);
    body[field] = with.clone();
    body
}

#[tokio::test]
async fn a_field_of_another_form_is_a_422_that_names_it() {
    let server = TestServer::start().await;
    let numbers = [json!(0), json!(-1), json!(i64::MIN), json!(u64::MAX), json!(1e20), json!(1.5), json!(-1.0)];
    let others = [json!("1"), json!(true), json!({}), json!([1])];
    let long = json!("x".repeat(5000));
    let texts = [json!(1), json!(1.5), json!(false), json!({}), json!([]), json!(""), json!("a\u{0}b"), long];
    let chats = ["", "x", "1.0", "1e3", "+1", "007", "-0", "0", " 1", "9223372036854775808", "１"];
    let mut table: Vec<(&str, &str, Value)> = vec![];
    for value in numbers.iter().chain(&others) {
        table.push(("/bot/events", "magnetUid", value.clone()));
        table.push(("/bot/notification", "magnetUid", value.clone()));
    }
    for value in &texts {
        table.extend(["kind", "title", "body", "dedupKey"].map(|field| ("/bot/notification", field, value.clone())));
        table.push(("/bot/events", "dedupKey", value.clone()));
    }
    table.extend(chats.map(|text| ("/bot/events", "telegramId", json!(text))));
    table.extend([json!(5), json!(5.5), json!(-5), json!({}), json!([])].map(|v| ("/bot/events", "telegramId", v)));
    table.extend([json!(1), json!("{}"), json!([]), json!(null)].map(|v| ("/bot/events", "payload", v)));
    table.push(("/bot/events", "payload", json!({"a": "x".repeat(16 << 10)})));
    table.extend([json!(1), json!(null), json!([])].map(|v| ("/bot/events", "eventType", v)));
    for list in ["processedIds", "retryIds"] {
        table.extend([json!(1), json!("1"), json!({}), json!(null)].map(|v| ("/bot/events/ack", list, v)));
    }
    for (path, field, value) in table {
        let answer = server.post(path, replace(path, field, &value)).await;
        assert_eq!(answer.problem(422, "invalid_body"), [field], "{path} {field} {value}");
    }
}

#[tokio::test]
async fn an_id_in_a_list_is_named_with_its_place() {
    let server = TestServer::start().await;
    let wrong = [json!("1"), json!(1.5), json!(-1), json!(0), json!(u64::MAX), json!(1e20), json!(null), json!(true)];
    for id in wrong {
        let answer = server.post("/bot/events/ack", json!({"processedIds": [1, 2, 3, id]})).await;
        assert_eq!(answer.problem(422, "invalid_body"), ["processedIds[3]"], "{id}");
        let answer = server.post("/bot/events/ack", json!({"retryIds": [1, id]})).await;
        assert_eq!(answer.problem(422, "invalid_body"), ["retryIds[1]"], "{id}");
        let answer = server.post("/bot/events/ack", json!({"retryIds": [{"id": id}]})).await;
        assert_eq!(answer.problem(422, "invalid_body"), ["retryIds[0].id"], "{id}");
    }
    let cases = [
        (json!({"retryIds": [{"id": 1, "error": 5}]}), "retryIds[0].error"),
        (json!({"retryIds": [{"error": "e"}]}), "retryIds[0].id"),
        (json!({"retryIds": [{"id": 1, "more": 5}]}), "retryIds[0].more"),
        (json!({"retryIds": [[1]]}), "retryIds[0]"),
    ];
    for (body, field) in cases {
        assert_eq!(server.post("/bot/events/ack", body).await.problem(422, "invalid_body"), [field]);
    }
}

#[tokio::test]
async fn a_whole_number_may_be_spelt_with_a_point_or_an_exponent() {
    let server = TestServer::start().await;
    for (at, number) in ["7", "7.0", "70e-1", "0.7E1"].into_iter().enumerate() {
        let event = format!(r#"{{"eventType": "registered", "magnetUid": {number}, "dedupKey": "k{at}"}}"#);
        let emitted = post_bytes(&server, "/bot/events", Some("application/json"), event.as_bytes()).await;
        assert_eq!(emitted.status, 201, "{number}: {}", emitted.text());
        let ack = format!(r#"{{"processedIds": [{number}], "retryIds": [{number}, {{"id": {number}}}]}}"#);
        let done = post_bytes(&server, "/bot/events/ack", Some("application/json"), ack.as_bytes()).await;
        assert_eq!(done.status, 200, "{number}: {}", done.text());
    }
    let page = server.get("/bot/events/pending").await.json();
    let members: Vec<_> = page["events"].as_array().unwrap().iter().map(|event| event["magnetUid"].clone()).collect();
    assert_eq!(members, [7, 7, 7, 7]);
    // Past 2^53 a double may already be another number.
    for number in ["9007199254740992.0", "1e300", "-1.0", "0.0", "0.5"] {
        let event = format!(r#"{{"eventType": "registered", "magnetUid": {number}}}"#);
        let answer = post_bytes(&server, "/bot/events", Some("application/json"), event.as_bytes()).await;
        assert_eq!(answer.problem(422, "invalid_body"), ["magnetUid"], "{number}");
    }
}

#[tokio::test]
async fn missing_unknown_and_doubled_fields_are_named() {
    let server = TestServer::start().await;
    for path in TAKE_BODIES {
        let answer = server.post(path, replace(path, "extra", &json!(1))).await;
        assert_eq!(answer.problem(422, "invalid_body"), ["extra"], "{path}");
        for root in [json!(null), json!([]), json!("x"), json!(1), json!(true)] {
            server.post(path, root).await.problem(422, "invalid_body");
        }
    }
    for (path, field) in [
        ("/bot/events", "eventType"),
        ("/bot/notification", "magnetUid"),
        ("/bot/notification", "kind"),
        ("/bot/notification", "title"),
        ("/bot/notification", "body"),
    ] {
        let mut body = valid(path);
        body.as_object_mut().unwrap().remove(field);
        assert_eq!(server.post(path, body).await.problem(422, "invalid_body"), [field]);
    }
    let twice = br#"{"eventType": "registered", "magnetUid": 1, "magnetUid": 2}"#;
    let answer = post_bytes(&server, "/bot/events", Some("application/json"), twice).await;
    assert_eq!(answer.problem(422, "invalid_body"), ["magnetUid"]);
    let nobody = server.post("/bot/events", json!({"eventType": "registered"})).await;
    assert_eq!(nobody.problem(422, "no_subject"), ["telegramId", "magnetUid"]);
    for word in ["", "Registered", "registered ", "нет", "x\u{0}"] {
        let answer = server.post("/bot/events", replace("/bot/events", "eventType", &json!(word))).await;
        assert_eq!(answer.problem(422, "unknown_event_type"), ["eventType"], "{word:?}");
    }
    assert_eq!(server.pending("").await, Vec::<i64>::new(), "nothing of all this was stored");
}

#[tokio::test]
async fn query_parameters_are_known_and_given_once() {
    let server = TestServer::start().await;
    let limits =
        ["", "0", "00", "-1", "+1", "%2B1", "1.0", "1e2", "abc", "1,2", "%FF", "0x10", "%D9%A1", "%20", "null"];
    for limit in limits {
        let answer = server.get(&format!("/bot/events/pending?limit={limit}")).await;
        assert_eq!(answer.problem(400, "invalid_query"), ["limit"], "{limit}");
    }
    for (query, field) in [("limit=1&limit=1", "limit"), ("limit=1&page=2", "page"), ("Limit=1", "Limit"), ("x", "x")] {
        let answer = server.get(&format!("/bot/events/pending?{query}")).await;
        assert_eq!(answer.problem(400, "invalid_query"), [field], "{query}");
    }
    for path in TAKE_BODIES {
        let answer = server.post(&format!("{path}?dry_run=1"), valid(path)).await;
        assert_eq!(answer.problem(400, "invalid_query"), ["dry_run"], "{path}");
    }
    assert_eq!(server.get("/bot/events/pending?").await.status, 200);
}

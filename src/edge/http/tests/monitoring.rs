//! What monitoring asks, and request ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::routing::get;
use serde_json::json;

use super::{ReadyCheck, SECRET, Setup, TestServer, record_log, wallet};
use crate::kernel::store::StoreError;

#[tokio::test]
async fn livez_and_readyz_answer_without_a_secret() {
    let healthy = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&healthy);
    let consumer =
        ReadyCheck::new(
            "consumer",
            move || if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("it stands still".into()) },
        );
    let server = TestServer::with(Setup { checks: vec![consumer], ..Setup::default() }).await;
    assert_eq!(server.send("GET", "/livez", &[], b"").await.json(), json!({"status": "ok"}));
    let ready = server.send("GET", "/readyz", &[], b"").await;
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json(), json!({"status": "ok", "checks": {"store": {"ok": true}, "consumer": {"ok": true}}}));
    healthy.store(false, Ordering::Relaxed);
    let ready = server.send("GET", "/readyz", &[], b"").await;
    let consumer = json!({"ok": false, "detail": "it stands still"});
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json(), json!({"status": "failing", "checks": {"store": {"ok": true}, "consumer": consumer}}));
    let head = server.send("HEAD", "/readyz", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (503, 0));
}

#[tokio::test]
async fn a_store_that_cannot_write_is_not_ready_and_refuses_intake() {
    let server = TestServer::start().await;
    server.db.close().await;
    let ready = server.send("GET", "/readyz", &[], b"").await;
    assert_eq!((ready.status, &ready.json()["checks"]["store"]["ok"]), (503, &json!(false)));
    let answer = server.post("/bot/events", wallet(1)).await;
    answer.problem(503, "shutting_down");
    assert_eq!(answer.find_header("retry-after"), Some("5"));
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status, 200);
}

#[tokio::test]
async fn a_nearly_full_disk_refuses_intake_and_takes_acknowledgements() {
    let server = TestServer::with(Setup { min_free: u64::MAX, ..Setup::default() }).await;
    let emitted = server.post("/bot/events", wallet(1)).await;
    emitted.problem(503, "disk_low");
    assert_eq!(emitted.find_header("retry-after"), Some("30"));
    assert_eq!(server.ack(json!({"processedIds": [1]})).await, [0, 0, 0, 0, 1]);
    let note = json!({"magnetUid": 7, "kind": "k", "title": "T", "body": "b"});
    server.post("/bot/notification", note).await.problem(503, "disk_low");
}

#[tokio::test]
async fn a_full_queue_is_a_503_that_says_when_to_come_back() {
    let server = TestServer::with(Setup { queue: 0, ..Setup::default() }).await;
    let answer = server.post("/bot/events", wallet(1)).await;
    answer.problem(503, "store_queue_full");
    assert_eq!(answer.find_header("retry-after"), Some("1"));
    assert_eq!(server.ack(json!({"processedIds": [1]})).await, [0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn a_fault_of_ours_tells_the_client_its_request_id_only() {
    let server = TestServer::start().await;
    let drop = "ALTER TABLE web_notifications RENAME TO gone";
    let dropped: Result<(), StoreError> = server.db.write(move |tx| tx.execute(drop, []).map(|_| ())).await;
    dropped.unwrap();
    let body = json!({"magnetUid": 7, "kind": "k", "title": "T", "body": "b"});
    let answer = server.post("/bot/notification", body).await;
    assert_eq!(answer.problem(500, "internal"), Vec::<String>::new());
    assert!(!answer.text().contains("web_notifications"), "{}", answer.text());
}

#[tokio::test]
async fn metrics_count_what_is_there_and_name_nobody() {
    let server = TestServer::start().await;
    server.emit(json!({"eventType": "registered", "telegramId": "4711004711", "magnetUid": 4_711_004_712_i64})).await;
    server.get("/no/such/4711004711").await;
    server.advance(90);
    let answer = server.send("GET", "/metrics", &[], b"").await;
    assert_eq!(answer.find_header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.text();
    let version = format!("pillarbox_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    for line in [
        "# TYPE pillarbox_bot_events_open gauge",
        "pillarbox_bot_events_oldest_open_age_seconds ",
        "pillarbox_bot_events_dead ",
        "pillarbox_db_size_bytes ",
        "pillarbox_wal_size_bytes ",
        "pillarbox_disk_free_bytes ",
        "# TYPE pillarbox_http_request_seconds histogram",
        "# TYPE pillarbox_commit_batch_size histogram",
        r#"pillarbox_http_requests_total{method="POST",route="/bot/events",status="201"}"#,
        r#"pillarbox_http_requests_total{method="GET",route="unmatched",status="404"}"#,
        &version,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("47110047"), "{text}");
}

#[tokio::test]
async fn a_well_formed_request_id_is_kept_and_any_other_is_replaced() {
    let server = TestServer::start().await;
    let longest = "a".repeat(64);
    for id in ["abc-1.2_3", "x", &longest] {
        let answer = server.send("GET", "/livez", &[("X-Request-Id", id.as_bytes())], b"").await;
        assert_eq!(answer.find_header("x-request-id"), Some(id));
    }
    let too_long = "a".repeat(65);
    for id in ["", "a b", "a\tb", "<script>", "a/b", &too_long, "я"] {
        let answer = server.send("GET", "/nothing", &[("X-Request-Id", id.as_bytes())], b"").await;
        let given = answer.find_header("x-request-id").unwrap();
        assert_eq!(given.len(), 36, "{id:?} became {given}");
        answer.problem(404, "not_found");
    }
    let auth = format!("Bearer {SECRET}");
    let headers = [("X-Request-Id", b"mine".as_slice()), ("Authorization", auth.as_bytes())];
    let answer = server.send("POST", "/bot/events", &headers, b"").await;
    assert_eq!(answer.json()["request_id"], "mine");
}

#[tokio::test]
async fn unknown_addresses_and_methods_are_problems_too() {
    let server = TestServer::start().await;
    for path in ["/", "/bot", "/bot/events/", "/bot/events/pending/1", "/livez/x", "/%00", "//bot/events", "/..%2f"] {
        server.get(path).await.problem(404, "not_found");
    }
    for (method, path, allow) in [
        ("POST", "/bot/events/pending", "GET,HEAD"),
        ("GET", "/bot/events", "POST"),
        ("PUT", "/bot/events", "POST"),
        ("DELETE", "/bot/events/ack", "POST"),
        ("PROPFIND", "/bot/notification", "POST"),
        ("POST", "/livez", "GET,HEAD"),
        ("DELETE", "/metrics", "GET,HEAD"),
    ] {
        let answer = server.call(method, path, None).await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.find_header("allow"), Some(allow), "{method} {path}");
    }
    for path in ["/livez", "/readyz", "/metrics", "/bot/events/pending"] {
        let head = server.call("HEAD", path, None).await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
    }
}

#[tokio::test]
async fn a_panic_is_a_500_and_the_server_goes_on() {
    async fn panics() -> &'static str {
        panic!("on purpose")
    }
    let others = Router::new().route("/panics", get(panics));
    let server = TestServer::with(Setup { others, ..Setup::default() }).await;
    server.get("/panics").await.problem(500, "internal");
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn a_request_leaves_one_line_that_tells_nothing_personal() {
    let (page, _guard) = record_log();
    let server = TestServer::start().await;
    let body = json!({"eventType": "registered", "telegramId": "4711004711", "payload": {"name": "Ada"}});
    let emitted = server.post("/bot/events", body).await;
    server.get("/bot/events/pending?limit=77").await;
    server.get("/auth/check-account-by-telegram/4711004711?name=Ada").await;
    server.get("/auth/4711004711?name=Ada").await;
    server.send("POST", "/bot/events", &[("Authorization", b"Bearer guessed-4711")], b"Ada").await;
    for path in ["/livez", "/readyz", "/metrics"] {
        server.get(path).await;
    }
    let told: Vec<_> = page.lines().into_iter().filter(|line| line["message"] == "request answered").collect();
    let seen: Vec<_> = told.iter().map(|line| (&line["spans"][0]["route"], line["status"].as_u64().unwrap())).collect();
    let expected = [
        (&json!("/bot/events"), 201),
        (&json!("/bot/events/pending"), 200),
        (&json!("/auth/check-account-by-telegram/{telegram_id}"), 400),
        (&json!("unmatched"), 404),
        (&json!("/bot/events"), 401),
    ];
    assert_eq!(seen, expected);
    assert_eq!(told[0]["spans"][0]["request.id"].as_str(), emitted.find_header("x-request-id"));
    assert!(told[0]["took_ms"].is_number() && told[0]["spans"][0]["method"] == "POST");
    for word in ["4711", "Ada", "limit", SECRET] {
        assert!(!page.text().contains(word), "{word} in {}", page.text());
    }
}

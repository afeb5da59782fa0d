//! `/leads`: who may post, in which order it is looked at, and that a page can read whatever it is answered.

use std::future::IntoFuture;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Answer, Limits, Setup, TestServer, record_log};

const SITE: &str = "https://site.example";
const ID: &str = "5c3f1f0e-8d7b-4c69-9f5a-2b7a6f0d9c11";

fn setup(sets: &'static [&'static str]) -> Setup {
    Setup { sets, ..Setup::default() }
}

async fn server() -> TestServer {
    TestServer::with(setup(&["leads.allowed_origins=https://site.example, http://localhost:3000"])).await
}

/// A lead that is complete.
fn lead(request_id: &str) -> Value {
    json!({
        "schema_version": 1, "request_id": request_id, "form_version": "2", "submitted_at": "2027-01-15T08:00:00Z",
        "form_fill_ms": 9000, "source_page": "/form", "page_url": "https://site.example/form", "page_title": "Form",
        "referrer": "", "client": {"name": "Иван", "phone": "+7 916 123-45-67", "city": "Москва"},
        "mortgage": {"scenario": "Новостройка", "object_price": "5 000 000"},
        "personal_data_consent": "yes", "consent": true,
        "spam_check": {"honeypot_empty": true, "form_fill_ms": 9000, "likely_bot": false}
    })
}

/// A request of exactly these headers beside those of a JSON post from the site.
async fn send(server: &TestServer, method: &str, more: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut headers = vec![("Origin", SITE.as_bytes()), ("Content-Type", b"application/json")];
    for (name, value) in more {
        headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            headers.push((name, value.as_bytes()));
        }
    }
    server.send(method, "/leads", &headers, body).await
}

async fn post(server: &TestServer, body: &Value) -> Answer {
    send(server, "POST", &[], body.to_string().as_bytes()).await
}

/// Asserts a whole refusal, to the byte, that a page of `origin` can read.
#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str, origin: Option<&str>) {
    let body = format!(r#"{{"ok":false,"success":false,"error_code":"{code}","request_id":null}}"#);
    assert_eq!((answer.status, answer.text()), (status, body), "{answer:?}");
    assert_marked(answer, origin);
}

#[track_caller]
fn assert_marked(answer: &Answer, origin: Option<&str>) {
    assert_eq!(answer.find_header("access-control-allow-origin"), origin, "{answer:?}");
    assert_eq!(answer.find_header("vary"), Some("Origin"), "{answer:?}");
    assert_eq!(answer.find_header("cache-control"), Some("no-store"), "{answer:?}");
    assert_eq!(answer.find_header("access-control-allow-credentials"), None);
    assert!(answer.find_header("x-request-id").is_some());
}

#[tokio::test]
async fn a_lead_is_stored_once_and_a_repeat_is_told_so() {
    let server = server().await;
    let first = post(&server, &lead(ID)).await;
    let told = |duplicate: bool| {
        format!(
            r#"{{"ok":true,"success":true,"duplicate":{duplicate},"request_id":"{ID}","notification_status":"disabled"}}"#
        )
    };
    assert_eq!((first.status, first.text()), (201, told(false)));
    assert_eq!(first.find_header("content-type"), Some("application/json"));
    assert_marked(&first, Some(SITE));
    let again = post(&server, &lead(ID)).await;
    assert_eq!((again.status, again.text()), (200, told(true)));
    assert_marked(&again, Some(SITE));
}

#[tokio::test]
async fn a_preflight_tells_an_allowed_page_what_it_may_send() {
    let server = server().await;
    // A browser writes the first two; the others are the same origin in another spelling.
    for origin in [SITE, "http://localhost:3000", "https://site.example:443", "https://SITE.example"] {
        let asked = [("Origin", origin), ("Access-Control-Request-Method", "POST"), ("Content-Type", "")];
        let answer = send(&server, "OPTIONS", &asked, b"").await;
        assert_eq!((answer.status, answer.text().as_str()), (204, ""));
        assert_marked(&answer, Some(origin));
        assert_eq!(answer.find_header("access-control-allow-methods"), Some("POST, OPTIONS"));
        assert!(answer.find_header("access-control-allow-headers").unwrap().contains("content-type"));
        assert!(answer.find_header("access-control-max-age").is_some());
    }
    let refused = send(&server, "OPTIONS", &[("Origin", "https://evil.example")], b"").await;
    assert_refused(&refused, 403, "origin_not_allowed", None);
    assert_eq!(refused.find_header("access-control-allow-methods"), None);
}

#[tokio::test]
async fn only_the_very_origins_of_the_list_may_post() {
    let server = server().await;
    for origin in [
        "",
        "null",
        "*",
        "https://site.example:8443",
        "http://site.example",
        "https://sub.site.example",
        "https://site.example.evil.example",
        "https://evil.example/https://site.example",
        "https://site.example, http://localhost:3000",
        "http://localhost",
        "саит",
    ] {
        for method in ["POST", "OPTIONS", "GET"] {
            let answer = send(&server, method, &[("Origin", origin)], b"not json").await;
            assert_refused(&answer, 403, "origin_not_allowed", None);
        }
    }
    let twice = [("Origin", SITE.as_bytes()), ("Origin", SITE.as_bytes()), ("Content-Type", b"application/json")];
    let answer = server.send("POST", "/leads", &twice, b"{}").await;
    assert_refused(&answer, 403, "origin_not_allowed", None);
}

#[tokio::test]
async fn nobody_may_post_by_default_and_programs_only_if_they_are_let() {
    let closed = TestServer::start().await;
    assert_refused(&post(&closed, &lead(ID)).await, 403, "origin_not_allowed", None);
    let open = TestServer::with(setup(&["leads.allow_originless=true"])).await;
    let answer = send(&open, "POST", &[("Origin", "")], lead(ID).to_string().as_bytes()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_marked(&answer, None);
    assert_refused(&post(&open, &lead(ID)).await, 403, "origin_not_allowed", None);
}

#[tokio::test]
async fn the_first_check_that_fails_is_the_one_that_is_told() {
    let server = server().await;
    let large = vec![b' '; 65_537];
    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD"] {
        let answer = send(&server, method, &[("Content-Type", "text/plain")], &large).await;
        assert_eq!((answer.status, answer.find_header("allow")), (405, Some("POST, OPTIONS")), "{answer:?}");
        assert_marked(&answer, Some(SITE));
        if method != "HEAD" {
            assert_refused(&answer, 405, "method_not_allowed", Some(SITE));
        }
    }
    for content_type in ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=cp1251"] {
        let answer = send(&server, "POST", &[("Content-Type", content_type)], &large).await;
        assert_refused(&answer, 415, "content_type_not_supported", Some(SITE));
    }
    assert_refused(&send(&server, "POST", &[], &large).await, 413, "payload_too_large", Some(SITE));
    for body in [&b""[..], b"{", b"[]", b"1", b"null", b"\"{}\"", b"{}{}", b"\xff", &[b'['; 60_000]] {
        let answer = send(&server, "POST", &[], body).await;
        assert_refused(&answer, 400, "invalid_json", Some(SITE));
    }
    assert_refused(&post(&server, &json!({})).await, 422, "validation_failed", Some(SITE));
    for content_type in ["application/json; charset=UTF-8", "Application/JSON", "application/vnd.lead+json"] {
        let answer = send(&server, "POST", &[("Content-Type", content_type)], b"{}").await;
        assert_eq!(answer.status, 422, "{content_type}: {answer:?}");
    }
}

#[tokio::test]
async fn a_body_is_measured_whatever_it_announces() {
    let server =
        TestServer::with(setup(&["leads.allowed_origins=https://site.example", "leads.max_body_bytes=4096"])).await;
    let head = format!(
        "POST /leads HTTP/1.1\r\nHost: t\r\nOrigin: {SITE}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    );
    let announced = format!("{head}Content-Length: 4097\r\nExpect: 100-continue\r\n\r\n");
    assert_refused(&server.raw(announced.as_bytes()).await, 413, "payload_too_large", Some(SITE));
    let chunk = "x".repeat(0x801);
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n801\r\n{chunk}\r\n801\r\n{chunk}\r\n0\r\n\r\n");
    assert_refused(&server.raw(chunked.as_bytes()).await, 413, "payload_too_large", Some(SITE));
    let mut full = lead(ID);
    let room = 4096 - full.to_string().len() - r#","filler":"""#.len();
    full["filler"] = json!("x".repeat(room));
    assert_eq!(full.to_string().len(), 4096);
    assert_eq!(post(&server, &full).await.status, 201, "a body of the greatest size is taken");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_told_in_the_envelope() {
    let sets = &["leads.allowed_origins=https://site.example"];
    let half = format!(
        "POST /leads HTTP/1.1\r\nHost: t\r\nOrigin: {SITE}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\nConnection: close\r\n\r\n{{\"request"
    );
    let slow_body = |limits: &mut Limits| limits.body = Duration::from_millis(50);
    let server = TestServer::with(Setup { limits: slow_body, ..setup(sets) }).await;
    assert_refused(&server.raw(half.as_bytes()).await, 408, "body_too_slow", Some(SITE));
    let slow_request = |limits: &mut Limits| limits.request = Duration::from_millis(200);
    let server = TestServer::with(Setup { limits: slow_request, ..setup(sets) }).await;
    assert_refused(&server.raw(half.as_bytes()).await, 503, "backend_unavailable", Some(SITE));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(half.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    if !all.is_empty() {
        assert_refused(&Answer::parse(&all), 400, "invalid_json", Some(SITE));
    }
}

#[tokio::test]
async fn a_store_that_takes_nothing_is_unavailable() {
    let sets = &["leads.allowed_origins=https://site.example"];
    let full = TestServer::with(Setup { min_free: u64::MAX, ..setup(sets) }).await;
    assert_refused(&post(&full, &lead(ID)).await, 503, "backend_unavailable", Some(SITE));
    let closed = TestServer::with(setup(sets)).await;
    closed.db.close().await;
    assert_refused(&post(&closed, &lead(ID)).await, 503, "backend_unavailable", Some(SITE));
}

#[tokio::test]
async fn a_visitor_who_posts_too_often_is_told_when_to_come_back() {
    let sets = &["leads.allowed_origins=https://site.example", "leads.rate_limit_per_hour=2"];
    let server = TestServer::with(setup(sets)).await;
    server.advance(600);
    let ids = ["IP-20270115-AAAAAA", "IP-20270115-BBBBBB", "IP-20270115-CCCCCC"];
    let mut spam = lead(ids[0]);
    spam["spam_check"]["likely_bot"] = json!(true);
    let answer = post(&server, &spam).await;
    let body = format!(r#"{{"ok":false,"success":false,"error_code":"request_rejected","request_id":"{}"}}"#, ids[0]);
    assert_eq!((answer.status, answer.text()), (202, body));
    assert_eq!(post(&server, &lead(ids[1])).await.status, 201);
    let answer = post(&server, &lead(ids[2])).await;
    let body = format!(
        r#"{{"ok":false,"success":false,"error_code":"rate_limit_exceeded","request_id":"{}","retry_after_seconds":3000}}"#,
        ids[2]
    );
    assert_eq!((answer.status, answer.text()), (429, body));
    assert_eq!(answer.find_header("retry-after"), Some("3000"));
    assert_marked(&answer, Some(SITE));
    assert_eq!(post(&server, &lead(ids[1])).await.status, 200, "a repeat costs nothing");
}

#[tokio::test]
async fn visitors_behind_a_trusted_proxy_are_told_apart_and_others_are_not_believed() {
    const ONE_AN_HOUR: &[&str] = &["leads.allowed_origins=https://site.example", "leads.rate_limit_per_hour=1"];
    const NO_PROXY: &[&str] =
        &["leads.allowed_origins=https://site.example", "leads.rate_limit_per_hour=1", "http.trusted_proxies=none"];
    let behind = TestServer::with(setup(ONE_AN_HOUR)).await;
    let direct = TestServer::with(setup(NO_PROXY)).await;
    for (number, forwarded, status) in [
        (0, "203.0.113.1", [201, 201]),
        (1, "203.0.113.2", [201, 429]),
        (2, "198.51.100.7, 203.0.113.2", [429, 429]),
        (3, "203.0.113.3:4711, 127.0.0.1", [201, 429]),
        (4, "203.0.113.1, nonsense", [201, 429]),
        (5, "", [429, 429]),
    ] {
        let body = lead(&format!("IP-20270115-PROXY{number}"));
        for (server, status) in [&behind, &direct].into_iter().zip(status) {
            let headers = [("X-Forwarded-For", forwarded)];
            let answer = send(server, "POST", &headers, body.to_string().as_bytes()).await;
            assert_eq!(answer.status, status, "{forwarded:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_request_without_its_peer_is_no_error() {
    let mut server = server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server.address = listener.local_addr().unwrap();
    // axum's own loop tells the routes nothing of the peer.
    let serving = tokio::spawn(axum::serve(listener, server.routes.clone()).into_future());
    assert_eq!(post(&server, &lead(ID)).await.status, 201);
    serving.abort();
}

#[tokio::test]
async fn refusals_are_logged_by_their_codes_and_nothing_of_the_lead_is() {
    let (page, _guard) = record_log();
    let server = server().await;
    let mut invalid = lead(ID);
    invalid["client"]["name"] = json!("");
    invalid["request_id"] = Value::Null;
    post(&server, &invalid).await;
    post(&server, &lead(ID)).await;
    send(&server, "POST", &[("Origin", "https://evil.example")], b"").await;
    let lines = page.lines();
    let codes: Vec<_> = lines.iter().filter_map(|line| line["error_code"].as_str()).collect();
    assert_eq!(codes, ["validation_failed", "origin_not_allowed"]);
    assert!(lines.iter().any(|line| line["faults"].as_str().is_some_and(|faults| faults.contains("name_required"))));
    assert!(lines.iter().any(|line| line["origin"] == "https://evil.example"), "{}", page.text());
    assert!(lines.iter().any(|line| line["lead.request_id"] == ID && line["message"] == "a lead was stored"));
    for secret in ["Иван", "916 123", "79161234567", "Москва"] {
        assert!(!page.text().contains(secret), "{secret}: {}", page.text());
    }
    let metrics = server.get("/metrics").await.text();
    for outcome in ["stored", "validation_failed", "origin_not_allowed"] {
        assert!(metrics.contains(&format!("pillarbox_leads_requests_total{{outcome=\"{outcome}\"}}")), "{outcome}");
    }
}

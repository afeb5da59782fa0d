//! Faults of every kind, as the bytes a client sees.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

fn hello(chat_id: i64) -> Value {
    json!({"chat_id": chat_id, "text": "hello"})
}

#[tokio::test]
async fn a_fault_answers_its_times_and_then_the_server_is_well_again() {
    let bench = Bench::start().await;
    bench.fault(json!({"method": "sendmessage", "chat_id": 5, "status": 403, "times": 2})).await;
    bench.fault(json!({"status": 500, "description": "Internal Server Error: restart"})).await;
    let blocked = (403, "Forbidden: bot was blocked by the user".to_owned());
    assert_eq!(bench.refused("sendMessage", hello(5)).await, blocked);
    assert_eq!(bench.refused("sendMessage", hello(6)).await, (500, "Internal Server Error: restart".into()));
    bench.ok("sendMessage", hello(6)).await;
    assert_eq!(bench.get("/dev/telegram/faults").await["faults"].as_array().expect("a list").len(), 1);
    assert_eq!(bench.refused("sendMessage", hello(5)).await, blocked);
    bench.ok("sendMessage", hello(5)).await;
    assert_eq!(bench.get("/dev/telegram/faults").await, json!({"faults": []}));
    assert_eq!(bench.messages().await.len(), 2);
}

#[tokio::test]
async fn a_flood_says_how_long_to_wait_in_body_and_header() {
    let bench = Bench::start().await;
    bench.fault(json!({"retry_after": 35})).await;
    let url = format!("{}/bot{TOKEN}/sendMessage", bench.url);
    let response = bench.http.post(url).json(&hello(5)).send().await.expect("answers");
    assert_eq!(response.headers()["retry-after"], "35");
    let body: Value = response.json().await.expect("is JSON");
    let expected = json!({
        "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 35",
        "parameters": {"retry_after": 35},
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_gateway_answers_in_html() {
    let bench = Bench::start().await;
    bench.fault(json!({"status": 502, "body": "<html>502</html>", "content_type": "text/html"})).await;
    let url = format!("{}/bot{TOKEN}/sendMessage", bench.url);
    let response = bench.http.post(url).json(&hello(5)).send().await.expect("answers");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (502, &"text/html".parse().expect("ok"))
    );
    assert_eq!(response.text().await.expect("is text"), "<html>502</html>");
    assert!(bench.messages().await.is_empty());
}

#[tokio::test]
async fn a_dropped_answer_is_accepted_and_not_one_byte_comes_back() {
    let bench = Bench::start().await;
    bench.fault(json!({"drop_response": true})).await;
    let body = hello(5).to_string();
    let address = bench.url.strip_prefix("http://").expect("is http");
    let head =
        format!("POST /bot{TOKEN}/sendMessage HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    let mut stream = TcpStream::connect(address).await.expect("connects");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.expect("sends");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.expect("is closed");
    assert_eq!(String::from_utf8_lossy(&received), "");
    assert_eq!(bench.messages().await[0]["text"], "hello");
}

#[tokio::test]
async fn a_late_answer_was_accepted_before_it_was_late() {
    let bench = Bench::start().await;
    bench.fault(json!({"delay_ms": 60_000})).await;
    let request = bench.http.post(format!("{}/bot{TOKEN}/sendMessage", bench.url)).json(&hello(5));
    let error = request.timeout(Duration::from_millis(300)).send().await.expect_err("is too late");
    assert!(error.is_timeout());
    assert_eq!(bench.messages().await.len(), 1);
    bench.fault(json!({"delay_ms": 50})).await;
    let began = Instant::now();
    assert_eq!(bench.ok("sendMessage", hello(5)).await["text"], "hello");
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_broken_answer_with_status_200_was_accepted() {
    let bench = Bench::start().await;
    bench.fault(json!({"body": "{\"ok\":tr", "content_type": "application/json"})).await;
    let response = bench.http.post(format!("{}/bot{TOKEN}/sendMessage", bench.url)).json(&hello(5)).send().await;
    assert_eq!(response.expect("answers").text().await.expect("is text"), "{\"ok\":tr");
    assert_eq!(bench.messages().await.len(), 1);
}

#[tokio::test]
async fn faults_that_make_no_sense_are_refused_and_named() {
    let bench = Bench::start().await;
    for (fault, field) in [
        (json!({}), "status"),
        (json!({"status": 42}), "status"),
        (json!({"status": "x"}), "status"),
        (json!({"status": 500, "times": 0}), "times"),
        (json!({"status": 500, "times": -1}), "times"),
        (json!({"status": 500, "method": "sendPigeon"}), "method"),
        (json!({"status": 500, "colour": "red"}), "colour"),
    ] {
        let (status, body) = bench.post("/dev/telegram/faults", fault).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(body["detail"].as_str().expect("is a text").contains(field), "{body}");
    }
    bench.fault(json!({"status": 500, "times": 3})).await;
    assert_eq!(bench.delete("/dev/telegram/faults").await, StatusCode::OK);
    bench.ok("getMe", json!({})).await;
}

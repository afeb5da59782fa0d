//! The test button: what a person is told of a request that was sent at once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::World;
use crate::edge::http::tests::{Setup, TestServer};
use crate::edge::http::v1::MOST_TESTS;
use crate::tenants::Role;

/// A receiver that answers every request so, as often as there are permits; its address, and what it was sent.
struct Receiver {
    url: String,
    seen: tokio::sync::mpsc::UnboundedReceiver<String>,
    answers: Arc<Semaphore>,
}

impl Receiver {
    async fn start(answer: &'static str, permits: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let (tell, seen) = tokio::sync::mpsc::unbounded_channel();
        let answers = Arc::new(Semaphore::new(permits));
        let gate = Arc::clone(&answers);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (tell, gate) = (tell.clone(), Arc::clone(&gate));
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    let _ = tell.send(request);
                    gate.acquire().await.unwrap().forget();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Self { url, seen, answers }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut part = [0; 4096];
        let length = stream.read(&mut part).await.unwrap();
        text.push_str(std::str::from_utf8(&part[..length]).unwrap());
        let announced = text
            .to_ascii_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if length == 0 || announced.is_some() && announced == body {
            return text;
        }
    }
}

async fn start() -> World {
    World { server: TestServer::with(Setup { allow_insecure: true, ..Setup::default() }).await }
}

async fn endpoint_at(world: &World, key: &str, url: &str) -> String {
    let made = world.server.ask(key, "POST", "/v1/endpoints", Some(&json!({ "url": url }))).await;
    assert_eq!(made.status, 201, "{made:?}");
    format!("/v1/endpoints/{}", made.json()["id"].as_str().unwrap())
}

async fn recorded(world: &World) -> Vec<String> {
    world
        .server
        .column("SELECT COALESCE(http_status, '-') || ' ' || COALESCE(error, '-') FROM webhook_tests ORDER BY id")
        .await
}

#[tokio::test]
async fn both_sides_of_a_test_are_shown_as_they_were() {
    let world = start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let answer = "HTTP/1.1 201 Created\r\nX-A: 1\r\nX-B: 2\r\nX-B: 3\r\nContent-Length: 6\r\n\r\nthanks";
    let mut receiver = Receiver::start(answer, 1).await;
    let at = endpoint_at(&world, &key, &receiver.url).await;
    let tested = world.server.ask(&key, "POST", &format!("{at}/test"), None).await;
    assert_eq!(tested.status, 200, "{tested:?}");
    let told = tested.json();
    assert_eq!((&told["delivered"], &told["http_status"], &told["error"]), (&json!(true), &json!(201), &json!(null)));
    assert!(told["duration_ms"].is_u64());
    let response = &told["response"];
    assert_eq!(
        (&response["body"], &response["headers"]["x-a"], &response["headers"]["x-b"]),
        (&json!("thanks"), &json!("1"), &json!("2, 3"))
    );
    let request = receiver.seen.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(told["request"]["body"], body);
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type", "user-agent"] {
        let line = format!("{name}: {}", told["request"]["headers"][name].as_str().unwrap());
        assert!(
            head.lines().any(|sent| sent.eq_ignore_ascii_case(&line)
                || sent.to_ascii_lowercase().starts_with(name) && sent.ends_with(line.split_once(": ").unwrap().1)),
            "{line}: {head}"
        );
    }
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["type"], &body["tenant"]), (&json!("webhook.test"), &json!("acme")));
    assert_eq!(recorded(&world).await, ["201 -"]);
    assert_eq!(world.server.column("SELECT id FROM webhook_deliveries").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_test_that_does_not_arrive_says_why_and_is_no_error() {
    let world = start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let refusing = Receiver::start("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", 1).await;
    let at = endpoint_at(&world, &key, &refusing.url).await;
    world.server.ask(&key, "PATCH", &at, Some(&json!({"status": "paused"}))).await;
    let told = world.server.ask(&key, "POST", &format!("{at}/test"), None).await.json();
    assert_eq!(
        (&told["delivered"], &told["http_status"], &told["error"]),
        (&json!(false), &json!(503), &json!("http_5xx"))
    );
    assert_eq!(told["response"]["body"], "no");

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let at = endpoint_at(&world, &key, &format!("http://{closed}/")).await;
    let told = world.server.ask(&key, "POST", &format!("{at}/test"), None).await.json();
    assert_eq!(
        (&told["delivered"], &told["http_status"], &told["error"]),
        (&json!(false), &json!(null), &json!("connect"))
    );
    assert_eq!(told["response"], json!(null));
    assert!(told["request"]["headers"]["webhook-signature"].is_string());

    // What was allowed when it was written may be forbidden now.
    let forbid = "UPDATE webhook_endpoints SET url = 'https://10.0.0.1/'";
    world.server.db.write(move |tx| tx.execute(forbid, []).map(|_| ())).await.unwrap();
    let told = world.server.ask(&key, "POST", &format!("{at}/test"), None).await.json();
    assert_eq!(
        (&told["delivered"], &told["error"], &told["response"]),
        (&json!(false), &json!("blocked"), &json!(null))
    );
    assert_eq!(recorded(&world).await, ["503 http_5xx", "- connect", "- blocked"]);
}

#[tokio::test]
async fn tests_of_a_receiver_that_hangs_do_not_take_every_connection() {
    let world = start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let mut hanging = Receiver::start("HTTP/1.1 204 No Content\r\n\r\n", 0).await;
    let at = endpoint_at(&world, &key, &hanging.url).await;
    let path = format!("{at}/test");
    let tests = (0..MOST_TESTS).map(|_| world.server.ask(&key, "POST", &path, None));
    let tests = async {
        for test in futures_util::future::join_all(tests).await {
            assert_eq!((test.status, &test.json()["delivered"]), (200, &json!(true)));
        }
    };
    let others = async {
        for _ in 0..MOST_TESTS {
            hanging.seen.recv().await.unwrap();
        }
        let refused = world.server.ask(&key, "POST", &path, None).await;
        refused.problem(429, "too_many_tests");
        assert!(refused.find_header("retry-after").is_some());
        hanging.answers.add_permits(MOST_TESTS);
    };
    tokio::join!(tests, others);
    hanging.answers.add_permits(1);
    assert_eq!(world.server.ask(&key, "POST", &path, None).await.status, 200, "a seat is free again");
}

#[tokio::test]
async fn a_test_is_recorded_although_its_caller_went_away() {
    let world = start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let mut hanging = Receiver::start("HTTP/1.1 204 No Content\r\n\r\n", 0).await;
    let at = endpoint_at(&world, &key, &hanging.url).await;
    let mut stream = TcpStream::connect(world.server.address).await.unwrap();
    let asks =
        format!("POST {at}/test HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(asks.as_bytes()).await.unwrap();
    hanging.seen.recv().await.unwrap();
    drop(stream);
    // The server notices that at its next look at the connection.
    assert_eq!(world.server.send("GET", "/livez", &[], b"").await.status, 200);
    hanging.answers.add_permits(1);
    let recorded = async {
        while recorded(&world).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), recorded).await.expect("the test is recorded");
}

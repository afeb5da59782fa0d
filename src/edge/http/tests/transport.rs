//! Slow clients, keep-alive, and the end of serving.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::{Answer, SECRET, Setup, TestServer};

async fn read_rest(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    all
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_dropped() {
    let limits = |limits: &mut super::Limits| limits.headers = Duration::from_millis(100);
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nX-Slow: ").await.unwrap();
    let answer = read_rest(stream).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
}

#[tokio::test]
async fn a_body_that_never_ends_is_a_408() {
    let limits = |limits: &mut super::Limits| limits.body = Duration::from_millis(100);
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let head = format!(
        "POST /bot/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {SECRET}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{\"event"
    );
    server.raw(head.as_bytes()).await.problem(408, "body_too_slow");
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let others = Router::new().route("/stuck", get(std::future::pending::<()>));
    let limits = |limits: &mut super::Limits| limits.request = Duration::from_millis(100);
    let server = TestServer::with(Setup { limits, others, ..Setup::default() }).await;
    let answer = server.get("/stuck").await;
    answer.problem(503, "too_slow");
    assert!(answer.find_header("retry-after").is_some());
}

#[tokio::test]
async fn a_refused_upload_leaves_the_connection_usable() {
    let server = TestServer::start().await;
    let body = "x".repeat(3 << 20);
    let refused = format!("POST /nothing HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let asks = format!("{refused}GET /livez HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(asks.as_bytes()).await.unwrap();
    let text = String::from_utf8(read_rest(stream).await).unwrap();
    assert!(text.starts_with("HTTP/1.1 404") && text.contains("HTTP/1.1 200"), "{text}");
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_without_being_told_to_send() {
    let server = TestServer::start().await;
    let ask = "POST /bot/events HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(ask.as_bytes()).await.unwrap();
    Answer::parse(&read_rest(stream).await).problem(401, "unauthorized");
}

#[tokio::test]
async fn shutdown_finishes_what_is_in_flight_and_closes_what_is_idle() {
    let (entered, mut entries) = mpsc::channel::<tokio::sync::oneshot::Sender<()>>(1);
    let slow = move || {
        let entered = entered.clone();
        async move {
            let (release, released) = tokio::sync::oneshot::channel();
            entered.send(release).await.unwrap();
            let _ = released.await;
            "done"
        }
    };
    let others = Router::new().route("/slow", get(slow));
    let server = TestServer::with(Setup { others, ..Setup::default() }).await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let address = server.address;
    let in_flight = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /slow HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
        Answer::parse(&read_rest(stream).await)
    });
    let release = entries.recv().await.unwrap();
    server.shutdown.cancel();
    assert!(read_rest(idle).await.is_empty());
    release.send(()).unwrap();
    let answer = in_flight.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "done"));
    server.served.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn shutdown_cuts_off_what_does_not_end() {
    let others = Router::new().route("/stuck", get(std::future::pending::<()>));
    let limits = |limits: &mut super::Limits| limits.shutdown = Duration::from_millis(50);
    let server = TestServer::with(Setup { others, limits, ..Setup::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /stuck HTTP/1.1\r\nHost: t\r\n\r\nGET").await.unwrap();
    // An answer on another connection: the first has been accepted by then, as they are accepted in order.
    assert_eq!(server.get("/livez").await.json(), json!({"status": "ok"}));
    server.shutdown.cancel();
    server.served.await.unwrap();
    assert!(read_rest(stream).await.is_empty());
}

#[tokio::test]
async fn more_connections_than_seats_wait_for_one() {
    let limits = |limits: &mut super::Limits| limits.connections = 1;
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"GET /livez HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let mut some = [0; 12];
    first.read_exact(&mut some).await.unwrap();
    let waiting = tokio::spawn({
        let address = server.address;
        async move {
            let mut second = TcpStream::connect(address).await.unwrap();
            second.write_all(b"GET /livez HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").await.unwrap();
            Answer::parse(&read_rest(second).await).status
        }
    });
    drop(first);
    assert_eq!(waiting.await.unwrap(), 200);
}

//! The receiver over real sockets, with a program behind it that writes down what it gets.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use super::*;

/// Made with the secret, id, timestamp and body of the Standard Webhooks reference tests.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const SIGNED_AT_S: i64 = 1_614_265_330;
const BODY: &str = r#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

type Got = (axum::http::Method, HeaderMap, Bytes);

struct Bench {
    url: String,
    http: reqwest::Client,
    arrivals: mpsc::Receiver<Arrival>,
    stop: CancellationToken,
}

impl Bench {
    async fn with(forward: Option<&str>) -> Self {
        let receiver = Receiver::bind().await.unwrap();
        let url = receiver.url().unwrap();
        let (told, arrivals) = mpsc::channel(16);
        let forward = forward.map(|url| Forward::to(url.parse().unwrap()).unwrap());
        let clock = Clock::stopped_at(SIGNED_AT_S * 1000);
        let desk = Desk { key: Key::parse(SECRET).unwrap(), clock, forward, told };
        let stop = CancellationToken::new();
        tokio::spawn(receiver.serve(desk, stop.clone()));
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { url, http, arrivals, stop }
    }

    async fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::Response {
        let request = self.http.post(&self.url).header("webhook-id", ID).header("webhook-timestamp", SIGNED_AT_S);
        let request = request.header("webhook-signature", SIGNATURE).header("content-type", "application/json");
        request.body(body).send().await.unwrap()
    }

    async fn arrival(&mut self) -> Arrival {
        self.arrivals.recv().await.unwrap()
    }
}

/// A program at an address of its own, which answers with `answer` and tells what it got.
async fn program(answer: fn() -> Response) -> (String, mpsc::Receiver<Got>) {
    let (tell, got) = mpsc::channel(16);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?a=1", listener.local_addr().unwrap());
    let work = move |request: Request| async move {
        assert_eq!(request.uri(), "/hook?a=1");
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        tell.send((parts.method, parts.headers, body)).await.unwrap();
        answer()
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", any(work))).await });
    (url, got)
}

#[tokio::test]
async fn method_headers_and_bytes_are_handed_on_and_the_status_comes_back() {
    let (url, mut got) = program(|| (StatusCode::IM_A_TEAPOT, [("retry-after", "7")], "no").into_response()).await;
    let mut bench = Bench::with(Some(&url)).await;
    let response = bench.post(BODY).await;
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].as_bytes()), (418, &b"7"[..]));
    assert_eq!(response.text().await.unwrap(), "no");
    let (method, headers, body) = got.recv().await.unwrap();
    assert_eq!((method.as_str(), &body[..]), ("POST", BODY.as_bytes()));
    for (name, value) in [("webhook-id", ID), ("webhook-signature", SIGNATURE), ("content-type", "application/json")] {
        assert_eq!(headers[name], HeaderValue::from_static(value), "{name}");
    }
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/hook?a=1").unwrap();
    assert_eq!(headers["host"], HeaderValue::from_str(host).unwrap());
    let arrival = bench.arrival().await;
    assert_eq!((arrival.attempt, arrival.fault, arrival.answer), (1, None, Answer::Forwarded(418)));
    assert_eq!((arrival.id.as_deref(), arrival.event_type, arrival.is_late), (Some(ID), None, false));
    // Bytes that are no text at all come through as they are, are told as unfit, and count as the second of this id.
    bench.post(&b"\xff\x00{\"type\":"[..]).await;
    assert_eq!(&got.recv().await.unwrap().2[..], b"\xff\x00{\"type\":");
    let arrival = bench.arrival().await;
    assert_eq!((arrival.attempt, arrival.fault), (2, Some(Fault::Unfit)));
}

#[tokio::test]
async fn a_redirect_is_passed_on_and_not_followed() {
    let (url, mut got) =
        program(|| (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")]).into_response()).await;
    let mut bench = Bench::with(Some(&url)).await;
    let response = bench.post(BODY).await;
    assert_eq!((response.status().as_u16(), response.headers()["location"].as_bytes()), (307, &b"/elsewhere"[..]));
    got.recv().await.unwrap();
    assert_eq!(bench.arrival().await.answer, Answer::Forwarded(307));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_502() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut bench = Bench::with(Some(&format!("http://{nobody}/hook?token=secret"))).await;
    let response = bench.post(BODY).await;
    assert_eq!(response.status(), 502);
    assert!(!response.text().await.unwrap().contains("secret"));
    let Answer::Unreachable(why) = bench.arrival().await.answer else { panic!("nobody is there") };
    assert!(why.contains("refused") && !why.contains("secret"), "{why}");
}

#[tokio::test]
async fn alone_it_answers_200_and_says_what_came() {
    let mut bench = Bench::with(None).await;
    assert_eq!(bench.post(r#"{"type":"lead.received"}"#).await.status(), 200);
    let arrival = bench.arrival().await;
    assert_eq!((arrival.event_type.as_deref(), arrival.answer), (Some("lead.received"), Answer::Own));
    assert_eq!((&arrival.body[..], arrival.at), (&br#"{"type":"lead.received"}"#[..], SIGNED_AT_S * 1000));
    let elsewhere = bench.http.post(format!("{}x", bench.url)).send().await.unwrap();
    assert_eq!(elsewhere.status(), 404);
    let foreign = bench.http.post(&bench.url).header("host", "evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
}

#[tokio::test]
async fn a_receiver_is_alive_until_it_ends_and_others_at_its_address_are_not_it() {
    let bench = Bench::with(None).await;
    assert!(is_alive(&bench.url).await.unwrap());
    assert!(!is_alive(&format!("{}x", bench.url)).await.unwrap());
    bench.stop.cancel();
    // The port is closed by the task that serves, which is not waited for.
    while is_alive(&bench.url).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_sender_that_hangs_up_does_not_take_the_delivery_from_the_program() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let hand = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&hand);
    let slow = move || async move {
        held.notified().await;
        "done"
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", any(slow))).await });
    let mut bench = Bench::with(Some(&url)).await;
    let request = bench.http.post(&bench.url).body(BODY).timeout(Duration::from_millis(50)).send();
    assert!(request.await.unwrap_err().is_timeout());
    hand.notify_one();
    let arrival = bench.arrival().await;
    assert_eq!((arrival.answer, arrival.fault), (Answer::Forwarded(200), Some(Fault::Missing("webhook-id"))));
}

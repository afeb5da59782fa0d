//! `/dev/*` as a tester uses it: pages, problems, the clock, and `serve_fake` itself.

use std::time::Duration;

use super::*;
use crate::dev::{Error, fake_router, serve::serve_fake};

#[tokio::test]
async fn messages_are_listed_by_chat_and_by_page() {
    let bench = Bench::start().await;
    for number in 1..=5 {
        bench.ok("sendMessage", json!({"chat_id": number % 2 + 1, "text": number.to_string()})).await;
    }
    let texts = |path: &'static str| async {
        let body = bench.get(path).await;
        body["messages"].as_array().expect("is a list").iter().map(|it| it["text"].to_string()).collect::<String>()
    };
    assert_eq!(texts("/dev/telegram/messages?chat_id=1").await, r#""2""4""#);
    assert_eq!(texts("/dev/telegram/messages?after=2&limit=2").await, r#""3""4""#);
    assert_eq!(texts("/dev/telegram/messages?after=5").await, "");
    let first = &bench.messages().await[0];
    let expected = json!({
        "ordinal": 1, "chat_id": 2, "message_id": 1, "text": "1", "reply_markup": null, "method": "sendMessage",
        "sent_at": "2026-09-21T14:13:20.123Z",
    });
    assert_eq!(first, &expected);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_problem_that_names_the_field() {
    let bench = Bench::start().await;
    for (path, status) in [("chat_id=x", 400), ("limit=0", 400), ("limit=1001", 400), ("colour=red", 400)] {
        let response =
            bench.http.get(format!("{}/dev/telegram/messages?{path}", bench.url)).send().await.expect("answers");
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    assert_eq!(bench.delete("/dev/clock").await, StatusCode::METHOD_NOT_ALLOWED);
    for (body, status) in [
        ("nonsense", 400),
        ("[]", 422),
        ("{}", 422),
        (r#"{"message": 1}"#, 422),
        (r#"{"message": {}, "poll": {}}"#, 422),
        (r#"{"message": {}, "update_id": -1}"#, 422),
        (r#"{"message": {}} x"#, 400),
        ("\u{0}\u{1}", 400),
    ] {
        let response = bench.http.post(format!("{}/dev/telegram/updates", bench.url)).body(body).send().await;
        let response = response.expect("answers");
        assert_eq!(response.status(), status, "{body}");
        let problem: Value = response.json().await.expect("is JSON");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["type"].is_string() && problem["title"].is_string() && problem["detail"].is_string());
    }
}

#[tokio::test]
async fn the_clock_goes_forward_and_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let bench = Bench::serve(dir, Clock::stopped_at(1_790_000_000_123)).await;
    assert_eq!(bench.get("/dev/clock").await, json!({"now": "2026-09-21T14:13:20.123Z"}));
    let advanced = bench.post("/dev/clock/advance", json!({"seconds": 86_400})).await;
    assert_eq!(advanced, (StatusCode::OK, json!({"now": "2026-09-22T14:13:20.123Z"})));
    bench.post("/dev/clock/advance", json!({"seconds": 0.5})).await;
    for seconds in [json!(-1), json!("1"), json!(1e300), json!(null)] {
        let (status, body) = bench.post("/dev/clock/advance", json!({"seconds": seconds})).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
    assert_eq!(clock::open_clock(bench.dir.path()).expect("opens").offset_ms(), 86_400_500);
}

#[tokio::test]
async fn the_fake_serves_loopback_only_and_says_when_it_is_ready() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, ready) = (dir.path().join("data"), dir.path().join("ready.json"));
    let shutdown = CancellationToken::new();
    let open = "0.0.0.0:0".parse().expect("is an address");
    let refused = serve_fake(open, &data, Some(&ready), shutdown.clone()).await;
    assert!(matches!(refused, Err(Error::NotLoopback { .. })));
    assert!(!data.exists() && !ready.exists());

    let loopback = "127.0.0.1:0".parse().expect("is an address");
    let (data_of_task, ready_of_task, stop) = (data.clone(), ready.clone(), shutdown.clone());
    let served = tokio::spawn(async move { serve_fake(loopback, &data_of_task, Some(&ready_of_task), stop).await });
    while !ready.exists() {
        tokio::task::yield_now().await;
    }
    let told: Value = serde_json::from_slice(&std::fs::read(&ready).expect("is there")).expect("is whole");
    assert_eq!(told["pid"], std::process::id());
    let me = reqwest::get(format!("{}/bot1:a/getMe", told["url"].as_str().expect("is a text"))).await;
    assert_eq!(me.expect("answers").status(), StatusCode::OK);
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(5), served).await.expect("soon").expect("stops").expect("in peace");
}

#[tokio::test]
async fn the_fake_stands_beside_the_contracts_routes() {
    let dir = tempfile::tempdir().expect("a directory");
    let router = fake_router(dir.path(), Clock::system(), CancellationToken::new()).expect("opens");
    let events = axum::routing::get(|| async { "events" });
    let router = router.route("/bot/events/pending", events.clone()).route("/bot/events", events);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("is bound"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    for path in ["/bot/events/pending", "/bot/events"] {
        assert_eq!(
            reqwest::get(format!("{url}{path}")).await.expect("answers").text().await.expect("is text"),
            "events"
        );
    }
    assert_eq!(reqwest::get(format!("{url}/bot1:a/getMe")).await.expect("answers").status(), StatusCode::OK);
}

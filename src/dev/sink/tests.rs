//! The sink over a real socket.

use reqwest::Client;
use standing::Bench;

use super::*;

/// Made with the secret, id, timestamp and body of the Standard Webhooks reference tests.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const SIGNED_AT_S: i64 = 1_614_265_330;
const BODY: &str = r#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

mod standing {
    //! A served sink whose clock stands still.

    use super::*;

    pub(super) struct Bench {
        pub(super) url: String,
        pub(super) http: Client,
        pub(super) dir: tempfile::TempDir,
    }

    impl Bench {
        pub(super) async fn at(now_s: i64) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let sink = Sink::open(dir.path(), Clock::stopped_at(now_s * 1000)).expect("opens");
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
            let url = format!("http://{}/dev/sink/shop", listener.local_addr().expect("is bound"));
            tokio::spawn(async move { axum::serve(listener, sink.router()).await });
            Self { url, http: Client::builder().no_proxy().build().expect("a client"), dir }
        }

        pub(super) async fn program(&self, program: Value) -> StatusCode {
            self.http.put(&self.url).json(&program).send().await.expect("answers").status()
        }

        /// Sends the reference body with this timestamp and signature; returns what the sink made of it.
        pub(super) async fn verified(&self, at_s: i64, signature: &str, body: &'static str) -> Value {
            let request = self.http.post(&self.url).header("webhook-id", ID).header("webhook-timestamp", at_s);
            request.header("webhook-signature", signature).body(body).send().await.expect("answers");
            self.came().await.last().expect("came")["verified"].clone()
        }

        pub(super) async fn came(&self) -> Vec<Value> {
            let response = self.http.get(format!("{}/requests", self.url)).send().await.expect("answers");
            let body: Value = response.json().await.expect("is JSON");
            body["requests"].as_array().expect("is a list").clone()
        }
    }
}

#[tokio::test]
async fn a_receiver_answers_as_programmed_and_writes_down_what_came() {
    let bench = Bench::at(SIGNED_AT_S).await;
    let program = json!({"status": 503, "headers": {"retry-after": "7"}, "body": {"why": "tired"}});
    assert_eq!(bench.program(program).await, 204);
    let response = bench.http.post(format!("{}?a=1", bench.url)).header("x-a", "b").body("hi").send().await;
    let response = response.expect("answers");
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].as_bytes()), (503, &b"7"[..]));
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.text().await.expect("is text"), r#"{"why":"tired"}"#);
    bench.http.get(&bench.url).send().await.expect("answers");
    bench.http.post(&bench.url).body(&b"\xff\x00"[..]).send().await.expect("answers");
    let came = bench.came().await;
    assert_eq!(
        (&came[0]["method"], &came[0]["query"], &came[0]["body"]),
        (&json!("POST"), &json!("a=1"), &json!("hi"))
    );
    assert_eq!((&came[0]["headers"]["x-a"], &came[0]["verified"]), (&json!("b"), &json!(null)));
    assert_eq!(came[0]["received_at"], "2021-02-25T15:02:10.000Z");
    assert_eq!(came[1]["method"], "GET");
    assert_eq!((&came[2]["body"], &came[2]["body_base64"]), (&json!(null), &json!("/wA=")));
}

#[tokio::test]
async fn signatures_are_verified_at_the_dev_clock() {
    let bench = Bench::at(SIGNED_AT_S + 300).await;
    assert_eq!(bench.verified(SIGNED_AT_S, SIGNATURE, BODY).await, json!(null));
    bench.program(json!({"secret": SECRET})).await;
    assert_eq!(bench.verified(SIGNED_AT_S, SIGNATURE, BODY).await, true);
    let several = format!("v1,AAAA v1a,xyz garbage {SIGNATURE}");
    assert_eq!(bench.verified(SIGNED_AT_S, &several, BODY).await, true);
    assert_eq!(bench.verified(SIGNED_AT_S, SIGNATURE, "{}").await, false);
    assert_eq!(bench.verified(SIGNED_AT_S + 1, SIGNATURE, BODY).await, false);
    for signature in ["", "v1,", "v1", &SIGNATURE[..20], &SIGNATURE.replace("v1,", "v2,")] {
        assert_eq!(bench.verified(SIGNED_AT_S, signature, BODY).await, false, "{signature}");
    }
    bench.http.post(&bench.url).body(BODY).send().await.expect("answers");
    assert_eq!(bench.came().await.last().expect("came")["verified"], false);
    let late = Bench::at(SIGNED_AT_S + 301).await;
    late.program(json!({"secret": SECRET})).await;
    assert_eq!(late.verified(SIGNED_AT_S, SIGNATURE, BODY).await, false);
    let early = Bench::at(SIGNED_AT_S - 301).await;
    early.program(json!({"secret": SECRET})).await;
    assert_eq!(early.verified(SIGNED_AT_S, SIGNATURE, BODY).await, false);
}

#[tokio::test]
async fn programs_that_make_no_sense_are_refused() {
    let bench = Bench::at(0).await;
    for program in [
        json!({"status": 99}),
        json!({"status": "x"}),
        json!({"delay_ms": -1}),
        json!({"headers": {"a b": "c"}}),
        json!({"secret": "whsec_"}),
        json!({"secret": "whsec_???"}),
        json!({"colour": "red"}),
        json!(3),
    ] {
        assert_eq!(bench.program(program.clone()).await, 422, "{program}");
    }
    for name in ["a%20b", "%ff", &"a".repeat(65)] {
        let response = bench.http.post(bench.url.replace("shop", name)).send().await.expect("answers");
        assert_eq!(response.status(), 422);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    assert_eq!(bench.http.patch(format!("{}/requests", bench.url)).send().await.expect("answers").status(), 405);
}

#[tokio::test]
async fn programs_and_requests_survive_and_can_be_cleared() {
    let bench = Bench::at(0).await;
    bench.program(json!({"status": 201})).await;
    bench.http.post(&bench.url).body("1").send().await.expect("answers");
    assert_eq!(bench.http.delete(format!("{}/requests", bench.url)).send().await.expect("answers").status(), 204);
    bench.http.post(&bench.url).body("2").send().await.expect("answers");
    // A copy of the log, since the running sink holds the lock of its own.
    let copy = tempfile::tempdir().expect("a directory");
    std::fs::copy(bench.dir.path().join("sink.ndjson"), copy.path().join("sink.ndjson")).expect("copies");
    let again = Sink::open(copy.path(), Clock::system()).expect("opens");
    assert_eq!(again.kept().receivers["shop"].program.status, 201);
    let requests = again.kept().receivers["shop"].requests.clone();
    assert_eq!(requests.iter().map(|it| (it.ordinal, it.body.as_deref())).collect::<Vec<_>>(), [(2, Some("2"))]);
    assert_eq!(bench.http.delete(&bench.url).send().await.expect("answers").status(), 204);
    assert_eq!(bench.http.post(&bench.url).send().await.expect("answers").status(), 200);
}

//! The fake over a real socket, with teloxide as its client where types matter and bare HTTP where bytes do.

mod client;
mod control;
mod faults;
mod methods;
mod persistence;
mod polling;
mod webhook;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Fake;
use crate::dev::{clock, sink::Sink};
use crate::kernel::clock::Clock;

const TOKEN: &str = "123456:TEST-token_1";

/// A served fake with a clock that stands still.
struct Bench {
    dir: TempDir,
    clock: Clock,
    fake: Fake,
    http: Client,
    url: String,
    shutdown: CancellationToken,
    server: JoinHandle<()>,
}

impl Bench {
    async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self::serve(dir, Clock::stopped_at(1_790_000_000_123)).await
    }

    async fn serve(dir: TempDir, clock: Clock) -> Self {
        let shutdown = CancellationToken::new();
        let fake = Fake::open(dir.path(), clock.clone(), shutdown.clone()).expect("opens");
        let sink = Sink::open(dir.path(), clock.clone()).expect("opens");
        let router = fake.router().merge(sink.router()).merge(clock::router(clock.clone(), dir.path()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let url = format!("http://{}", listener.local_addr().expect("is bound"));
        let serving = axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        let server = tokio::spawn(async move { serving.await.expect("serves") });
        let http = Client::builder().no_proxy().build().expect("a client");
        Self { dir, clock, fake, http, url, shutdown, server }
    }

    /// Stops and continues from the same directory, on another port.
    async fn restart(self) -> Self {
        self.shutdown.cancel();
        drop((self.http, self.fake));
        self.server.await.expect("stops");
        Self::serve(self.dir, self.clock).await
    }

    async fn call(&self, method: &str, params: Value) -> (StatusCode, Value) {
        self.post(&format!("/bot{TOKEN}/{method}"), params).await
    }

    /// The result of a call that has to succeed.
    async fn ok(&self, method: &str, params: Value) -> Value {
        let (status, mut body) = self.call(method, params).await;
        assert_eq!((status, &body["ok"]), (StatusCode::OK, &json!(true)), "{body}");
        body["result"].take()
    }

    /// The error of a call that has to fail; its status and its code are the same.
    async fn refused(&self, method: &str, params: Value) -> (u16, String) {
        let (status, body) = self.call(method, params).await;
        assert_eq!((&body["ok"], &body["error_code"]), (&json!(false), &json!(status.as_u16())), "{body}");
        (status.as_u16(), body["description"].as_str().expect("is a text").to_owned())
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let response = self.http.post(format!("{}{path}", self.url)).json(&body).send().await.expect("answers");
        (response.status(), response.json().await.expect("is JSON"))
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.http.get(format!("{}{path}", self.url)).send().await.expect("answers");
        response.json().await.expect("is JSON")
    }

    async fn delete(&self, path: &str) -> StatusCode {
        self.http.delete(format!("{}{path}", self.url)).send().await.expect("answers").status()
    }

    async fn messages(&self) -> Vec<Value> {
        self.get("/dev/telegram/messages").await["messages"].as_array().expect("is a list").clone()
    }

    async fn fault(&self, fault: Value) {
        let (status, body) = self.post("/dev/telegram/faults", fault).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }

    /// A text from a person; returns its update id.
    async fn person_says(&self, chat_id: i64, text: &str) -> u64 {
        let person = json!({"id": chat_id, "is_bot": false, "first_name": "Ann"});
        let chat = json!({"id": chat_id, "type": "private", "first_name": "Ann"});
        let message = json!({"message_id": 1, "date": 1_790_000_000, "chat": chat, "from": person, "text": text});
        self.injected(json!({"message": message})).await
    }

    async fn injected(&self, update: Value) -> u64 {
        let (status, body) = self.post("/dev/telegram/updates", update).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["update_id"].as_u64().expect("is a number")
    }
}

fn ids(updates: &Value) -> Vec<u64> {
    updates.as_array().expect("is a list").iter().map(|it| it["update_id"].as_u64().expect("is a number")).collect()
}

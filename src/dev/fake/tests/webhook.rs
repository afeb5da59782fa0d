//! The webhook, delivered to the sink of the same process.

use std::time::Duration;

use super::*;

impl Bench {
    async fn hook(&self) -> Value {
        let url = format!("{}/dev/sink/bot", self.url);
        self.ok("setWebhook", json!({"url": url, "secret_token": "s3cret"})).await
    }

    async fn answer_with(&self, program: Value) {
        let request = self.http.put(format!("{}/dev/sink/bot", self.url)).json(&program);
        assert_eq!(request.send().await.expect("answers").status(), StatusCode::NO_CONTENT);
    }

    /// Waits for the sink's `count`th request.
    async fn came(&self, count: usize) -> Vec<Value> {
        loop {
            let came = self.get("/dev/sink/bot/requests").await["requests"].as_array().expect("is a list").clone();
            if came.len() >= count {
                return came;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn pending(&self, count: u64) -> Value {
        loop {
            let info = self.ok("getWebhookInfo", json!({})).await;
            if info["pending_update_count"] == count {
                return info;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn update_id(request: &Value) -> u64 {
    let body: Value = serde_json::from_str(request["body"].as_str().expect("is text")).expect("is JSON");
    body["update_id"].as_u64().expect("is a number")
}

#[tokio::test]
async fn updates_are_posted_in_order_with_the_secret() {
    let bench = Bench::start().await;
    let waiting = bench.person_says(5, "before").await;
    bench.hook().await;
    bench.person_says(5, "after").await;
    let came = bench.came(2).await;
    assert_eq!(came.iter().map(update_id).collect::<Vec<_>>(), [waiting, waiting + 1]);
    assert_eq!(came[0]["headers"]["x-telegram-bot-api-secret-token"], "s3cret");
    assert_eq!(came[0]["headers"]["content-type"], "application/json");
    bench.pending(0).await;
}

#[tokio::test]
async fn a_refused_update_is_tried_again_at_growing_distances_and_nothing_overtakes_it() {
    let bench = Bench::start().await;
    bench.answer_with(json!({"status": 500})).await;
    let first = bench.person_says(5, "1").await;
    bench.person_says(5, "2").await;
    bench.hook().await;
    // At once, then after 2, 4 and 8 seconds of the clock, which only we move.
    for (tries, pause_s) in [(2, 2), (3, 4), (4, 8)] {
        bench.pausing(pause_s).await;
        let came = bench.came(tries).await;
        assert_eq!(came.iter().map(update_id).collect::<Vec<_>>(), vec![first; tries]);
        let info = bench.ok("getWebhookInfo", json!({})).await;
        assert_eq!(info["last_error_message"], "Wrong response from the webhook: 500 Internal Server Error");
        assert_eq!(info["pending_update_count"], 2);
        bench.clock.advance(Duration::from_secs(pause_s));
    }
    bench.pausing(16).await;
    bench.answer_with(json!({"status": 429, "headers": {"retry-after": "100"}})).await;
    bench.clock.advance(Duration::from_secs(16));
    bench.pausing(100).await;
    bench.answer_with(json!({"status": 204})).await;
    bench.clock.advance(Duration::from_secs(100));
    bench.pending(0).await;
    assert_eq!(update_id(bench.came(8).await.last().expect("is there")), first + 1);
}

impl Bench {
    /// Until the deliveries pause, for this long from now.
    async fn pausing(&self, pause_s: u64) {
        let until = self.clock.now().saturating_add_unsigned(pause_s * 1000);
        while self.fake.kept().webhook_error.as_ref().is_none_or(|error| error.next_try_at != until) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_new_webhook_does_not_wait_for_the_old_ones_pause() {
    let bench = Bench::start().await;
    let id = bench.person_says(5, "1").await;
    bench.ok("setWebhook", json!({"url": "http://127.0.0.1:1/"})).await;
    bench.pausing(2).await;
    bench.hook().await;
    assert_eq!(update_id(&bench.came(1).await[0]), id);
    bench.ok("deleteWebhook", json!({})).await;
    bench.person_says(5, "2").await;
    assert_eq!(bench.ok("getWebhookInfo", json!({})).await["url"], "");
    bench.ok("getUpdates", json!({})).await;
}

#[tokio::test]
async fn bad_webhooks_are_refused() {
    let bench = Bench::start().await;
    for (params, text) in [
        (json!({"url": "https://bot.example/hook"}), "bad webhook: the fake Bot API calls this machine only"),
        (json!({"url": "http://127.0.0.1.nip.example/"}), "bad webhook: the fake Bot API calls this machine only"),
        (json!({"url": "ftp://127.0.0.1/"}), "bad webhook: An HTTPS URL must be provided for webhook"),
        (json!({"url": "::"}), "bad webhook: invalid URL specified"),
        (json!({"url": "http://[::1]:1/", "secret_token": "a b"}), "secret token contains unallowed characters"),
    ] {
        let (status, description) = bench.refused("setWebhook", params).await;
        assert_eq!(status, 400);
        assert!(description.starts_with(&format!("Bad Request: {text}")), "{description}");
    }
}

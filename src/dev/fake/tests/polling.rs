//! `getUpdates`: the long poll, offsets, sticky subscriptions, and one poller at a time.

use std::time::Duration;

use super::*;

const LONG: u64 = 20;

impl Bench {
    /// Starts a long poll and returns when the server has it.
    async fn long_poll(&self) -> JoinHandle<(StatusCode, Value)> {
        let before = self.fake.kept().newest_poll;
        let request = self.http.post(format!("{}/bot{TOKEN}/getUpdates", self.url)).json(&json!({"timeout": LONG}));
        let poll = tokio::spawn(async move {
            let response = request.send().await.expect("answers");
            (response.status(), response.json().await.expect("is JSON"))
        });
        while self.fake.kept().newest_poll == before {
            tokio::task::yield_now().await;
        }
        poll
    }
}

#[tokio::test]
async fn a_long_poll_answers_as_soon_as_an_update_comes() {
    let bench = Bench::start().await;
    let poll = bench.long_poll().await;
    let id = bench.person_says(5, "hi").await;
    let (status, body) = tokio::time::timeout(Duration::from_secs(5), poll).await.expect("soon").expect("answers");
    assert_eq!((status, ids(&body["result"])), (StatusCode::OK, vec![id]));
}

#[tokio::test]
async fn a_second_poller_makes_the_first_one_fail() {
    let bench = Bench::start().await;
    let first = bench.long_poll().await;
    let second = bench.long_poll().await;
    let (status, body) = first.await.expect("answers");
    assert_eq!(status, StatusCode::CONFLICT);
    let text = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
    assert_eq!(body, json!({"ok": false, "error_code": 409, "description": text}));
    bench.person_says(5, "hi").await;
    assert_eq!(second.await.expect("answers").0, StatusCode::OK);
}

#[tokio::test]
async fn a_webhook_ends_the_poll_and_refuses_the_next() {
    let bench = Bench::start().await;
    let poll = bench.long_poll().await;
    bench.ok("setWebhook", json!({"url": "http://127.0.0.1:1/"})).await;
    let (status, body) = poll.await.expect("answers");
    assert_eq!(
        (status, &body["description"]),
        (StatusCode::CONFLICT, &json!("Conflict: terminated by setWebhook request"))
    );
    let refused = bench.refused("getUpdates", json!({})).await;
    assert_eq!(refused.0, 409);
    assert!(refused.1.starts_with("Conflict: can't use getUpdates method while webhook is active; "), "{}", refused.1);
}

#[tokio::test]
async fn an_offset_confirms_and_without_one_everything_comes_again() {
    let bench = Bench::start().await;
    let first = bench.person_says(5, "1").await;
    for text in ["2", "3", "4"] {
        bench.person_says(5, text).await;
    }
    assert_eq!(ids(&bench.ok("getUpdates", json!({"limit": 2})).await), [first, first + 1]);
    assert_eq!(ids(&bench.ok("getUpdates", json!({})).await), [first, first + 1, first + 2, first + 3]);
    assert_eq!(ids(&bench.ok("getUpdates", json!({"offset": first + 1, "limit": 1})).await), [first + 1]);
    assert_eq!(ids(&bench.ok("getUpdates", json!({"offset": -2})).await), [first + 2, first + 3]);
    assert_eq!(ids(&bench.ok("getUpdates", json!({})).await), [first + 2, first + 3]);
    assert_eq!(ids(&bench.ok("getUpdates", json!({"offset": first + 4})).await), Vec::<u64>::new());
}

#[tokio::test]
async fn subscriptions_stay_until_they_are_given_anew() {
    let bench = Bench::start().await;
    let member = json!({"chat_member": {"chat": {"id": 5, "type": "private"}}});
    let queued = |update: Value| async { bench.post("/dev/telegram/updates", update).await.1["queued"].take() };
    assert_eq!(queued(member.clone()).await, false);
    bench.ok("getUpdates", json!({"allowed_updates": ["chat_member"]})).await;
    bench.ok("getUpdates", json!({})).await;
    assert_eq!(queued(member.clone()).await, true);
    assert_eq!(queued(json!({"message": {}})).await, false);
    bench.ok("getUpdates", json!({"allowed_updates": []})).await;
    assert_eq!(queued(json!({"message": {}})).await, true);
    assert_eq!(queued(member).await, false);
}

#[tokio::test]
async fn a_shutdown_ends_the_poll_at_once() {
    let bench = Bench::start().await;
    let poll = bench.long_poll().await;
    bench.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(5), bench.server).await.expect("soon").expect("stops");
    assert_eq!(poll.await.expect("answers").1["result"], json!([]));
}

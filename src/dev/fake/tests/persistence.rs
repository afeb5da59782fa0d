//! What a restart finds again.

use super::*;
use crate::dev::fake::params::Params;
use crate::dev::{Error, fake_router};

#[tokio::test]
async fn messages_updates_counters_webhook_and_commands_survive() {
    let bench = Bench::start().await;
    let sent = bench.ok("sendMessage", json!({"chat_id": 5, "text": "one"})).await;
    bench.ok("editMessageText", json!({"chat_id": 5, "message_id": sent["message_id"], "text": "two"})).await;
    bench.fault(json!({"drop_response": true})).await;
    let lost = bench.http.get(format!("{}/bot{TOKEN}/sendMessage?chat_id=5&text=lost", bench.url)).send().await;
    assert!(lost.is_err());
    let first = bench.person_says(5, "1").await;
    let second = bench.person_says(5, "2").await;
    bench.ok("getUpdates", json!({"offset": second, "allowed_updates": ["message"]})).await;
    bench.ok("setMyCommands", json!({"commands": [{"command": "start", "description": "Start"}]})).await;
    let before = bench.messages().await;

    let bench = bench.restart().await;
    assert_eq!(bench.messages().await, before);
    assert_eq!(before.len(), 3);
    assert_eq!(ids(&bench.ok("getUpdates", json!({})).await), [second]);
    assert_eq!(bench.person_says(5, "3").await, first + 2);
    assert_eq!(bench.post("/dev/telegram/updates", json!({"callback_query": {}})).await.1["queued"], false);
    assert_eq!(bench.ok("getMyCommands", json!({})).await[0]["command"], "start");
    let same = json!({"chat_id": 5, "message_id": sent["message_id"], "text": "two"});
    assert!(bench.refused("editMessageText", same).await.1.contains("message is not modified"));
    let next = bench.ok("sendMessage", json!({"chat_id": 5, "text": "three"})).await;
    assert_eq!(next["message_id"].as_i64(), sent["message_id"].as_i64().map(|id| id + 2));

    bench.ok("setWebhook", json!({"url": "http://127.0.0.1:1/hook"})).await;
    assert_eq!(bench.delete("/dev/telegram/messages").await, StatusCode::OK);
    let bench = bench.restart().await;
    assert_eq!(bench.ok("getWebhookInfo", json!({})).await["url"], "http://127.0.0.1:1/hook");
    assert!(bench.messages().await.is_empty());
    bench.ok("editMessageText", json!({"chat_id": 5, "message_id": sent["message_id"], "text": "four"})).await;
    assert_eq!(bench.messages().await[0]["ordinal"], 5);
}

#[tokio::test]
async fn a_queued_update_reaches_the_webhook_after_a_restart() {
    let bench = Bench::start().await;
    bench.ok("setWebhook", json!({"url": "http://127.0.0.1:1/hook"})).await;
    bench.person_says(5, "1").await;
    let bench = bench.restart().await;
    assert_eq!(bench.ok("getWebhookInfo", json!({})).await["pending_update_count"], 1);
    while bench.ok("getWebhookInfo", json!({})).await["last_error_message"] != "Connection refused" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_second_fake_on_the_same_directory_is_refused() {
    let bench = Bench::start().await;
    let second = fake_router(bench.dir.path(), bench.clock.clone(), CancellationToken::new());
    assert!(matches!(second, Err(Error::InUse { .. })));
}

#[tokio::test]
async fn a_hundred_thousand_messages_are_paged_and_replayed() {
    let bench = Bench::start().await;
    let open = || Fake::open(&bench.dir.path().join("many"), bench.clock.clone(), bench.shutdown.clone());
    let fake = open().expect("opens");
    for number in 0..100_000 {
        let request = axum::extract::Request::get(format!("/?chat_id={}&text=hello", number % 100 + 1));
        let params = Params::read(request.body(axum::body::Body::empty()).expect("is a request")).await;
        fake.send_message(&params.expect("are parameters")).expect("is accepted");
    }
    drop(fake);
    let fake = open().expect("opens again");
    let kept_for = |chat_id, after| fake.kept().world.accepted(chat_id, after, 1000);
    assert_eq!(kept_for(None, 99_500).len(), 500);
    assert_eq!(kept_for(Some(7), 0).len(), 1000);
    assert_eq!(kept_for(Some(7), 0)[999].ordinal, 99_907);
}

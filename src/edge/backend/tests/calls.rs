//! Calls to a remote backend: a row of the transaction, at least one request, one key.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::peer::Fault;
use super::{World, event, with};
use crate::kernel::contract::WebNotification;
use crate::kernel::store::StoreError;
use crate::onboarding::Backend;
use crate::onboarding::calls::Report;

const PATH: &str = "/notification";

fn notification(key: Option<&str>) -> WebNotification {
    WebNotification {
        magnet_uid: 70,
        kind: "new_partner".into(),
        title: "T".into(),
        body: "B".into(),
        dedup_key: key.map(Into::into),
    }
}

async fn notify(world: &World, key: Option<&str>) {
    let (remote, notification) = (world.remote.clone(), notification(key));
    world.db.write(move |tx| remote.notify(tx, &notification)).await.unwrap();
}

async fn pass(world: &World) -> Report {
    world.calls.run_once(&CancellationToken::new()).await.unwrap()
}

fn keys(world: &World) -> Vec<String> {
    let sent = world.peer.state().notifications.clone();
    sent.iter().map(|body| body["dedupKey"].as_str().unwrap_or("none").to_owned()).collect()
}

#[tokio::test]
async fn a_notification_is_a_row_of_its_transaction_and_is_sent_once() {
    let world = World::new().await;
    let (remote, first) = (world.remote.clone(), notification(Some("k")));
    let undone = world.db.write(move |tx| {
        remote.notify(tx, &first)?;
        Err::<(), _>(StoreError::NoRow)
    });
    assert!(undone.await.is_err());
    assert!(world.ids("SELECT id FROM backend_calls").await.is_empty());
    notify(&world, Some("k")).await;
    notify(&world, Some("k")).await;
    assert_eq!(pass(&world).await, Report { done: 1, ..Report::default() });
    let sent = json!({ "magnetUid": 70, "kind": "new_partner", "title": "T", "body": "B", "dedupKey": "k" });
    assert_eq!(world.peer.state().notifications, [sent]);
    notify(&world, Some("k")).await;
    assert_eq!(pass(&world).await, Report::default());
}

#[tokio::test]
async fn a_handler_that_cannot_write_to_the_chat_has_the_backend_told() {
    let world = World::new().await;
    let partner = json!({ "magnetUid": 70, "payload": { "partnerUid": 71, "partnerName": "Анна" } });
    world.peer.serves([with(event(1, "new_partner"), partner)]);
    assert_eq!(world.processed().await, 1);
    assert_eq!(pass(&world).await.done, 1);
    assert_eq!(keys(&world), ["event:shop:1:new_partner"]);
}

#[tokio::test]
async fn a_lost_answer_is_repeated_with_the_same_key() {
    let world = World::new().await;
    notify(&world, None).await;
    world.peer.fails(PATH, Fault::LoseAnswer);
    let report = pass(&world).await;
    assert_eq!((report.again, report.next), (1, Some(world.clock.now() + 2_000)));
    assert_eq!(pass(&world).await.done, 0, "not before its pause has ended");
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(pass(&world).await, Report { done: 1, ..Report::default() });
    let keys = keys(&world);
    assert_eq!(keys.len(), 2);
    assert!(keys[0] == keys[1] && keys[0].len() == 36, "{keys:?}");
}

#[tokio::test]
async fn a_strict_backend_is_told_without_the_key_that_it_does_not_know() {
    let world = World::new().await;
    notify(&world, Some("k")).await;
    world.peer.fails(PATH, Fault::Answer("400 Bad Request", "{}".into()));
    assert_eq!(pass(&world).await.done, 1);
    assert_eq!(keys(&world), ["none"]);
}

#[tokio::test]
async fn a_refused_call_holds_up_no_other_and_a_silent_backend_ends_the_pass() {
    let world = World::new().await;
    notify(&world, Some("a")).await;
    notify(&world, Some("b")).await;
    world.peer.fails(PATH, Fault::Answer("404 Not Found", "{}".into()));
    let report = pass(&world).await;
    assert_eq!((report.done, report.again), (1, 1));
    notify(&world, Some("c")).await;
    world.clock.advance(Duration::from_secs(2));
    world.peer.fails(PATH, Fault::Answer("503 Service Unavailable", "{}".into()));
    let report = pass(&world).await;
    assert_eq!((report.done, report.again, keys(&world)), (0, 1, vec!["b".to_owned()]));
}

#[tokio::test]
async fn a_call_is_given_up_after_a_day_and_stays_to_be_seen() {
    let world = World::new().await;
    notify(&world, Some("k")).await;
    let mut attempts = 0;
    loop {
        world.peer.fails(PATH, Fault::Answer("500 Oops", String::new()));
        attempts += 1;
        let report = pass(&world).await;
        if report.failed == 1 {
            break;
        }
        let due = report.next.unwrap();
        world.clock.advance(Duration::from_millis(due.abs_diff(world.clock.now())));
    }
    assert!((140..160).contains(&attempts), "{attempts}");
    assert_eq!(world.clock.now() / 3_600_000 - super::NOW / 3_600_000, 24);
    assert_eq!(
        world.ids("SELECT id FROM backend_calls WHERE status = 'failed' AND error_code = 'http_500'").await,
        [1]
    );
    assert_eq!(pass(&world).await, Report::default());
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_given_up_at_once() {
    let world = World::new().await;
    world
        .run(
            "INSERT INTO backend_calls (source, kind, body, dedup_key, due_at, created_at)
             VALUES ('shop', 'bind', '{}', 'k', 0, 0)",
        )
        .await;
    assert_eq!(pass(&world).await, Report { failed: 1, ..Report::default() });
}

#[tokio::test]
async fn a_call_in_flight_at_the_end_of_the_process_is_repeated() {
    let world = World::new().await;
    notify(&world, Some("k")).await;
    world
        .run("UPDATE backend_calls SET status = 'sending', attempts = 1, locked_until = 1e15, lease_boot = 'earlier'")
        .await;
    let world = world.restart().await;
    assert_eq!(pass(&world).await.done, 1);
    assert_eq!(world.ids("SELECT attempts FROM backend_calls").await, [2]);
}

#[tokio::test]
async fn another_backends_calls_wait() {
    let world = World::new().await;
    notify(&world, Some("k")).await;
    world.run("UPDATE backend_calls SET source = 'elsewhere'").await;
    assert_eq!(pass(&world).await, Report::default());
    assert!(world.peer.state().notifications.is_empty());
}

#[tokio::test]
async fn a_pass_that_is_stopped_claims_nothing() {
    let world = World::new().await;
    notify(&world, Some("k")).await;
    let stop = CancellationToken::new();
    stop.cancel();
    world.calls.run_once(&stop).await.unwrap();
    assert_eq!(world.ids("SELECT attempts FROM backend_calls").await, [0]);
}

//! Acknowledgements: lost before and after they were applied, repeated, and what the ledger makes of it.

use serde_json::json;

use super::peer::Fault;
use super::{World, event, with};
use crate::onboarding::BackendError;

const ACK: &str = "/ack";

/// Puts the person back, so that a second run of a handler would show.
async fn forget_stage(world: &World) {
    world.run("UPDATE bot_users SET stage = 1").await;
}

#[tokio::test]
async fn an_unanswered_acknowledgement_is_repeated_and_the_handler_is_not() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected")]);
    world.peer.fails(ACK, Fault::LoseAnswer);
    world.peer.fails(ACK, Fault::Answer("502 Bad Gateway", "<html></html>".into()));
    assert_eq!(world.processed().await, 1);
    assert_eq!(world.peer.acked("processedIds"), [1, 1]);
    assert!(world.unacked().await.is_empty());
}

#[tokio::test]
async fn an_event_whose_acknowledgement_never_arrived_is_served_again_and_acknowledged_without_the_handler() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected"), event(2, "reactivation")]);
    for _ in 0..3 {
        world.peer.fails(ACK, Fault::Lose);
    }
    assert!(matches!(world.pass().await, Err(BackendError::Unreachable(_))));
    assert_eq!(world.ids("SELECT stage FROM bot_users").await, [7]);
    assert_eq!(world.unacked().await, [1, 2]);
    forget_stage(&world).await;
    world.run("DELETE FROM telegram_messages").await;
    let world = world.restart().await;
    assert_eq!(world.processed().await, 2);
    assert_eq!(world.ids("SELECT stage FROM bot_users").await, [1], "the handler did not run again");
    assert!(world.ids("SELECT id FROM telegram_messages").await.is_empty());
    assert_eq!(world.peer.acked("processedIds"), [1, 2]);
    assert!(world.unacked().await.is_empty());
}

#[tokio::test]
async fn an_applied_acknowledgement_that_was_never_heard_of_is_settled_by_the_next_page() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected")]);
    for _ in 0..3 {
        world.peer.fails(ACK, Fault::LoseAnswer);
    }
    assert!(world.pass().await.is_err());
    assert_eq!(world.unacked().await, [1], "without an answer it is kept from being pruned");
    assert_eq!(world.processed().await, 0);
    assert!(world.unacked().await.is_empty());
    assert_eq!(world.peer.acked("processedIds"), [1, 1, 1], "and nothing was acknowledged blindly");
}

#[tokio::test]
async fn a_full_page_says_nothing_of_what_it_does_not_show() {
    let world = World::new().await;
    world.peer.serves((1..=100).map(|id| event(id, "unheard_of")));
    world
        .run(
            "INSERT INTO bot_processed_events (source, outbox_event_id, event_created_at, processed_at)
             VALUES ('shop', 101, 0, 0), ('elsewhere', 102, 0, 0)",
        )
        .await;
    crate::onboarding::Backend::next_page(&*world.remote, 100).await.unwrap();
    assert_eq!(world.unacked().await, [101, 102]);
    crate::onboarding::Backend::next_page(&*world.remote, 101).await.unwrap();
    assert_eq!(world.unacked().await, [102], "another source's accounts are not ours");
}

#[tokio::test]
async fn a_failing_event_is_sent_back_and_its_followers_are_left() {
    let world = World::new().await;
    world.person().await;
    let other = with(event(3, "reactivation"), json!({ "telegramId": "6" }));
    world.peer.serves([event(1, "unheard_of"), event(2, "wallet_connected"), other]);
    let report = world.pass().await.unwrap();
    assert_eq!((report.processed, report.failed), (2, 1));
    assert_eq!(world.peer.state().acks[0], json!({ "processedIds": [3], "retryIds": [1] }));
    // This backend serves a follower early, as the contract's does: there, order holds within a page only.
    assert_eq!(world.peer.state().acks[1], json!({ "processedIds": [2], "retryIds": [] }));
    // A handler that failed is run again when the event is served again.
    let again = world.peer.state().waiting.drain(..).collect::<Vec<_>>();
    world.peer.serves(again);
    assert_eq!(world.pass().await.unwrap().failed, 1);
    assert_eq!(world.peer.acked("retryIds"), [1, 1]);
}

#[tokio::test]
async fn reasons_are_sent_only_to_a_backend_that_says_it_takes_them() {
    let world = World::new().await;
    world.peer.state().takes_reasons = true;
    world.peer.serves([event(1, "unheard_of")]);
    world.pass().await.unwrap();
    assert_eq!(world.peer.acked("retryIds"), [json!({ "id": 1, "error": "unknown event type" })]);
    world.peer.state().takes_reasons = false;
    world.peer.serves([event(2, "unheard_of")]);
    world.pass().await.unwrap();
    assert_eq!(world.peer.acked("retryIds")[1], json!(2));
}

#[tokio::test]
async fn a_failure_is_not_counted_twice_by_a_repeated_acknowledgement() {
    let world = World::new().await;
    let other = with(event(2, "reactivation"), json!({ "telegramId": "6" }));
    world.peer.serves([event(1, "unheard_of"), other]);
    world.peer.fails(ACK, Fault::LoseAnswer);
    world.pass().await.unwrap();
    assert_eq!(
        (world.peer.acked("processedIds"), world.peer.acked("retryIds")),
        (vec![json!(2), json!(2)], vec![json!(1)])
    );
    world.peer.serves([event(3, "unheard_of")]);
    world.peer.fails(ACK, Fault::LoseAnswer);
    assert!(matches!(world.pass().await, Err(BackendError::Unreachable(_))), "with nothing else to send, it is left");
    assert_eq!(world.peer.acked("retryIds"), [1, 3]);
}

#[tokio::test]
async fn the_same_id_with_another_time_is_an_alarm_and_not_a_duplicate() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected")]);
    assert_eq!(world.processed().await, 1);
    forget_stage(&world).await;
    let other = with(event(1, "registered"), json!({ "createdAt": "2026-11-30T08:30:00.000Z" }));
    world.peer.serves([other, event(2, "registered")]);
    world.peer.state().takes_reasons = true;
    let report = world.pass().await.unwrap();
    assert_eq!(report.failed, 1);
    assert_eq!(world.peer.acked("retryIds"), [json!({ "id": 1, "error": "the ledger has another event of this id" })]);
    assert_eq!(world.peer.state().acks[1]["processedIds"], json!([]), "and what is behind it waits");
}

//! Pages: what is asked for, in which order it is taken, and what is not taken.

use serde_json::{Value, json};

use super::{World, event, with};
use crate::onboarding::Backend;

/// The page as subjects and ids.
async fn page(world: &World) -> Vec<(String, i64)> {
    let page = world.remote.next_page(100).await.unwrap();
    page.into_iter().map(|entry| (entry.subject, entry.event.id)).collect()
}

fn of(id: i64, chat: Option<&str>, uid: Option<i64>) -> Value {
    with(event(id, "reactivation"), json!({ "telegramId": chat, "magnetUid": uid }))
}

fn is(page: &[(String, i64)], wanted: &[(&str, i64)]) {
    let page: Vec<(&str, i64)> = page.iter().map(|(subject, id)| (subject.as_str(), *id)).collect();
    assert_eq!(page, wanted);
}

#[tokio::test]
async fn events_are_fetched_applied_and_acknowledged_at_the_end_of_the_page() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(2, "registered"), event(1, "wallet_connected"), event(9, "reactivation")]);
    assert_eq!(world.processed().await, 3);
    assert_eq!(world.ids("SELECT stage FROM bot_users").await, [8]);
    assert_eq!(world.ids("SELECT count(*) FROM telegram_messages").await, [1]);
    assert_eq!(world.peer.state().acks, [json!({ "processedIds": [1, 2, 9], "retryIds": [] })]);
    assert!(world.unacked().await.is_empty());
    let heads = world.peer.state().heads.clone();
    assert!(heads[0].starts_with("GET /api/v2/bot/events/pending?limit=100 HTTP/1.1"), "{}", heads[0]);
    assert!(heads[1].starts_with("POST /api/v2/bot/events/ack HTTP/1.1"), "{}", heads[1]);
    for head in &heads {
        assert!(head.contains(&format!("authorization: Bearer {}", super::SECRET)), "{head}");
    }
    assert_eq!(world.processed().await, 0, "and a second pass finds nothing");
}

#[tokio::test]
async fn a_person_known_by_chat_and_by_member_is_one_subject_in_the_order_of_the_ids() {
    let world = World::new().await;
    world.run("INSERT INTO bot_users (telegram_id, magnet_uid) VALUES (5, 70), (6, NULL)").await;
    world.peer.serves([of(8, None, Some(70)), of(4, Some("6"), None), of(3, Some("5"), None), of(2, None, Some(6))]);
    is(&page(&world).await, &[("uid:70", 3), ("uid:70", 8), ("tg:6", 4), ("uid:6", 2)]);
}

#[tokio::test]
async fn an_event_that_names_both_tells_whose_the_chat_is_unless_it_is_a_preview() {
    let world = World::new().await;
    let preview = with(of(1, Some("8"), Some(80)), json!({ "payload": { "preview": true } }));
    world.peer.serves([of(7, Some("9"), None), of(5, Some("9"), Some(90)), preview, of(2, Some("8"), None)]);
    is(&page(&world).await, &[("uid:90", 5), ("uid:90", 7), ("uid:80", 1), ("tg:8", 2)]);
}

#[tokio::test]
async fn an_event_of_nobody_holds_up_nobody() {
    let world = World::new().await;
    world.peer.serves([of(1, None, None), of(2, None, None)]);
    is(&page(&world).await, &[("event:1", 1), ("event:2", 2)]);
    assert_eq!(world.processed().await, 2);
}

#[tokio::test]
async fn an_id_that_is_there_twice_is_applied_once() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected"), event(1, "wallet_connected")]);
    assert_eq!(world.processed().await, 1);
    assert_eq!(world.peer.acked("processedIds"), [1]);
}

#[tokio::test]
async fn a_page_with_one_bad_event_is_not_applied_at_all() {
    let world = World::new().await;
    world.person().await;
    world.peer.serves([event(1, "wallet_connected"), with(event(2, "registered"), json!({ "createdAt": "soon" }))]);
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.contains("events[1].createdAt"), "{error}");
    assert_eq!(world.ids("SELECT stage FROM bot_users").await, [1]);
    assert!(world.peer.state().acks.is_empty());
}

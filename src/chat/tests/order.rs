//! What is queued, and in which order it leaves.

use super::super::{Action, Button, Class, FailureCode};
use super::*;

#[tokio::test]
async fn a_known_key_queues_nothing() {
    let world = World::new().await;
    let first = world.queue(message(1, Kind::Event, "hello")).await;
    let again = world.db.write(|tx| enqueue(tx, &message(1, Kind::Event, "hello"))).await.unwrap();
    assert_eq!(again, Enqueued::Known(first));
    assert_eq!(world.pass().await.sent, 1);
    let sent = world.db.write(|tx| enqueue(tx, &message(1, Kind::Event, "hello"))).await.unwrap();
    assert_eq!(sent, Enqueued::Known(first));
    world.advance(5_000);
    assert!(world.pass().await.is_empty());
}

#[tokio::test]
async fn a_rolled_back_change_takes_its_message_back() {
    let world = World::new().await;
    let failed = world.db.write(|tx| {
        enqueue(tx, &message(1, Kind::Event, "hello"))?;
        Err::<(), _>(Error::InvalidButton)
    });
    assert!(failed.await.is_err());
    assert!(world.pass().await.is_empty());
}

#[tokio::test]
async fn a_button_that_telegram_would_refuse_is_not_queued() {
    let world = World::new().await;
    let data = Action::Data("x".repeat(65));
    let keyboard = Keyboard(vec![vec![Button { text: "go".into(), action: data }]]);
    let refused = world.db.write(move |tx| enqueue(tx, &NewMessage { keyboard, ..message(1, Kind::Reply, "hello") }));
    assert!(matches!(refused.await, Err(Error::InvalidButton)));
}

#[tokio::test]
async fn a_chat_gets_its_messages_in_order_and_one_a_second() {
    let world = World::new().await;
    for text in ["one", "two", "three"] {
        world.queue(message(1, Kind::Event, text)).await;
    }
    let report = world.pass().await;
    assert_eq!((report.sent, report.next), (1, Some(START + 1_000)));
    world.advance(999);
    assert!(world.pass().await.is_empty());
    world.advance(1);
    assert_eq!(world.pass().await.sent, 1);
    world.advance(1_000);
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.stage.texts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_waiting_head_holds_its_lane_and_no_other() {
    let world = World::new().await;
    world.queue(NewMessage { due_at: Some(START + 60_000), ..message(1, Kind::Event, "head") }).await;
    world.queue(message(1, Kind::Help, "behind")).await;
    world.queue(message(1, Kind::Reply, "other lane")).await;
    world.queue(message(2, Kind::Event, "other chat")).await;
    assert_eq!(world.pass().await.sent, 2);
    let mut texts = world.stage.texts();
    texts.sort();
    assert_eq!(texts, ["other chat", "other lane"]);
    world.advance(30_000);
    assert_eq!(world.pass().await.next, Some(START + 60_000));
    world.advance(30_000);
    world.pass().await;
    world.advance(1_000);
    world.pass().await;
    assert_eq!(world.stage.texts()[2..], ["head", "behind"]);
}

#[tokio::test]
async fn answers_go_before_events_and_both_before_bulk() {
    let world = World::new().await;
    for chat in 1..=40 {
        world.queue(message(chat, Kind::Broadcast, "bulk")).await;
    }
    for chat in 101..=112 {
        world.queue(message(chat, Kind::Event, "event")).await;
    }
    for chat in 201..=210 {
        world.queue(message(chat, Kind::Reply, "reply")).await;
    }
    let report = world.pass().await;
    assert_eq!((report.sent, report.next), (25, Some(START + 1_000)));
    let texts = world.stage.texts();
    let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
    assert_eq!((count("reply"), count("event"), count("bulk")), (10, 12, 3));
    world.advance(1_000);
    assert_eq!(world.pass().await.sent, 20, "the bulk lane has a limit of its own");
}

#[tokio::test]
async fn a_second_pass_in_a_row_finds_nothing() {
    let world = World::new().await;
    world.queue(message(1, Kind::Event, "hello")).await;
    assert_eq!(world.pass().await, Report { sent: 1, ..Report::default() });
    assert_eq!(world.pass().await, Report::default());
}

#[tokio::test]
async fn a_group_gets_twenty_a_minute() {
    let world = World::new().await;
    for n in 0..21 {
        world.queue(message(-5, Kind::Alert, &n.to_string())).await;
    }
    for _ in 0..20 {
        assert_eq!(world.pass().await.sent, 1);
        world.advance(1_000);
    }
    let report = world.pass().await;
    assert_eq!((report.sent, report.next), (0, Some(START + 60_000)));
}

#[tokio::test]
async fn of_several_changes_of_a_message_the_last_is_made() {
    let world = World::new().await;
    let edit = |of: i64, text: &str| NewMessage { edit: Some(of), ..message(1, Kind::Reply, text) };
    let tried = world.queue(edit(7, "tried")).await;
    let connect = Outcome::Refused { class: Class::Later, code: FailureCode::Connect };
    world.stage.will_answer(1, connect);
    world.pass().await;
    let first = world.queue(edit(7, "first")).await;
    let other_message = world.queue(edit(8, "other message")).await;
    let no_change = world.queue(message(1, Kind::Reply, "no change")).await;
    let other_chat = world.queue(NewMessage { chat_id: 2, ..edit(7, "other chat") }).await;
    let last = world.queue(edit(7, "last")).await;
    // Whoever queues a known change again cancels nothing.
    let again = world.db.write(move |tx| enqueue(tx, &edit(7, "first"))).await.unwrap();
    assert_eq!(again, Enqueued::Known(first));
    assert_eq!(world.status(first).await, "cancelled");
    for id in [tried, other_message, no_change, other_chat, last] {
        assert_eq!(world.status(id).await, "pending", "{id}");
    }
    for _ in 0..6 {
        world.advance(1_000);
        world.pass().await;
    }
    let texts: Vec<_> = world.stage.calls().into_iter().filter(|(chat, _)| *chat == 1).map(|(_, text)| text).collect();
    assert_eq!(texts, ["tried", "tried", "other message", "no change", "last"]);
}

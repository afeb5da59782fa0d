//! What each outcome leads to, in the file and for others.

use serde_json::json;

use super::super::{Class, FailureCode};
use super::*;

fn refused(class: Class, code: FailureCode) -> Outcome {
    Outcome::Refused { class, code }
}

fn timed_out() -> Outcome {
    Outcome::Unknown { code: FailureCode::Timeout }
}

fn row(status: &str, attempts: i64, doubts: i64, code: Option<&str>) -> (String, i64, i64, Option<String>) {
    (status.into(), attempts, doubts, code.map(Into::into))
}

fn seen(row: Row) -> (String, i64, i64, Option<String>) {
    (row.status, row.attempts, row.doubts, row.code)
}

#[tokio::test]
async fn a_doubtful_send_is_repeated_or_closed_by_its_kind() {
    let world = World::new().await;
    world.stage.will_answer(1, timed_out());
    world.stage.will_answer(2, timed_out());
    let reply = world.queue(message(1, Kind::Reply, "reply")).await;
    let reminder = world.queue(message(2, Kind::Reminder, "reminder")).await;
    let report = world.pass().await;
    assert_eq!((report.again, report.unknown, report.next), (1, 1, Some(START + 1_000)));
    assert_eq!(seen(world.row(reminder).await), row("unknown", 1, 1, Some("timeout")));
    assert_eq!(seen(world.row(reply).await), row("pending", 1, 1, Some("timeout")));
    world.advance(1_000);
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(seen(world.row(reply).await), row("sent", 2, 1, None));
    world.advance(86_400_000);
    assert!(world.pass().await.is_empty());
    assert_eq!(world.stage.calls().len(), 3);
}

#[tokio::test]
async fn doubt_is_repeated_five_times_and_then_closed() {
    let world = World::new().await;
    let id = world.queue(message(1, Kind::Event, "event")).await;
    for _ in 0..8 {
        world.stage.will_answer(1, timed_out());
        world.pass().await;
        world.advance(300_000);
    }
    assert_eq!(seen(world.row(id).await), row("unknown", 6, 6, Some("timeout")));
    assert_eq!(world.stage.calls().len(), 6);
}

#[tokio::test]
async fn a_blocked_person_is_remembered_and_the_fallback_runs_once() {
    let world = World::new().await;
    world.stage.will_answer(1, refused(Class::Unreachable(Reason::Blocked), FailureCode::Blocked));
    let fallback = Some(json!({"notify": 7}));
    let id = world.queue(NewMessage { fallback: fallback.clone(), ..message(1, Kind::Event, "one") }).await;
    let next = world.queue(NewMessage { fallback, ..message(1, Kind::Event, "two") }).await;
    world.pass().await;
    assert_eq!(seen(world.row(id).await), row("undeliverable", 1, 0, Some("blocked")));
    assert_eq!(world.people.unreachable.lock().unwrap()[&1], Reason::Blocked);
    world.advance(1_000);
    assert_eq!(world.pass().await.skipped, 1);
    assert_eq!(seen(world.row(next).await), row("skipped", 0, 0, Some("unreachable")));
    assert_eq!(*world.people.fallbacks.lock().unwrap(), [r#"{"notify":7}"#, r#"{"notify":7}"#]);
    world.db.write(move |tx| super::super::retry(tx, &[id, next])).await.unwrap();
    world.advance(1_000);
    assert_eq!(world.pass().await.skipped, 2);
    assert_eq!(world.people.fallbacks.lock().unwrap().len(), 2);
    assert_eq!(world.stage.calls().len(), 1);
}

#[tokio::test]
async fn an_opt_out_after_queueing_is_respected() {
    let world = World::new().await;
    let id = world.queue(message(1, Kind::Reminder, "reminder")).await;
    let other = world.queue(message(1, Kind::Event, "event")).await;
    world.people.opted_out.lock().unwrap().insert((1, "reminder"));
    let report = world.pass().await;
    assert_eq!((report.sent, report.skipped), (1, 0), "one of a chat at a time");
    world.advance(1_000);
    assert_eq!(world.pass().await.skipped, 1);
    assert_eq!(seen(world.row(id).await), row("skipped", 0, 0, Some("opted_out")));
    assert_eq!(world.status(other).await, "sent");
}

#[tokio::test]
async fn a_group_is_followed_to_its_new_id_in_order() {
    let world = World::new().await;
    world.stage.will_answer(-1, refused(Class::MovedTo(-1_001), FailureCode::Migrated));
    let first = world.queue(message(-1, Kind::Alert, "one")).await;
    let second = world.queue(message(-1, Kind::Alert, "two")).await;
    assert_eq!(world.pass().await.sent, 1, "the new chat has an interval of its own");
    world.advance(1_000);
    world.pass().await;
    assert_eq!(world.stage.calls(), [(-1, "one".into()), (-1001, "one".into()), (-1001, "two".into())]);
    assert_eq!((world.row(first).await.chat_id, world.row(second).await.chat_id), (-1001, -1001));
    assert_eq!(*world.people.moves.lock().unwrap(), [(-1, -1001)]);
}

#[tokio::test]
async fn refused_markup_is_sent_once_more_as_plain_text() {
    let world = World::new().await;
    for _ in 0..2 {
        world.stage.will_answer(1, refused(Class::BadMarkup, FailureCode::BadMarkup));
    }
    let id = world.queue(message(1, Kind::Event, "<b>1 &lt; 2")).await;
    world.pass().await;
    world.advance(1_000);
    world.pass().await;
    assert_eq!(world.stage.texts(), ["<b>1 &lt; 2", "1 < 2"]);
    assert_eq!(seen(world.row(id).await), row("undeliverable", 2, 0, Some("bad_markup")));
}

#[tokio::test]
async fn a_limited_chat_waits_also_after_a_restart() {
    let world = World::new().await;
    let wait = Class::RateLimited { retry_after: Some(Duration::from_secs(120)) };
    world.stage.will_answer(1, refused(wait, FailureCode::RateLimited));
    let id = world.queue(message(1, Kind::Event, "one")).await;
    world.queue(message(1, Kind::Reply, "another lane")).await;
    world.queue(message(2, Kind::Event, "another chat")).await;
    // The reply goes first and meets the limit.
    let report = world.pass().await;
    assert_eq!((report.sent, report.again, report.next), (1, 1, Some(START + 120_500)));
    let world = world.restart().await;
    assert_eq!(world.pass().await, Report { next: Some(START + 120_500), ..Report::default() });
    world.advance(120_500);
    assert_eq!(world.pass().await.sent, 1);
    world.advance(1_000);
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.status(id).await, "sent");
}

#[tokio::test]
async fn two_limited_chats_stop_everything_until_the_later_one_ends() {
    let world = World::new().await;
    for (chat, seconds) in [(1, 30), (2, 10)] {
        let wait = Class::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        world.stage.will_answer(chat, refused(wait, FailureCode::RateLimited));
        world.queue(message(chat, Kind::Event, "limited")).await;
    }
    assert_eq!(world.pass().await.again, 2);
    world.queue(message(3, Kind::Reply, "innocent")).await;
    assert_eq!(world.pass().await, Report { next: Some(START + 30_500), ..Report::default() });
    world.advance(30_500);
    assert_eq!(world.pass().await.sent, 3);
}

#[tokio::test]
async fn a_refused_token_stops_sending_for_a_minute() {
    let world = World::new().await;
    world.stage.will_answer(1, refused(Class::Unauthorized, FailureCode::Unauthorized));
    let id = world.queue(message(1, Kind::Reply, "one")).await;
    assert_eq!(world.pass().await.again, 1);
    assert!(!world.access.is_granted());
    world.queue(message(2, Kind::Reply, "two")).await;
    assert_eq!(world.pass().await.next, Some(START + 60_000));
    assert_eq!(seen(world.row(id).await), row("pending", 1, 0, Some("unauthorized")));
    world.advance(60_000);
    assert_eq!(world.pass().await.sent, 2);
    assert!(world.access.is_granted());
}

#[tokio::test]
async fn a_message_that_is_refused_for_too_long_expires() {
    let world = World::new().await;
    let id = world.queue(NewMessage { fallback: Some(json!(1)), ..message(1, Kind::Event, "one") }).await;
    let mut calls = 0;
    while world.status(id).await == "pending" {
        world.stage.will_answer(1, refused(Class::Later, FailureCode::Connect));
        let wait = world.row(id).await.due_in_ms.max(1_000);
        world.pass().await;
        world.advance(wait.unsigned_abs());
        calls += 1;
        assert!(calls < 100);
    }
    assert_eq!(world.row(id).await.code.as_deref(), Some("expired"));
    assert!(world.clock.now() - START >= 3_600_000);
    assert_eq!(*world.people.fallbacks.lock().unwrap(), ["1"]);
}

#[tokio::test]
async fn a_keyboard_that_cannot_be_read_does_not_hold_its_lane() {
    let world = World::new().await;
    let broken = world.queue(message(1, Kind::Event, "one")).await;
    world.queue(message(1, Kind::Event, "two")).await;
    world.run("UPDATE telegram_messages SET keyboard = '{\"of\": \"another version\"}' WHERE text = 'one'").await;
    let report = world.pass().await;
    assert_eq!((report.skipped, report.sent), (1, 1));
    assert_eq!(seen(world.row(broken).await), row("undeliverable", 0, 0, Some("button_invalid")));
}

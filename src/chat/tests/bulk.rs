//! What those who send to many rely on: messages that may not go yet, that are taken back, and whose end is told.

use super::super::addressee::End;
use super::super::outcome::{FailureCode, Reason};
use super::super::withdraw::withdraw;
use super::super::{Class, NewMessage};
use super::*;

#[tokio::test]
async fn a_message_that_may_not_go_yet_waits_without_an_attempt() {
    let world = World::new().await;
    let quiet_until = START + 3_600_000 + 1;
    world.people.not_before.lock().unwrap().insert(1, quiet_until);
    let id = world.queue(message(1, Kind::Broadcast, "hello")).await;
    let other = world.queue(message(2, Kind::Broadcast, "hello")).await;
    let report = world.pass().await;
    assert_eq!((report.sent, report.skipped, report.next), (1, 0, Some(quiet_until)));
    let row = world.row(id).await;
    assert_eq!((row.status.as_str(), row.attempts, row.due_in_ms), ("pending", 0, 3_600_001));
    assert_eq!(world.status(other).await, "sent", "nobody else waits for it");
    // An hour of waiting is all that this sender tries for: it is not counted.
    world.stage.will_answer(1, Outcome::Refused { class: Class::Later, code: FailureCode::Connect });
    world.advance(3_600_001);
    world.pass().await;
    assert_eq!(world.status(id).await, "pending");
    world.advance(2_000);
    world.pass().await;
    assert_eq!(world.status(id).await, "sent");
}

#[tokio::test]
async fn only_bulk_messages_that_certainly_were_not_sent_are_taken_back() {
    let world = World::new().await;
    let waiting = world.queue(message(1, Kind::Broadcast, "waiting")).await;
    let reply = world.queue(message(2, Kind::Reply, "reply")).await;
    let doubtful = world.queue(message(3, Kind::Broadcast, "doubtful")).await;
    let sent = world.queue(message(4, Kind::Broadcast, "sent")).await;
    world.run("UPDATE telegram_messages SET attempts = 1, unknown_count = 1 WHERE chat_id = 3").await;
    world.run("UPDATE telegram_messages SET status = 'sent', finished_at = 1 WHERE chat_id = 4").await;
    let ids = [waiting, reply, doubtful, sent, 99];
    let taken = world.db.write(move |tx| withdraw(tx, &ids)).await.unwrap();
    assert_eq!(taken, [waiting]);
    let again = world.queue(message(1, Kind::Broadcast, "waiting")).await;
    assert!(again > sent, "its key is free again");
}

#[tokio::test]
async fn every_end_of_a_message_is_told_in_its_transaction() {
    let world = World::new().await;
    let refused = |class, code| Outcome::Refused { class, code };
    let blocked = refused(Class::Unreachable(Reason::Blocked), FailureCode::Blocked);
    let cases = [
        (1, None, End::Sent { message_id: Some(1) }),
        (2, Some(blocked), End::Undeliverable(FailureCode::Blocked)),
        (3, Some(Outcome::Unknown { code: FailureCode::Timeout }), End::Unknown(FailureCode::Timeout)),
    ];
    for (chat, outcome, end) in cases {
        if let Some(outcome) = outcome {
            world.stage.will_answer(chat, outcome);
        }
        let id = world.queue(message(chat, Kind::Broadcast, "hello")).await;
        world.pass().await;
        assert_eq!(world.people.ends.lock().unwrap().pop(), Some((id, format!("broadcast:{chat}:hello"), end)));
    }
    // The one who blocked the bot is not tried again.
    let skipped = world.queue(message(2, Kind::Broadcast, "once more")).await;
    world.advance(1_000);
    world.pass().await;
    let end = End::Skipped(FailureCode::Unreachable);
    assert_eq!(world.people.ends.lock().unwrap().pop(), Some((skipped, "broadcast:2:once more".to_owned(), end)));
    let again = world.queue(message(5, Kind::Reply, "hello")).await;
    world.stage.will_answer(5, refused(Class::Later, FailureCode::Connect));
    world.pass().await;
    assert_eq!(world.people.ends.lock().unwrap().pop(), None, "message {again} is still to be sent");
}

#[tokio::test]
async fn an_edit_of_a_message_that_is_gone_becomes_a_new_message() {
    let world = World::new().await;
    let gone = Outcome::Refused { class: Class::NoSuchMessage, code: FailureCode::NoSuchMessage };
    world.stage.will_answer(1, gone);
    let id = world.queue(NewMessage { edit: Some(7), ..message(1, Kind::Reply, "changed") }).await;
    world.pass().await;
    world.advance(1_000);
    world.pass().await;
    assert_eq!(world.status(id).await, "sent");
    let edits: Vec<_> = world.stage.calls.lock().unwrap().iter().map(|call| call.edit).collect();
    assert_eq!(edits, [Some(7), None]);
}

//! One attempt: what each outcome of a call is stored as, and what is tried again before it ends.

use super::*;
use crate::chat::{Class, Format, Preview, Reason};

fn limited(seconds: Option<u64>) -> Outcome {
    let retry_after = seconds.map(Duration::from_secs);
    Outcome::Refused { class: Class::RateLimited { retry_after }, code: FailureCode::RateLimited }
}

fn denied() -> Outcome {
    Outcome::Refused { class: Class::Unauthorized, code: FailureCode::Unauthorized }
}

fn moved(to: i64) -> Outcome {
    Outcome::Refused { class: Class::MovedTo(to), code: FailureCode::Migrated }
}

#[tokio::test]
async fn a_lead_is_sent_as_plain_text_without_a_preview() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    assert_eq!(world.pass().await, Report { announced: 1, sent: 1, ..Report::default() });
    assert_eq!(world.row(&lead).await, sent(1));
    assert_eq!(world.events(&lead).await, ["created", "notification_sent"]);
    let call = world.stage.calls.lock().unwrap()[0].clone();
    assert_eq!((call.chat_id, call.format, call.preview), (CHAT, Format::Plain, Preview::Off));
    assert!(call.text.contains("ID: r-1") && call.keyboard.0.is_empty(), "{}", call.text);
}

#[tokio::test]
async fn every_outcome_has_its_code() {
    use FailureCode as Code;
    let refused = |class, code| Outcome::Refused { class, code };
    let unknown = |code| Outcome::Unknown { code };
    let blocked = Class::Unreachable(Reason::Blocked);
    let cases = [
        (unknown(Code::Timeout), "telegram_timeout"),
        (unknown(Code::Http(500)), "telegram_http_500"),
        (unknown(Code::Http(502)), "telegram_http_502"),
        (unknown(Code::BrokenConnection), "notification_failed"),
        (unknown(Code::BrokenAnswer), "notification_failed"),
        (unknown(Code::Crashed), "notification_failed"),
        (refused(blocked, Code::Blocked), "telegram_http_403"),
        (refused(blocked, Code::NotMember), "telegram_http_403"),
        (refused(Class::Unreachable(Reason::NeverStarted), Code::ChatNotFound), "telegram_http_400"),
        (refused(Class::Final, Code::TooLong), "telegram_http_400"),
        (refused(Class::Final, Code::Migrated), "telegram_http_400"),
        (refused(Class::Final, Code::MethodNotFound), "telegram_http_404"),
        (refused(Class::Later, Code::Conflict), "telegram_http_409"),
        (refused(Class::Later, Code::Http(413)), "telegram_http_413"),
        (refused(Class::Unauthorized, Code::Unauthorized), "telegram_http_401"),
    ];
    let world = World::new().await;
    for (number, (outcome, code)) in cases.into_iter().enumerate() {
        let lead = world.insert(&format!("r-{number}")).await;
        world.stage.will_answer(outcome.clone());
        let report = world.pass().await;
        assert_eq!((report.sent, report.failed), (0, 1), "{outcome:?}");
        assert_eq!(world.row(&lead).await, failed(1, code), "{outcome:?}");
        assert_eq!(world.events(&lead).await, ["created", "notification_failed"]);
        assert_eq!(world.stage.calls(), number + 1, "once: {outcome:?}");
    }
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_next_lead_is_sent() {
    let world = World::new().await;
    let (first, second) = (world.insert("r-1").await, world.insert("r-2").await);
    world.stage.will(Play::Panic);
    let report = world.pass().await;
    assert_eq!((report.failed, report.sent), (1, 1));
    let codes = [world.row(&first).await, world.row(&second).await];
    assert!(codes.contains(&failed(1, "notification_failed")) && codes.contains(&sent(1)), "{codes:?}");
}

#[tokio::test]
async fn too_many_requests_are_waited_for_within_the_attempt() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will_answer(limited(Some(3)));
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.advance(3_000);
    tokio::task::yield_now().await;
    assert_eq!(world.stage.calls(), 1, "Telegram's wait is a minimum");
    world.advance(600);
    assert_eq!(pass.await.unwrap().sent, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (sent(1), 2));
    let pauses = world
        .db
        .read::<i64, StoreError>(|tx| tx.query_one("SELECT count(*) FROM telegram_pauses", [], |row| row.get(0)));
    assert_eq!(pauses.await.unwrap(), 0, "the file knows no chat of leads");
}

#[tokio::test]
async fn a_wait_that_is_too_long_ends_the_attempt() {
    let world = World::new().await;
    let first = world.insert("r-1").await;
    world.stage.will_answer(limited(Some(60)));
    let report = world.pass().await;
    assert_eq!(world.row(&first).await, failed(1, "telegram_http_429"));
    assert_eq!(report.failed, 1);
    let second = world.insert("r-2").await;
    let report = world.pass().await;
    assert_eq!((report.handled(), report.next), (0, Some(START + 60_500)), "Telegram's pause holds for the next one");
    assert_eq!(world.row(&second).await, pending());
    world.advance(60_500);
    assert_eq!(world.pass().await.sent, 1);
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_tried_for_half_a_minute() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    (0..20).for_each(|_| world.stage.will_answer(connect()));
    let pass = world.start_pass();
    for (calls, wait) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000), (5, 8_000)] {
        world.stage.called_times(calls).await;
        world.advance(wait);
    }
    assert_eq!(pass.await.unwrap().failed, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (failed(1, "telegram_unreachable"), 6));
}

#[tokio::test]
async fn a_connection_that_comes_back_is_used() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will_answer(connect());
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.advance(1_000);
    assert_eq!((pass.await.unwrap().sent, world.row(&lead).await), (1, sent(1)));
}

#[tokio::test]
async fn a_process_that_slept_through_its_attempt_does_not_send_again() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will_answer(connect());
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.advance(20 * 60_000);
    assert_eq!(pass.await.unwrap().failed, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (failed(1, "telegram_unreachable"), 1));
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_lengthen_the_attempt() {
    let world = World::new().await;
    world.insert("r-1").await;
    (0..20).for_each(|_| world.stage.will_answer(connect()));
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.clock.set(START - 3_600_000);
    tokio::task::yield_now().await;
    world.advance(30_001);
    assert_eq!(pass.await.unwrap().failed, 1);
}

#[tokio::test]
async fn a_chat_that_moved_is_followed_at_once_and_from_then_on() {
    let world = World::new().await;
    let first = world.insert("r-1").await;
    world.stage.will_answer(moved(-100_042));
    assert_eq!(world.pass().await.sent, 1);
    let second = world.insert("r-2").await;
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.stage.chats(), [CHAT, -100_042, -100_042]);
    assert_eq!((world.row(&first).await, world.row(&second).await), (sent(1), sent(1)));
    let again = Recipient::open(world.dir.path(), &Secret::new(CHAT.to_string())).unwrap();
    assert_eq!(again.chat_id(), -100_042, "also for the next process");
}

#[tokio::test]
async fn chats_that_move_in_a_circle_end_the_attempt() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    for to in [-100_042, CHAT, -100_042, CHAT] {
        world.stage.will_answer(moved(to));
    }
    assert_eq!(world.pass().await.failed, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (failed(1, "telegram_http_400"), 3));
}

#[tokio::test]
async fn a_refused_token_is_known_to_everybody_and_holds_the_next_lead() {
    let world = World::new().await;
    world.insert("r-1").await;
    world.stage.will_answer(denied());
    assert_eq!(world.pass().await.failed, 1);
    assert!(!world.access.is_granted());
    let second = world.insert("r-2").await;
    assert_eq!(world.pass().await.next, Some(START + 60_000));
    assert_eq!(world.row(&second).await, pending());
    // The token is tried without a lead: none is spent on it, however long it takes.
    for _ in 0..3 {
        world.stage.introductions.lock().unwrap().push_back(denied());
        world.advance(60_000);
        assert_eq!(world.pass().await.next, Some(world.clock.now() + 60_000));
        assert_eq!((world.row(&second).await, world.stage.calls()), (pending(), 1));
    }
    world.advance(60_000);
    assert_eq!(world.pass().await.sent, 1);
    assert!(world.access.is_granted());
    assert_eq!((world.row(&second).await, world.stage.calls()), (sent(1), 2));
}

#[tokio::test]
async fn a_request_id_that_changes_while_the_message_is_under_way_has_it_sent_once() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will(Play::Hang);
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    let rename = "UPDATE broker_leads SET request_id = 'r-2'";
    world.db.write::<_, StoreError>(move |tx: &Tx<'_>| tx.execute(rename, [])).await.unwrap();
    world.stage.released.notify_waiters();
    assert_eq!(pass.await.unwrap().sent, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (sent(1), 1));
}

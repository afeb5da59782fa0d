//! Many sends at once: hanging and panicking ones, the end of the process, and answers that come too late.

use super::super::queue::{self, Claimed, Ended};
use super::super::{FailureCode, queue::Claim};
use super::*;

#[tokio::test]
async fn a_hanging_call_holds_up_its_own_chat_only() {
    let world = Arc::new(World::new().await);
    world.stage.will(1, Play::Hang);
    let hanging = world.queue(message(1, Kind::Event, "hangs")).await;
    let behind = world.queue(message(1, Kind::Reply, "behind it")).await;
    world.stage.will(1, Play::Hang);
    for chat in 2..=9 {
        world.queue(message(chat, Kind::Event, "free")).await;
    }
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.stage.called_times(9).await;
    // Queued while the pass waits for the hanging call; it goes at once.
    world.queue(message(10, Kind::Reply, "late")).await;
    world.stage.called_times(10).await;
    assert!(!pass.is_finished());
    world.clock.advance(Duration::from_secs(60 * 60));
    assert_eq!(world.stage.calls().iter().filter(|(chat, _)| *chat == 1).count(), 1, "one of a chat at a time");
    world.stage.release();
    world.stage.called_times(11).await;
    world.stage.release();
    assert_eq!(pass.await.unwrap().sent, 11);
    assert_eq!((world.status(hanging).await, world.status(behind).await), ("sent".into(), "sent".into()));
}

#[tokio::test]
async fn a_broadcast_that_hangs_leaves_room_for_answers() {
    let world = Arc::new(World::new().await);
    for chat in 1..=20 {
        world.stage.will(chat, Play::Hang);
        world.queue(message(chat, Kind::Broadcast, "hangs")).await;
    }
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.stage.called_times(12).await;
    world.queue(message(100, Kind::Reply, "answer")).await;
    world.stage.called_times(13).await;
    assert_eq!(world.stage.texts()[12], "answer");
    while !pass.is_finished() {
        world.stage.release();
        tokio::task::yield_now().await;
    }
    assert_eq!(pass.await.unwrap().sent, 21);
}

#[tokio::test]
async fn a_slot_that_somebody_else_holds_is_waited_for() {
    let world = Arc::new(World::new().await);
    let held = world.limiter.take(1, Lane::Transactional).expect("nothing was sent yet");
    world.queue(message(1, Kind::Alert, "waits")).await;
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.queue(message(2, Kind::Alert, "free")).await;
    world.stage.called_times(1).await;
    assert_eq!(world.stage.texts(), ["free"]);
    drop(held);
    assert_eq!(pass.await.unwrap().sent, 2);
}

#[tokio::test]
async fn a_panicking_messenger_is_an_unknown_outcome() {
    let world = World::new().await;
    world.stage.will(1, Play::Panic);
    let id = world.queue(message(1, Kind::Digest, "digest")).await;
    assert_eq!(world.pass().await.unknown, 1);
    let row = world.row(id).await;
    assert_eq!((row.status.as_str(), row.code.as_deref()), ("unknown", Some("crashed")));
}

#[tokio::test]
async fn a_message_in_flight_at_the_end_of_the_process_has_an_unknown_outcome() {
    let world = Arc::new(World::new().await);
    world.stage.will(1, Play::Hang);
    world.stage.will(2, Play::Hang);
    let event = world.queue(message(1, Kind::Event, "event")).await;
    let reminder = world.queue(message(2, Kind::Reminder, "reminder")).await;
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.stage.called_times(2).await;
    pass.abort();
    assert!(pass.await.is_err());
    let world = Arc::into_inner(world).expect("the pass is gone").restart().await;
    assert_eq!(
        world.row(event).await,
        Row {
            status: "pending".into(),
            attempts: 1,
            doubts: 1,
            code: Some("crashed".into()),
            due_in_ms: 1_000,
            chat_id: 1,
        }
    );
    assert_eq!(world.status(reminder).await, "unknown");
    world.advance(1_000);
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.stage.texts(), ["event"]);
}

#[tokio::test]
async fn what_this_process_has_in_hand_is_not_taken_again_whatever_the_clock_says() {
    let world = Arc::new(World::new().await);
    world.stage.will(1, Play::Hang);
    let id = world.queue(message(1, Kind::Event, "event")).await;
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.stage.called_times(1).await;
    pass.abort();
    assert!(pass.await.is_err());
    world.advance(86_400_000);
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert!(world.sender.run_once(&stopped).await.unwrap().is_empty());
    assert_eq!(world.status(id).await, "sending");
    world.stage.release();
    world.sender.drain().await;
    assert_eq!(world.status(id).await, "sent");
}

#[tokio::test]
async fn after_the_stop_nothing_is_claimed_and_what_is_under_way_is_recorded() {
    let world = Arc::new(World::new().await);
    world.stage.will(1, Play::Hang);
    let under_way = world.queue(message(1, Kind::Event, "under way")).await;
    let pass = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.pass().await }
    });
    world.stage.called_times(1).await;
    world.stop.cancel();
    let waiting = world.queue(message(2, Kind::Event, "waiting")).await;
    pass.await.unwrap();
    let drained = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.sender.drain().await }
    });
    world.stage.release();
    drained.await.unwrap();
    assert_eq!(world.status(under_way).await, "sent");
    assert_eq!(world.status(waiting).await, "pending");
}

async fn claim(world: &World, id: i64) -> Claim {
    let people = Arc::clone(&world.people);
    let claimed = world.db.write(move |tx| queue::claim(tx, people.as_ref(), id, tx.now() + 1)).await.unwrap();
    match claimed {
        Claimed::Message(claim) => *claim,
        other => panic!("not claimed: {other:?}"),
    }
}

#[tokio::test]
async fn an_answer_that_comes_after_the_next_claim_changes_nothing() {
    let world = World::new().await;
    let id = world.queue(message(1, Kind::Event, "event")).await;
    let first = claim(&world, id).await;
    world.advance(1_000);
    // The lease ran out and nobody has it in hand, so the pass treats it as an unknown outcome.
    assert_eq!(world.pass().await.again, 1);
    world.advance(1_000);
    let second = claim(&world, id).await;
    let settle = |claim: Claim, outcome: Outcome| {
        let people = Arc::clone(&world.people);
        let ended = Ended { claim, outcome, pauses: vec![], give_up_after: Duration::from_secs(60) };
        world.db.settle(move |tx| queue::settle(tx, people.as_ref(), &ended))
    };
    let late = Outcome::Unknown { code: FailureCode::Timeout };
    assert_eq!(settle(first, late).await.unwrap(), None);
    assert_eq!(world.status(id).await, "sending");
    let arrived = Outcome::Delivered { message_id: Some(9) };
    assert!(settle(second.clone(), arrived.clone()).await.unwrap().is_some());
    assert!(settle(second, arrived).await.unwrap().is_none(), "settled once");
    assert_eq!(world.row(id).await.doubts, 1);
}

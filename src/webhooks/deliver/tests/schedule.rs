//! When a delivery is attempted, and with what.

use super::*;

const SECOND: i64 = 1000;
const HOUR: i64 = 3600 * SECOND;
/// After the first try.
const PAUSES_MS: [i64; 8] = [5 * SECOND, 300 * SECOND, HOUR / 2, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR];

/// Moves the clock to a millisecond before the next attempt, sees that nothing goes, and then to it; when that was.
async fn reach_next(world: &World, receiver: &Receiver, delivery: i64) -> UnixMs {
    let due = world.row(delivery).await.next_attempt_at.expect("it is tried again");
    let before = receiver.count();
    world.clock.set(due - 1);
    let report = world.run().await;
    assert!(report.is_empty() && report.next == Some(due), "{report:?}");
    assert_eq!(receiver.count(), before, "not before its time");
    world.clock.set(due);
    due
}

#[tokio::test]
async fn the_whole_schedule_is_kept_to_and_then_it_has_failed() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("503 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    let mut at = START;
    for (n, pause) in PAUSES_MS.into_iter().enumerate() {
        assert_eq!(world.run().await.again, 1, "{n}");
        let got = receiver.got();
        assert_eq!(got.len(), n + 1);
        assert_eq!(got[n].at_s(), at / 1000);
        assert!(got[n].is_signed_by(&SECRET, at));
        let due = reach_next(&world, &receiver, delivery).await;
        assert_eq!(due - at, pause, "{n}");
        at = due;
    }
    assert_eq!(at - START, 61 * HOUR + 35 * 60 * SECOND + 5 * SECOND);
    assert_eq!(world.run().await.failed, 1);
    let row = world.row(delivery).await;
    assert_eq!((row.status.as_str(), row.attempts, row.next_attempt_at), ("failed", 9, None));
    assert_eq!(row.last_error.as_deref(), Some("http_503"));
    assert_eq!(world.journal(delivery).await, vec![Some("http_5xx".to_owned()); 9]);
    let got = receiver.got();
    assert!(got.iter().all(|one| one.id() == got[0].id() && one.body == got[0].body), "one id, identical bytes");
    assert!(world.run().await.is_empty());
}

#[tokio::test]
async fn jitter_adds_at_most_a_tenth_to_each_pause() {
    let policy = Policy { jitter: Jitter::Random, ..exact() };
    let world = World::with(DeliverSettings { policy, ..World::new().settings });
    let receiver = Receiver::that(Play::Close).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    for pause in PAUSES_MS {
        let at = world.clock.now();
        world.run().await;
        let due = reach_next(&world, &receiver, delivery).await;
        assert!((pause..=pause + pause / 10).contains(&(due - at)), "{pause}: {}", due - at);
    }
    world.run().await;
    assert_eq!(world.status(delivery).await, "failed");
    assert_eq!(receiver.count(), 9);
}

#[tokio::test]
async fn a_delivery_that_arrives_is_not_sent_again() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("500 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    world.run().await;
    receiver.will(Play::Answer("204 X"));
    reach_next(&world, &receiver, delivery).await;
    assert_eq!(world.run().await.delivered, 1);
    assert_eq!(world.status(delivery).await, "delivered");
    assert_eq!(world.journal(delivery).await, [Some("http_5xx".to_owned()), None]);
    world.clock.advance(Duration::from_secs(30 * 24 * 3600));
    assert!(world.run().await.is_empty());
    assert_eq!(receiver.count(), 2);
}

#[tokio::test]
async fn the_bytes_of_an_event_are_the_same_for_every_endpoint() {
    let world = World::new();
    let (one, other) = (Receiver::that(Play::Answer("200 X")).await, Receiver::that(Play::Answer("200 X")).await);
    let endpoints = [world.endpoint(&one.url).await, world.endpoint(&other.url).await];
    let body = "{\"b\":1e400,\"a\":0.10,\"\u{2028}\":\"\\/\u{1f600}\"}";
    world.event("evt_1", body, &endpoints).await;
    world.run().await;
    for receiver in [&one, &other] {
        let got = receiver.got();
        assert_eq!((got[0].id(), got[0].body.as_str()), ("evt_1", body));
        assert!(got[0].is_signed_by(&SECRET, START));
    }
}

#[tokio::test]
async fn during_a_rotation_both_secrets_verify_and_after_it_the_new_one() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let endpoint_id = format!("ep_{}", receiver.url.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let until = START + 24 * HOUR;
    world.execute("UPDATE webhook_secrets SET valid_until = ?1", vec![until.into()]).await;
    let new = [9; 32];
    world.secret(endpoint, &endpoint_id, &new, None).await;
    world.event("evt_1", "{}", &[endpoint]).await;
    world.run().await;
    world.clock.set(until);
    world.event("evt_2", "{}", &[endpoint]).await;
    world.run().await;
    let got = receiver.got();
    assert_eq!(got[0].headers["webhook-signature"].split(' ').count(), 2);
    assert!(got[0].is_signed_by(&SECRET, START) && got[0].is_signed_by(&new, START));
    assert_eq!(got[1].headers["webhook-signature"].split(' ').count(), 1);
    assert!(!got[1].is_signed_by(&SECRET, until) && got[1].is_signed_by(&new, until));
}

#[tokio::test]
async fn a_second_pass_finds_nothing_to_do() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.events(endpoint, 10).await;
    assert_eq!(world.run().await.delivered, 10);
    assert_eq!(world.run().await, Report::default());
}

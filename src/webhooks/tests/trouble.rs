//! What failures mean for an endpoint.

use super::super::delivery::{DeliveryStatus, Trouble};
use super::super::sweep::sweep;
use super::super::{DisabledReason, EndpointStatus};
use super::*;

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_and_what_waits_is_cancelled() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.event(2).await;
    world.event(3).await;
    let claims = world.claim(endpoint.row, 2).await;
    let finished = world.finish(&claims[0], answered(410)).await;
    assert_eq!(finished.settled, Settled::Failed);
    assert_eq!(finished.trouble, [Trouble::Disabled(DisabledReason::Gone)]);
    let seen = world.look_at(&endpoint).await;
    assert_eq!((seen.status, seen.disabled_reason), (EndpointStatus::Disabled, Some(DisabledReason::Gone)));
    // The other attempt under way ends, and is not tried again.
    assert!(matches!(world.finish(&claims[1], timed_out()).await.settled, Settled::Again(_)));
    let swept = world.write(|tx| sweep(tx).unwrap()).await;
    assert_eq!((swept.cancelled, swept.skipped), (2, 0));
    assert_eq!(world.standings().await, ["1 failed 1 1", "2 cancelled 1 1", "3 cancelled 0 0"]);
    let told = world.published().await;
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("webhook.endpoint_disabled ") && told[0].contains("\"gone\""), "{told:?}");
}

#[tokio::test]
async fn a_resend_that_finds_the_endpoint_gone_leaves_what_was_delivered() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(200)).await;
    world.run("UPDATE webhook_deliveries SET resend_requested_at = 1").await.unwrap();
    assert_eq!(world.attempt(&endpoint, answered(410)).await, Settled::Returned(DeliveryStatus::Delivered));
    assert_eq!(world.look_at(&endpoint).await.disabled_reason, Some(DisabledReason::Gone));
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_gets_it_for_all_its_deliveries() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    let finished = world.finish(&claim, asks_for(429, Duration::from_secs(600))).await;
    let until = START + 10 * MINUTE;
    assert_eq!(finished, Finished { settled: Settled::Again(until), trouble: vec![Trouble::Held(until)] });
    world.event(2).await;
    world.advance(10 * MINUTE - 1);
    assert!(world.claim(endpoint.row, 9).await.is_empty());
    world.advance(1);
    assert_eq!(world.claim(endpoint.row, 9).await.len(), 2);
}

#[tokio::test]
async fn a_pause_shorter_than_the_schedules_changes_nothing_for_the_delivery_and_none_is_longer_than_a_day() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, timed_out()).await;
    world.advance(5 * SECOND);
    let now = world.clock.now();
    assert_eq!(world.attempt(&endpoint, asks_for(503, Duration::from_secs(1))).await, Settled::Again(now + 5 * MINUTE));
    world.advance(5 * MINUTE);
    let now = world.clock.now();
    assert_eq!(world.attempt(&endpoint, asks_for(503, Duration::MAX)).await, Settled::Again(now + DAY));
    assert_eq!(world.look_at(&endpoint).await.held_until, Some(now + DAY));
}

#[tokio::test]
async fn of_pauses_asked_for_at_once_the_longest_counts() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.event(2).await;
    let claims = world.claim(endpoint.row, 2).await;
    world.finish(&claims[0], asks_for(503, Duration::from_secs(60))).await;
    let second = world.finish(&claims[1], asks_for(503, Duration::from_secs(10))).await;
    assert_eq!(second.settled, Settled::Again(START + MINUTE));
    assert_eq!(world.look_at(&endpoint).await.held_until, Some(START + MINUTE));
}

#[tokio::test]
async fn only_429_and_503_hold_an_endpoint() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    assert_eq!(
        world.attempt(&endpoint, asks_for(500, Duration::from_secs(60))).await,
        Settled::Again(START + 5 * SECOND)
    );
    assert_eq!(world.look_at(&endpoint).await.held_until, None);
}

#[tokio::test]
async fn an_endpoint_is_warned_of_after_a_day_and_disabled_after_five_without_success() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let mut row = 0;
    let mut fail = async |at: i64| {
        world.clock.set(START + at);
        row += 1;
        world.event(row).await;
        let claim = world.claim(endpoint.row, 99).await.into_iter().next_back().unwrap();
        world.finish(&claim, timed_out()).await.trouble
    };
    assert_eq!(fail(0).await, []);
    assert_eq!(fail(DAY - 1).await, []);
    assert_eq!(fail(DAY).await, [Trouble::Failing]);
    assert_eq!(fail(2 * DAY).await, [], "once");
    assert_eq!(fail(5 * DAY - 1).await, []);
    assert_eq!(fail(5 * DAY).await, [Trouble::Disabled(DisabledReason::Failing)]);
    assert_eq!(world.look_at(&endpoint).await.failing_since, Some(START));
    let told = world.published().await;
    let types: Vec<_> = told.iter().map(|one| one.split(' ').next().unwrap()).collect();
    assert_eq!(types, ["webhook.endpoint_failing", "webhook.endpoint_disabled"]);
    assert!(told.iter().all(|one| one.contains(&endpoint.id) && one.contains("2023-11-14T22:13:20.000Z")), "{told:?}");
    let swept = world.write(|tx| sweep(tx).unwrap()).await;
    assert_eq!(swept.cancelled, 0);
    let left = world.column("SELECT DISTINCT status FROM webhook_deliveries ORDER BY status").await;
    assert_eq!(left, ["sending", "skipped"], "to be replayed");
}

#[tokio::test]
async fn one_success_in_between_and_the_days_begin_anew() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, timed_out()).await;
    world.advance(2 * DAY);
    world.attempt(&endpoint, timed_out()).await;
    assert_eq!(world.look_at(&endpoint).await.failing_since, Some(START));
    world.advance(2 * DAY);
    world.attempt(&endpoint, answered(200)).await;
    assert_eq!(world.look_at(&endpoint).await.failing_since, None);
    world.advance(2 * DAY);
    world.event(2).await;
    world.attempt(&endpoint, timed_out()).await;
    assert_eq!(world.look_at(&endpoint).await.failing_since, Some(START + 6 * DAY));
    world.advance(DAY);
    world.attempt(&endpoint, timed_out()).await;
    assert_eq!(world.published().await.len(), 2, "and it is warned of again");
}

#[tokio::test]
async fn an_endpoint_that_fails_for_ever_is_left_active_if_the_operator_wants_that() {
    let mut world = World::new();
    world.policy.disable_after = Duration::ZERO;
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, timed_out()).await;
    world.advance(100 * DAY);
    world.attempt(&endpoint, timed_out()).await;
    assert_eq!(world.look_at(&endpoint).await.status, EndpointStatus::Active);
    assert!(world.published().await.is_empty());
}

#[tokio::test]
async fn a_success_writes_nothing_to_an_endpoint_that_does_not_fail() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world
        .run("CREATE TRIGGER t AFTER UPDATE ON webhook_endpoints BEGIN SELECT RAISE(ABORT, 'written'); END")
        .await
        .unwrap();
    world.event(1).await;
    assert_eq!(world.attempt(&endpoint, answered(200)).await, Settled::Delivered);
}

#[tokio::test]
async fn what_looks_like_the_receivers_failure_is_counted_whoever_is_to_blame() {
    for (class, counts) in ErrorClass::ALL.map(|class| (class, class != ErrorClass::Interrupted)) {
        let world = World::new();
        let endpoint = world.endpoint().await;
        world.event(1).await;
        world.attempt(&endpoint, outcome(None, Some(class))).await;
        assert_eq!(world.look_at(&endpoint).await.failing_since, counts.then_some(START), "{class:?}");
    }
}

#[tokio::test]
async fn a_failure_noted_under_another_clock_is_not_counted_from_there() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.clock.set(START + 400 * DAY);
    world.event(1).await;
    world.attempt(&endpoint, timed_out()).await;
    world.clock.set(START);
    world.event(2).await;
    world.attempt(&endpoint, timed_out()).await;
    assert_eq!(world.look_at(&endpoint).await.failing_since, Some(START));
}

//! How attempts end: by the schedule, late, cut off, and asked for by a person.

use super::super::delivery::DeliveryStatus;
use super::super::{Trigger, resend};
use super::*;

impl World {
    async fn resend(&self, claim: &Claim) -> Result<(), Error> {
        let id = claim.id();
        self.db.write(move |tx| resend(tx, &TenantId::installation(), &id)).await
    }
}

#[tokio::test]
async fn nine_attempts_are_made_at_the_times_of_the_schedule_and_then_none() {
    let mut world = World::new();
    world.policy.disable_after = Duration::ZERO;
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let mut times = vec![];
    loop {
        times.push(world.clock.now() - START);
        match world.attempt(&endpoint, answered(500)).await {
            Settled::Again(at) => {
                world.clock.set(at - 1);
                assert!(world.claim(endpoint.row, 1).await.is_empty(), "a millisecond too early");
                world.clock.set(at);
            }
            ended => {
                assert_eq!(ended, Settled::Failed);
                break;
            }
        }
    }
    let pauses: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR];
    assert_eq!(pauses, expected);
    world.advance(100 * DAY);
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    assert_eq!(world.standings().await, ["1 failed 9 9"]);
    assert_eq!(world.journal().await.len(), 9);
}

#[tokio::test]
async fn the_journal_has_what_came_of_an_attempt() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, answered(503)).await;
    let sql = "SELECT concat_ws(' ', started_at, duration_ms, http_status, error, response_body, resolved_ip)
               FROM webhook_attempts";
    assert_eq!(world.column(sql).await, [format!("{START} 12 503 http_5xx body 203.0.113.7")]);
    assert_eq!(world.column("SELECT last_error FROM webhook_deliveries").await, ["http_503"]);
}

#[tokio::test]
async fn who_comes_back_late_changes_nothing() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let first = world.claim_one(&endpoint).await;
    world.advance(LEASE_MS);
    assert_eq!(world.take_up(&[]).await, 1);
    for outcome in [answered(200), answered(410), timed_out()] {
        assert_eq!(world.finish(&first, outcome).await.settled, Settled::Fenced);
    }
    let second = world.claim_one(&endpoint).await;
    assert_eq!(second.number, 2);
    assert_eq!(world.finish(&first, answered(200)).await.settled, Settled::Fenced);
    assert_eq!(world.finish(&second, answered(200)).await.settled, Settled::Delivered);
    assert_eq!(world.finish(&second, answered(500)).await.settled, Settled::Fenced);
    assert_eq!(world.journal().await, ["1 1 schedule interrupted -", "1 2 schedule ok 200"]);
}

#[tokio::test]
async fn an_attempt_that_a_restart_cut_off_has_its_number_and_takes_no_step() {
    let mut world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    for number in 1..=2 {
        assert_eq!(world.claim_one(&endpoint).await.number, number);
        assert_eq!(world.take_up(&[]).await, 0, "the lease of this start still holds");
        world = world.restart().await;
        assert_eq!(world.take_up(&[]).await, 1);
        assert_eq!(world.take_up(&[]).await, 0);
        assert_eq!(world.standings().await, [format!("1 pending {number} 0")]);
    }
    // A third in a row is by the schedule: the delivery itself may be what ends the process.
    world.claim_one(&endpoint).await;
    world = world.restart().await;
    world.take_up(&[]).await;
    assert_eq!(world.standings().await, ["1 pending 3 1"]);
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    world.advance(5 * SECOND);
    assert_eq!(world.attempt(&endpoint, timed_out()).await, Settled::Again(START + 5 * SECOND + 5 * MINUTE));
    // And one that ended on its own ends the row.
    world.advance(5 * MINUTE);
    world.claim_one(&endpoint).await;
    world = world.restart().await;
    world.take_up(&[]).await;
    assert_eq!(world.standings().await, ["1 pending 5 2"]);
    assert_eq!(world.claim_one(&endpoint).await.number, 6, "at once");
}

#[tokio::test]
async fn an_endpoint_whose_attempts_are_always_cut_off_fails_in_the_end() {
    let mut world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let mut attempts = 0;
    loop {
        world.advance(30 * HOUR);
        let claims = world.claim(endpoint.row, 1).await;
        if claims.is_empty() {
            break;
        }
        attempts += 1;
        world = world.restart().await;
        world.take_up(&[]).await;
    }
    assert_eq!((attempts, world.standings().await), (11, vec!["1 failed 11 9".to_owned()]));
    assert_eq!(world.look_at(&endpoint).await.failing_since, None, "nothing of that is the endpoint's fault");
}

#[tokio::test]
async fn a_person_can_have_a_delivery_sent_once_more_whatever_became_of_it() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(200)).await;
    world.resend(&claim).await.unwrap();
    world.resend(&claim).await.unwrap();
    let again = world.claim_one(&endpoint).await;
    assert_eq!((again.number, again.trigger), (2, Trigger::Manual));
    assert_eq!(again.message, claim.message, "the same bytes");
    assert_eq!(world.finish(&again, timed_out()).await.settled, Settled::Returned(DeliveryStatus::Delivered));
    assert!(world.claim(endpoint.row, 1).await.is_empty(), "one request is one attempt");
    assert_eq!(world.journal().await, ["1 1 schedule ok 200", "1 2 manual timeout -"]);
    assert_eq!(world.standings().await, ["1 delivered 2 0"]);
}

#[tokio::test]
async fn a_resend_does_not_disturb_the_schedule() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, timed_out()).await;
    world.resend(&claim).await.unwrap();
    assert_eq!(world.attempt(&endpoint, timed_out()).await, Settled::Returned(DeliveryStatus::Pending));
    assert_eq!(world.standings().await, ["1 pending 2 1"]);
    world.advance(5 * SECOND);
    assert_eq!(world.attempt(&endpoint, timed_out()).await, Settled::Again(START + 5 * SECOND + 5 * MINUTE));
    // Its success ends the schedule.
    world.resend(&claim).await.unwrap();
    assert_eq!(world.attempt(&endpoint, answered(200)).await, Settled::Delivered);
    world.advance(10 * DAY);
    assert!(world.claim(endpoint.row, 1).await.is_empty());
}

#[tokio::test]
async fn a_resend_of_what_is_being_sent_is_an_attempt_after_that_one() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.resend(&claim).await.unwrap();
    assert!(world.claim(endpoint.row, 1).await.is_empty(), "one attempt at a time");
    assert_eq!(world.finish(&claim, answered(200)).await.settled, Settled::Delivered);
    let again = world.claim_one(&endpoint).await;
    assert_eq!((again.number, again.trigger), (2, Trigger::Manual));
    world.resend(&claim).await.unwrap();
    world.finish(&again, answered(200)).await;
    assert_eq!(world.claim_one(&endpoint).await.number, 3);
}

#[tokio::test]
async fn a_resend_goes_before_what_the_schedule_brings() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(200)).await;
    world.event(2).await;
    world.event(3).await;
    world.advance(1);
    world.resend(&claim).await.unwrap();
    let claims = world.claim(endpoint.row, 2).await;
    let order: Vec<_> = claims.iter().map(|claim| (claim.delivery, claim.trigger)).collect();
    assert_eq!(order, [(1, Trigger::Manual), (2, Trigger::Schedule)]);
}

#[tokio::test]
async fn a_resend_that_was_cut_off_is_made_again_and_given_up_after_three_times() {
    let mut world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(200)).await;
    world.resend(&claim).await.unwrap();
    for number in 2..=4 {
        let again = world.claim_one(&endpoint).await;
        assert_eq!((again.number, again.trigger), (number, Trigger::Manual));
        world = world.restart().await;
        assert_eq!(world.take_up(&[]).await, 1);
    }
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    assert_eq!(world.standings().await, ["1 delivered 4 0"]);
}

#[tokio::test]
async fn a_failed_delivery_that_is_resent_in_vain_stays_failed() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.run("UPDATE webhook_deliveries SET step = 8").await.unwrap();
    assert_eq!(world.finish(&claim, timed_out()).await.settled, Settled::Failed);
    world.resend(&claim).await.unwrap();
    assert_eq!(world.attempt(&endpoint, timed_out()).await, Settled::Returned(DeliveryStatus::Failed));
    world.resend(&claim).await.unwrap();
    assert_eq!(world.attempt(&endpoint, answered(201)).await, Settled::Delivered);
    assert_eq!(world.standings().await, ["1 delivered 3 9"]);
}

#[tokio::test]
async fn an_attempt_that_fails_by_our_own_fault_is_as_one_that_was_cut_off() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let fault = || outcome(None, Some(ErrorClass::Interrupted));
    let claim = world.claim_one(&endpoint).await;
    assert_eq!(world.finish(&claim, fault()).await.settled, Settled::Again(START), "at once");
    assert_eq!(world.attempt(&endpoint, fault()).await, Settled::Again(START));
    assert_eq!(world.attempt(&endpoint, fault()).await, Settled::Again(START + 5 * SECOND), "by the schedule");
    assert_eq!(world.look_at(&endpoint).await.failing_since, None);
    world.resend(&claim).await.unwrap();
    assert_eq!(world.attempt(&endpoint, fault()).await, Settled::Returned(DeliveryStatus::Pending));
    assert_eq!(world.journal().await[3], "1 4 manual interrupted -");
}

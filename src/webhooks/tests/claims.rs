//! What may go, and who gets it.

use super::super::delivery::waiting;
use super::super::endpoint::{disable, update};
use super::super::{EndpointChanges, EndpointStatus, Trigger};
use super::*;

#[tokio::test]
async fn a_claim_has_all_that_is_needed_to_send() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(7).await;
    let claim = world.claim_one(&endpoint).await;
    assert_eq!((claim.number, claim.trigger, claim.started_at), (1, Trigger::Schedule, START));
    assert_eq!((claim.destination.endpoint_id.as_str(), claim.destination.url.as_str()), (endpoint.id.as_str(), URL));
    assert_eq!(claim.message.event_id, "00000000-0000-7000-8000-000000000007");
    assert!(claim.message.body.ends_with(b"\"data\":{\"amount\":0.10}}"));
    let sealed = &claim.destination.secrets[0].sealed;
    assert_eq!(world.vault.unseal(&endpoint.id, sealed).unwrap().len(), 32);
    assert!(claim.id().starts_with("dlv_"));
}

#[tokio::test]
async fn of_claims_at_once_each_delivery_is_in_one() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for row in 1..=5 {
        world.event(row).await;
    }
    let (first, second, third) =
        (world.claim(endpoint.row, 2).await, world.claim(endpoint.row, 2).await, world.claim(endpoint.row, 2).await);
    let mut rows: Vec<i64> = [first, second, third].concat().iter().map(|claim| claim.delivery).collect();
    rows.sort_unstable();
    assert_eq!(rows, [1, 2, 3, 4, 5]);
    assert!(world.claim(endpoint.row, 2).await.is_empty());
}

#[tokio::test]
async fn deliveries_of_one_event_share_the_body() {
    let world = World::new();
    let endpoints = [world.endpoint().await, world.endpoint().await];
    world.event(1).await;
    let picks = endpoints.map(|endpoint| Pick { endpoint: endpoint.row, most: 4 });
    let claims = world.write(move |tx| claim(tx, &picks, LEASE_MS).unwrap()).await;
    assert!(Arc::ptr_eq(&claims[0].message, &claims[1].message));
    assert_ne!(claims[0].destination.secrets, claims[1].destination.secrets);
}

#[tokio::test]
async fn no_more_are_claimed_than_there_are_slots() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.event(2).await;
    assert!(world.claim(endpoint.row, 0).await.is_empty());
    assert_eq!(world.claim(endpoint.row, 1).await[0].delivery, 1, "the one that is due for longer");
}

#[tokio::test]
async fn an_endpoint_that_is_paused_or_disabled_has_nothing_claimed() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let (tenant, id, egress) = (TenantId::installation(), endpoint.id.clone(), world.egress.clone());
    let set = move |status| {
        let (tenant, id, egress) = (tenant.clone(), id.clone(), egress.clone());
        let changes = EndpointChanges { status: Some(status), ..EndpointChanges::default() };
        move |tx: &Tx<'_>| update(tx, &tenant, &id, &changes, &egress).map(|_| ()).unwrap()
    };
    world.write(set(EndpointStatus::Paused)).await;
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    assert!(world.write(|tx| waiting(tx).unwrap()).await.is_empty());
    world.write(set(EndpointStatus::Active)).await;
    assert_eq!(world.write(|tx| waiting(tx).unwrap()).await[0].due_at, START);
    let id = endpoint.id.clone();
    world.write(move |tx| disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap()).await;
    assert!(world.claim(endpoint.row, 1).await.is_empty());
}

#[tokio::test]
async fn what_waits_is_told_by_endpoint_with_when_it_is_due_and_how_fast_it_may_go() {
    let world = World::new();
    let slow = NewEndpoint { url: URL.into(), rate_per_second: Some(3), ..NewEndpoint::default() };
    let endpoints =
        [world.endpoint().await, world.endpoint_of(&TenantId::installation(), slow).await, world.endpoint().await];
    assert!(world.write(|tx| waiting(tx).unwrap()).await.is_empty());
    world.event(1).await;
    world.attempt(&endpoints[0], timed_out()).await;
    world.attempt(&endpoints[1], asks_for(503, Duration::from_secs(60))).await;
    world.attempt(&endpoints[2], answered(200)).await;
    let found = world.write(|tx| waiting(tx).unwrap()).await;
    let seen: Vec<_> = found.iter().map(|one| (one.endpoint, one.due_at - START, one.rate_per_second)).collect();
    assert_eq!(seen, [(endpoints[0].row, 5 * SECOND, None), (endpoints[1].row, MINUTE, Some(3))]);
}

#[tokio::test]
async fn what_is_not_due_yet_waits_and_fresh_events_do_not_wait_for_it() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    assert_eq!(world.attempt(&endpoint, timed_out()).await, Settled::Again(START + 5 * SECOND));
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    world.event(2).await;
    assert_eq!(world.attempt(&endpoint, answered(200)).await, Settled::Delivered);
    world.advance(5 * SECOND - 1);
    assert!(world.claim(endpoint.row, 1).await.is_empty());
    world.advance(1);
    assert_eq!(world.claim_one(&endpoint).await.number, 2);
}

#[tokio::test]
async fn what_is_in_hand_is_taken_by_nobody_whatever_the_clock_says() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    for at in [START + 10 * DAY, START - 400 * DAY, i64::MAX - 1] {
        world.clock.set(at);
        assert_eq!(world.take_up(&[claim.delivery]).await, 0);
        assert!(world.claim(endpoint.row, 1).await.is_empty());
    }
    world.clock.set(START);
    assert_eq!(world.finish(&claim, answered(204)).await.settled, Settled::Delivered);
}

#[tokio::test]
async fn times_of_another_clock_hold_nothing_up() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.clock.set(START + 400 * DAY);
    world.event(1).await;
    world.event(2).await;
    world.attempt_one_of(&endpoint, asks_for(429, Duration::from_secs(3600))).await;
    let lost = world.claim(endpoint.row, 1).await;
    assert!(lost.is_empty(), "the endpoint is held");
    world.clock.set(START);
    let swept = world.write(|tx| super::super::sweep::sweep(tx).unwrap()).await;
    assert_eq!(swept.pulled_in, 2);
    let claims = world.claim(endpoint.row, 9).await;
    assert_eq!(claims.len(), 2, "nor is the hold believed");
    // A lease of the future is none either, once nobody has the attempt in hand.
    world.clock.set(START - 400 * DAY);
    assert_eq!(world.take_up(&[]).await, 2);
}

impl World {
    /// Makes one of the attempts that are due.
    async fn attempt_one_of(&self, endpoint: &Endpoint, outcome: Outcome) -> Settled {
        let claim = self.claim(endpoint.row, 1).await.remove(0);
        self.finish(&claim, outcome).await.settled
    }
}

//! What a person asks for again.

use super::super::inspect::{Cursor, EventFilter, EventStatus, events};
use super::super::{Error, FailedOnes, Retried, retry, retry_failed};
use super::actors::{Mood, Said};
use super::*;

async fn ask(world: &World, event_id: &str) -> Result<Retried, Error> {
    let event_id = event_id.to_owned();
    world.db.write(move |tx| retry(tx, &acme(), &event_id)).await
}

/// Fails all that is due, by ten attempts.
async fn fail(world: &World, relay: &Relay) {
    for _ in 0..10 {
        pass(relay).await;
        world.advance(HOUR);
    }
}

#[tokio::test]
async fn a_failed_event_is_due_now_and_goes_to_those_who_have_not_accepted_it() {
    let world = World::new().await;
    let (good, bad) = (Actor::inside("good"), Actor::inside("bad"));
    let relay = world.relay(&[&good, &bad]);
    bad.be(Mood::Refuses);
    let ids = world.fill(1).await;
    fail(&world, &relay).await;
    let woken = world.db.subscribe(super::super::OUTBOX_EVENTS);
    assert_eq!(ask(&world, &ids[0].to_uppercase()).await.unwrap(), Retried::Reopened);
    assert!(tokio::time::timeout(Duration::from_secs(10), woken.notified()).await.is_ok());
    let row = &world.rows().await[0];
    assert_eq!((row.attempts, row.failed, row.next), (0, None, Some(world.clock.now())));
    fail(&world, &relay).await;
    assert_eq!((bad.calls().len(), good.calls().len()), (20, 1), "it has all its attempts before it again");
    ask(&world, &ids[0]).await.unwrap();
    bad.be(Mood::Takes);
    assert_eq!(pass(&relay).await.published, 1);
    assert_eq!(bad.calls(), [(1, Said::Accepted)]);
}

#[tokio::test]
async fn a_waiting_event_is_hastened_and_a_published_one_is_not_to_be_retried() {
    let world = World::new().await;
    let bad = Actor::inside("bad");
    let relay = world.relay(&[&bad]);
    let ids = world.fill(1).await;
    assert_eq!(ask(&world, &ids[0]).await.unwrap(), Retried::Hastened);
    assert_eq!(world.rows().await[0].next, None, "it is due as it is");
    bad.be(Mood::Refuses);
    pass(&relay).await;
    assert_eq!(ask(&world, &ids[0]).await.unwrap(), Retried::Hastened);
    assert_eq!(pass(&relay).await.retried, 1);
    assert_eq!(world.rows().await[0].attempts, 2, "its attempts count on");
    bad.be(Mood::Takes);
    ask(&world, &ids[0]).await.unwrap();
    assert_eq!(pass(&relay).await.published, 1);
    assert!(matches!(ask(&world, &ids[0]).await, Err(Error::AlreadyPublished)));
    let other = TenantId::parse("other").unwrap();
    let id = ids[0].clone();
    let answer = world.db.write(move |tx| retry(tx, &other, &id)).await;
    assert!(matches!(answer, Err(Error::NotFound)), "another tenant's event is as none");
    assert!(matches!(ask(&world, "none").await, Err(Error::NotFound)));
}

#[tokio::test]
async fn all_failed_events_of_a_tenant_are_retried_in_batches() {
    let world = World::new().await;
    let bad = Actor::inside("bad");
    let relay = world.relay(&[&bad]);
    bad.be(Mood::Refuses);
    world.fill(5).await;
    world.post(posted(vec![event("order.lost", "{}"); 2])).await.unwrap();
    let others = Posted { tenant: TenantId::parse("other").unwrap(), ..posted(vec![event("order.paid", "{}")]) };
    world.post(others).await.unwrap();
    fail(&world, &relay).await;
    let (mut retried, mut batches, mut after) = (0, 0, None);
    loop {
        let which = FailedOnes { event_type: Some("order.paid".into()), after: after.take(), limit: 2 };
        let batch = world.db.write(move |tx| retry_failed(tx, &acme(), &which)).await.unwrap();
        retried += batch.retried;
        batches += 1;
        after = batch.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((retried, batches), (5, 3));
    assert_eq!(world.rows().await.iter().filter(|row| row.failed.is_some()).count(), 3);
    let filter = EventFilter { status: Some(EventStatus::Failed), event_type: None };
    let left = world.db.read(move |tx| events(tx, &acme(), &filter, None, 9)).await.unwrap();
    assert!(left.items.iter().all(|event| event.event_type == "order.lost") && left.items.len() == 2);
    let wrong = FailedOnes { event_type: None, after: Some(Cursor::Due(None, 1)), limit: 2 };
    let answer = world.db.write(move |tx| retry_failed(tx, &acme(), &wrong)).await;
    assert!(matches!(answer, Err(Error::Invalid { field: "after", .. })));
}

#[tokio::test]
async fn an_outage_of_one_consumer_for_a_day_loses_nothing() {
    let world = World::new().await;
    let (good, bad) = (Actor::inside("good"), Actor::outside("bad"));
    let relay = world.relay(&[&good, &bad]);
    bad.be(Mood::Refuses);
    let end = START + DAY;
    while world.clock.now() < end {
        world.fill(1).await;
        let wanted = world.clock.now() + HOUR;
        while let Some(next) = pass(&relay).await.next.filter(|next| *next < wanted) {
            world.clock.set(next);
        }
        world.clock.set(wanted);
    }
    let rows = world.rows().await;
    let failed = rows.iter().filter(|row| row.failed.is_some()).count();
    assert!(failed == 21 && rows.iter().all(|row| row.published.is_none()), "{failed}");
    assert_eq!(good.calls().len(), 24, "the other one has had everything in time");
    bad.be(Mood::Takes);
    bad.calls();
    let which = FailedOnes { event_type: None, after: None, limit: 200 };
    assert_eq!(world.db.write(move |tx| retry_failed(tx, &acme(), &which)).await.unwrap().retried, 21);
    world.advance(HOUR);
    assert_eq!(pass(&relay).await.published, 24);
    let mut taken: Vec<i64> = bad.calls().into_iter().map(|(row, _)| row).collect();
    // By when they were due: those that a person retried at once, the others at their times.
    assert!(taken[..21].is_sorted(), "{taken:?}");
    taken.sort_unstable();
    assert_eq!(taken, (1..=24).collect::<Vec<i64>>());
}

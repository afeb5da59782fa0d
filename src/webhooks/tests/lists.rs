//! What is shown of deliveries, attempts and tests.

use super::super::attempt::record_test;
use super::super::delivery::DeliveryStatus;
use super::super::health::{Health, health};
use super::super::inspect::{Delivery, DeliveryFilter, attempts, deliveries, delivery, tests};
use super::super::{Trigger, resend};
use super::*;

impl World {
    /// All pages, of that many each.
    async fn all(&self, filter: &DeliveryFilter, limit: usize) -> Vec<Delivery> {
        let (mut seen, mut after, mut pages) = (vec![], None, 0);
        loop {
            let filter = filter.clone();
            let list = move |tx: &Tx<'_>| deliveries(tx, &TenantId::installation(), &filter, after, limit);
            let page = self.db.read(list).await.unwrap();
            assert!(page.items.len() <= limit);
            seen.extend(page.items);
            after = page.next;
            pages += 1;
            assert!(pages < 1000, "it does not end");
            if after.is_none() {
                return seen;
            }
        }
    }

    async fn rows(&self, filter: &DeliveryFilter, limit: usize) -> Vec<i64> {
        self.all(filter, limit).await.iter().map(|one| one.row).collect()
    }
}

#[tokio::test]
async fn a_delivery_is_shown_as_it_stands() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.advance(1);
    world.attempt(&endpoint, answered(503)).await;
    let shown = world.all(&DeliveryFilter::default(), 10).await.remove(0);
    let expected = Delivery {
        row: 1,
        id: super::super::id::delivery_id(1, START),
        event_id: "00000000-0000-7000-8000-000000000001".into(),
        event_type: "order.paid".into(),
        endpoint_id: endpoint.id.clone(),
        status: DeliveryStatus::Pending,
        attempts: 1,
        next_attempt_at: Some(START + 1 + 5 * SECOND),
        resend_requested_at: None,
        last_error: Some("http_503".into()),
        delivered_at: None,
        created_at: START,
    };
    assert_eq!(shown, expected);
    let id = shown.id.clone();
    let found = world.db.read(move |tx| delivery(tx, &TenantId::installation(), &id)).await.unwrap();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn deliveries_of_all_endpoints_are_one_list_newest_first_whatever_the_page() {
    let world = World::new();
    let one = world.endpoint().await;
    for row in 1..=40 {
        world.event(row).await;
    }
    world.endpoint().await;
    world.run(&format!("UPDATE webhook_endpoints SET event_types = '[\"x\"]' WHERE id = {}", one.row)).await.unwrap();
    for row in 41..=80 {
        world.event(row).await;
    }
    world.run(&format!("UPDATE webhook_endpoints SET event_types = NULL WHERE id = {}", one.row)).await.unwrap();
    for row in 81..=120 {
        world.event(row).await;
    }
    let all: Vec<i64> = (1..=160).rev().collect();
    for limit in [1, 3, 7, 40, 160, 200] {
        assert_eq!(world.rows(&DeliveryFilter::default(), limit).await, all, "{limit}");
    }
    let of_one = DeliveryFilter { endpoint_id: Some(one.id), ..DeliveryFilter::default() };
    assert_eq!(world.rows(&of_one, 9).await.len(), 80);
}

#[tokio::test]
async fn every_filter_shows_what_fits_it_and_nothing_else() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for (row, kind) in (1..=24).zip(["order.paid", "lead.received"].into_iter().cycle()) {
        world.event_of(&TenantId::installation(), row, kind).await;
        world.advance(SECOND);
    }
    let statuses = ["pending", "delivered", "failed", "cancelled", "skipped", "sending"];
    for (at, status) in statuses.into_iter().enumerate() {
        let rest = match status {
            "delivered" => ", delivered_at = 1",
            "sending" => ", locked_until = 1, lease_boot = 'x', claimed_at = 1",
            _ => "",
        };
        let sql = format!("UPDATE webhook_deliveries SET status = '{status}'{rest} WHERE id % 6 = {at}");
        world.run(&sql).await.unwrap();
    }
    for (at, status) in statuses.into_iter().enumerate() {
        let filter = DeliveryFilter { status: DeliveryStatus::parse(status).ok(), ..DeliveryFilter::default() };
        let expected: Vec<i64> = (1..=24).rev().filter(|row| row % 6 == at as i64).collect();
        for limit in [1, 2, 200] {
            assert_eq!(world.rows(&filter, limit).await, expected, "{status}");
        }
    }
    let leads = DeliveryFilter { event_type: Some("lead.received".into()), ..DeliveryFilter::default() };
    assert_eq!(world.rows(&leads, 5).await, (1..=24).rev().filter(|row| row % 2 == 0).collect::<Vec<i64>>());
    let (since, until) = (Some(START + 4 * SECOND), Some(START + 9 * SECOND));
    let times = DeliveryFilter { since, until, ..DeliveryFilter::default() };
    assert_eq!(world.rows(&times, 2).await, [9, 8, 7, 6, 5]);
    let both = DeliveryFilter { status: Some(DeliveryStatus::Failed), ..times };
    assert_eq!(world.rows(&both, 2).await, [8]);
    let of_it = DeliveryFilter { endpoint_id: Some(endpoint.id), ..leads };
    assert_eq!(world.rows(&of_it, 200).await.len(), 12);
}

#[tokio::test]
async fn a_page_looks_at_a_bounded_number_of_rows_and_says_where_it_ended() {
    let world = World::new();
    world.endpoint().await;
    world.event_of(&TenantId::installation(), 1, "rare").await;
    let fanout = Arc::clone(&world.fanout);
    let accept = move |tx: &Tx<'_>| {
        (2..=6000).for_each(|row| fanout.accept(tx, &event(&TenantId::installation(), row, "a")).unwrap());
    };
    world.write(accept).await;
    let filter = DeliveryFilter { event_type: Some("rare".into()), ..DeliveryFilter::default() };
    let first = filter.clone();
    let page = world.db.read(move |tx| deliveries(tx, &TenantId::installation(), &first, None, 10)).await.unwrap();
    assert!(page.items.is_empty() && page.next == Some(1001), "{:?}", page.next);
    assert_eq!(world.rows(&filter, 10).await, [1]);
    let pending = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
    assert_eq!(world.rows(&pending, 200).await.len(), 6000, "too many to sort");
}

#[tokio::test]
async fn a_list_since_an_instant_ends_there() {
    let world = World::new();
    world.endpoint().await;
    world.event(1).await;
    world.advance(3 * DAY);
    world.event(2).await;
    let filter = DeliveryFilter { since: Some(START + 2 * DAY), ..DeliveryFilter::default() };
    let list = move |tx: &Tx<'_>| deliveries(tx, &TenantId::installation(), &filter, None, 10);
    let page = world.db.read(list).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
}

#[tokio::test]
async fn the_journal_is_shown_in_pages_in_the_order_of_the_attempts() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(302)).await;
    let id = claim.id();
    world
        .write({
            let id = id.clone();
            move |tx| resend(tx, &TenantId::installation(), &id).unwrap()
        })
        .await;
    world.attempt(&endpoint, timed_out()).await;
    let page = move |after| {
        let id = id.clone();
        move |tx: &Tx<'_>| attempts(tx, &TenantId::installation(), &id, after, 1)
    };
    let first = world.db.read(page(None)).await.unwrap();
    let second = world.db.read(page(first.next)).await.unwrap();
    assert_eq!((first.next, second.next), (Some(1), None));
    let (first, second) = (&first.items[0], &second.items[0]);
    assert_eq!((first.number, first.trigger, first.seen.error), (1, Trigger::Schedule, Some(ErrorClass::Http3xx)));
    assert_eq!((first.seen.http_status, first.seen.duration_ms, first.seen.started_at), (Some(302), Some(12), START));
    assert_eq!(first.seen.resolved_ip.as_deref(), Some("203.0.113.7"));
    assert_eq!((second.number, second.trigger, second.seen.error), (2, Trigger::Manual, Some(ErrorClass::Timeout)));
}

#[tokio::test]
async fn tests_of_an_endpoint_are_shown_newest_first() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let row = endpoint.row;
    for name in ["one", "two", "three"] {
        world.write(move |tx| record_test(tx, row, name, START, &answered(200)).unwrap()).await;
    }
    let id = endpoint.id;
    let page = move |after| {
        let id = id.clone();
        move |tx: &Tx<'_>| tests(tx, &TenantId::installation(), &id, after, 2)
    };
    let first = world.db.read(page(None)).await.unwrap();
    let names: Vec<_> = first.items.iter().map(|one| one.message_id.as_str()).collect();
    assert_eq!((names, first.next), (vec!["three", "two"], Some(2)));
    let second = world.db.read(page(first.next)).await.unwrap();
    assert_eq!((second.items[0].message_id.as_str(), second.next), ("one", None));
}

#[tokio::test]
async fn health_tells_what_waits_and_for_how_long() {
    let world = World::new();
    assert_eq!(world.db.read(health).await.unwrap(), Health::default());
    let endpoint = world.endpoint().await;
    world.endpoint().await;
    world.event(1).await;
    world.event(2).await;
    world.advance(MINUTE);
    world.claim(endpoint.row, 1).await;
    let seen = world.db.read(health).await.unwrap();
    assert_eq!((seen.pending, seen.sending, seen.overdue_ms), (3, 1, Some(MINUTE)));
    assert_eq!((seen.active, seen.paused, seen.disabled, seen.failing), (2, 0, 0, 0));
}

#[tokio::test]
async fn what_a_rate_or_a_silent_receiver_holds_back_is_not_overdue() {
    for held in ["rate_per_second = 1", "failing_since = 1"] {
        let world = World::new();
        world.endpoint().await;
        world.event(1).await;
        world.advance(MINUTE);
        assert_eq!(world.db.read(health).await.unwrap().overdue_ms, Some(MINUTE));
        let sql = format!("UPDATE webhook_endpoints SET {held}");
        world.write(move |tx| tx.execute(&sql, []).unwrap()).await;
        assert_eq!(world.db.read(health).await.unwrap().overdue_ms, None, "{held}");
    }
}

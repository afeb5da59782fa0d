//! What goes in batches: what was left to endpoints that are no more, and what is old.

use tokio_util::sync::CancellationToken;

use super::super::attempt::record_test;
use super::super::endpoint::{delete, disable};
use super::super::prune::{self, Cutoffs};
use super::super::resend;
use super::super::sweep::{Swept, run_once, sweep};
use super::*;

impl World {
    async fn sweep_all(&self) -> Swept {
        run_once(&self.db, &CancellationToken::new()).await.unwrap()
    }

    async fn remove(&self, endpoint: &Endpoint) {
        let id = endpoint.id.clone();
        self.db.write(move |tx| delete(tx, &TenantId::installation(), &id)).await.unwrap();
    }

    async fn prune(&self, deliveries: i64, tests: i64) -> (u64, u64) {
        let cutoffs = Cutoffs { deliveries, tests };
        let pruned = prune::run_once(&self.db, cutoffs, &CancellationToken::new()).await.unwrap();
        (pruned.deliveries, pruned.tests)
    }

    async fn count(&self, table: &str) -> String {
        self.column(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")).await.remove(0)
    }
}

#[tokio::test]
async fn a_deleted_endpoint_goes_with_all_it_had_and_leaves_what_others_have() {
    let world = World::new();
    let (gone, stays) = (world.endpoint().await, world.endpoint().await);
    for row in 1..=3 {
        world.event(row).await;
    }
    world.attempt_all(&gone).await;
    let only_its = NewEndpoint { url: URL.into(), event_types: Some(vec!["own".into()]), ..NewEndpoint::default() };
    let second = world.endpoint_of(&TenantId::installation(), only_its).await;
    world.run("UPDATE webhook_endpoints SET event_types = '[\"x\"]' WHERE id <= 2").await.unwrap();
    world.event_of(&TenantId::installation(), 4, "own").await;
    world.remove(&gone).await;
    world.remove(&second).await;
    let swept = world.sweep_all().await;
    assert_eq!((swept.purged, swept.endpoints), (4, 2));
    assert_eq!(world.sweep_all().await, Swept::default(), "the second time finds nothing");
    assert_eq!(world.column("SELECT DISTINCT endpoint_id FROM webhook_endpoints").await, [stays.id]);
    assert_eq!(world.count("webhook_deliveries").await, "3");
    assert_eq!(world.count("webhook_attempts").await, "0");
    assert_eq!(world.count("webhook_messages").await, "3", "bodies go with their last delivery");
}

#[tokio::test]
async fn many_go_in_batches_and_what_is_being_sent_is_waited_for() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for row in 1..=3 {
        world.event(row).await;
    }
    let claim = world.claim(endpoint.row, 1).await.remove(0);
    world.remove(&endpoint).await;
    let swept = world.sweep_all().await;
    assert_eq!((swept.purged, swept.endpoints), (2, 0));
    assert_eq!(world.finish(&claim, answered(200)).await.settled, Settled::Delivered);
    let swept = world.sweep_all().await;
    assert_eq!((swept.purged, swept.endpoints), (1, 1));
}

#[tokio::test]
async fn one_batch_is_at_most_five_hundred_rows() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let accept = {
        let fanout = Arc::clone(&world.fanout);
        move |tx: &Tx<'_>| {
            (1..=1201).for_each(|row| fanout.accept(tx, &event(&TenantId::installation(), row, "a")).unwrap());
        }
    };
    world.write(accept).await;
    let id = endpoint.id.clone();
    world.write(move |tx| disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap()).await;
    assert_eq!(world.write(|tx| sweep(tx).unwrap()).await.skipped, 500);
    assert_eq!(world.sweep_all().await.skipped, 701);
    world.remove(&endpoint).await;
    let first = world.write(|tx| sweep(tx).unwrap()).await;
    assert!((1..=500).contains(&first.purged), "{first:?}");
    let swept = world.sweep_all().await;
    assert_eq!((first.purged + swept.purged, swept.endpoints), (1201, 1));
}

#[tokio::test]
async fn one_batch_is_that_of_all_endpoints_and_of_all_that_is_swept_together() {
    let world = World::new();
    let (one, other) = (world.endpoint().await, world.endpoint().await);
    let accept = {
        let fanout = Arc::clone(&world.fanout);
        move |tx: &Tx<'_>| {
            (1..=400).for_each(|row| fanout.accept(tx, &event(&TenantId::installation(), row, "a")).unwrap());
        }
    };
    world.write(accept).await;
    world.run(&format!("UPDATE webhook_deliveries SET next_attempt_at = {START} + 3 * {DAY}")).await.unwrap();
    let batch = world.write(|tx| sweep(tx).unwrap()).await;
    assert_eq!(batch, Swept { pulled_in: 500, ..Swept::default() });
    assert_eq!(world.sweep_all().await.pulled_in, 300);
    world.run("UPDATE webhook_deliveries SET resend_requested_at = 1").await.unwrap();
    for endpoint in [&one, &other] {
        let id = endpoint.id.clone();
        world.write(move |tx| disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap()).await;
    }
    let batch = world.write(|tx| sweep(tx).unwrap()).await;
    assert_eq!(batch, Swept { requests: 400, skipped: 100, ..Swept::default() });
    let rest = world.sweep_all().await;
    assert_eq!((rest.requests, rest.skipped), (400, 700));
}

/// The numbers of deliveries that writes beside `work` have seen.
async fn seen_beside(world: &World, work: impl Future<Output = ()>) -> Vec<i64> {
    let (seen, stop) = (std::sync::Mutex::<Vec<i64>>::default(), CancellationToken::new());
    let watch = async {
        while !stop.is_cancelled() {
            let count = |tx: &Tx<'_>| tx.query_one("SELECT count(*) FROM webhook_deliveries", [], |row| row.get(0));
            let count = world.write(move |tx| count(tx).unwrap()).await;
            seen.lock().unwrap().push(count);
        }
    };
    let work = async {
        work.await;
        stop.cancel();
    };
    tokio::join!(watch, work);
    seen.into_inner().unwrap()
}

#[tokio::test]
async fn others_write_between_the_deletes_of_one_batch() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let accept = {
        let fanout = Arc::clone(&world.fanout);
        move |tx: &Tx<'_>| {
            (1..=400).for_each(|row| fanout.accept(tx, &event(&TenantId::installation(), row, "a")).unwrap());
            tx.execute("UPDATE webhook_messages SET body = zeroblob(65536)", []).unwrap();
            tx.execute("UPDATE webhook_deliveries SET status = 'failed' WHERE id <= 200", []).unwrap();
        }
    };
    world.write(accept).await;
    let pruned = async { assert_eq!(world.prune(START + 1, START).await, (200, 0)) };
    let seen = seen_beside(&world, pruned).await;
    assert!(seen.iter().any(|count| (201..400).contains(count)), "{seen:?}");
    world.remove(&endpoint).await;
    let swept = async { assert_eq!(world.sweep_all().await.purged, 200) };
    let seen = seen_beside(&world, swept).await;
    assert!(seen.iter().any(|count| (1..200).contains(count)), "{seen:?}");
}

#[tokio::test]
async fn the_test_attempts_of_a_deleted_endpoint_go_before_it_in_batches() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let row = endpoint.row;
    world.write(move |tx| (0..700).for_each(|_| record_test(tx, row, "msg", 1, &answered(200)).unwrap())).await;
    world.remove(&endpoint).await;
    let batch = world.write(|tx| sweep(tx).unwrap()).await;
    assert_eq!((batch.tests, batch.endpoints), (500, 0));
    let rest = world.sweep_all().await;
    assert_eq!((rest.tests, rest.endpoints), (200, 1));
}

#[tokio::test]
async fn what_a_person_asked_for_ends_with_the_endpoint() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, answered(200)).await;
    let (id, delivery) = (endpoint.id.clone(), claim.id());
    let ask = move |tx: &Tx<'_>| {
        resend(tx, &TenantId::installation(), &delivery).unwrap();
        disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap();
    };
    world.write(ask).await;
    assert_eq!(world.sweep_all().await.requests, 1);
    assert_eq!(world.standings().await, ["1 delivered 1 0"]);
}

#[tokio::test]
async fn finished_deliveries_are_pruned_when_they_are_old_and_others_never() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for (row, status) in ["delivered", "failed", "cancelled", "skipped", "pending", "sending"].into_iter().enumerate() {
        world.event(row as i64 + 1).await;
        let rest = match status {
            "delivered" => ", delivered_at = 1",
            "sending" => ", locked_until = 1, lease_boot = 'x', claimed_at = 1",
            _ => "",
        };
        world
            .run(&format!("UPDATE webhook_deliveries SET status = '{status}'{rest} WHERE id = {}", row + 1))
            .await
            .unwrap();
    }
    world.event(7).await;
    world.run("UPDATE webhook_deliveries SET status = 'failed', resend_requested_at = 1 WHERE id = 7").await.unwrap();
    world
        .run("INSERT INTO webhook_attempts (delivery, number, trigger, started_at) VALUES (1, 1, 'schedule', 1)")
        .await
        .unwrap();
    world.advance(90 * DAY);
    world.event(8).await;
    world.run("UPDATE webhook_deliveries SET status = 'failed' WHERE id = 8").await.unwrap();
    assert_eq!(world.prune(START, START).await, (0, 0), "made at the cut-off is not before it");
    assert_eq!(world.prune(START + 1, START).await, (4, 0));
    let left = world.column("SELECT CAST(id AS TEXT) FROM webhook_deliveries ORDER BY id").await;
    assert_eq!(left, ["5", "6", "7", "8"]);
    assert_eq!(world.count("webhook_messages").await, "4");
    assert_eq!(world.count("webhook_attempts").await, "0");
    assert_eq!(world.prune(START + 1, START).await, (0, 0));
    let _ = endpoint;
}

#[tokio::test]
async fn old_deliveries_behind_many_that_wait_are_found() {
    let world = World::new();
    world.endpoint().await;
    let accept = {
        let fanout = Arc::clone(&world.fanout);
        move |tx: &Tx<'_>| {
            (1..=1300).for_each(|row| fanout.accept(tx, &event(&TenantId::installation(), row, "a")).unwrap());
            tx.execute("UPDATE webhook_deliveries SET status = 'failed' WHERE id > 1200", []).unwrap();
        }
    };
    world.write(accept).await;
    assert_eq!(world.prune(START + 1, START).await, (100, 0));
}

#[tokio::test]
async fn tests_are_kept_for_their_time_and_those_of_a_deleted_endpoint_not_at_all() {
    let world = World::new();
    let endpoint = world.endpoint().await.row;
    let record = move |at| move |tx: &Tx<'_>| record_test(tx, endpoint, "msg", at, &answered(200)).unwrap();
    for at in [START, START + DAY, START + 2 * DAY] {
        world.write(record(at)).await;
    }
    assert_eq!(world.prune(START, START + DAY).await, (0, 1));
    let missing = |tx: &Tx<'_>| record_test(tx, 4711, "msg", 1, &answered(200)).unwrap();
    world.write(missing).await;
    assert_eq!(world.count("webhook_tests").await, "2");
}

impl World {
    async fn attempt_all(&self, endpoint: &Endpoint) {
        for claim in self.claim(endpoint.row, 99).await {
            self.finish(&claim, answered(200)).await;
        }
    }
}

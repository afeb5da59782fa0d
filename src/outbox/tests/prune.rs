//! What is deleted, and what is not.

use super::super::prune::{Report, run_once};
use super::super::{IdempotencyKey, post};
use super::*;

const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

async fn prune(world: &World, in_use: impl Fn(i64) -> bool + Clone + Send + 'static) -> Report {
    run_once(&world.db, KEEP, move |_, row| Ok(in_use(row)), &CancellationToken::new()).await.unwrap()
}

async fn left(world: &World) -> Vec<i64> {
    world.rows().await.iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn what_is_young_failed_or_in_use_stays() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let relay = world.relay(&[&taker]);
    world.fill(6).await;
    world.run("UPDATE outbox_events SET failed_at = 1 WHERE id = 2").await;
    world.run(&format!("UPDATE outbox_events SET next_attempt_at = {} WHERE id = 3", START + HOUR)).await;
    pass(&relay).await;
    world.advance(SECOND);
    world.fill(1).await;
    pass(&relay).await;
    world.run(&format!("UPDATE outbox_events SET next_attempt_at = {} WHERE id = 3", START + 100 * DAY)).await;
    world.clock.set(START + 30 * DAY - 1);
    assert_eq!(prune(&world, |_| false).await, Report::default(), "all are young");
    world.advance(1);
    assert_eq!(prune(&world, |row| row == 4).await, Report { events: 3, kept: 1, keys: 0 });
    assert_eq!(left(&world).await, [2, 3, 4, 7], "failed, waiting, in use, and young");
    world.advance(SECOND);
    assert_eq!(prune(&world, |_| false).await.events, 2);
    world.clock.set(START + 3650 * DAY);
    assert_eq!(prune(&world, |_| false).await.events, 0);
    assert_eq!(left(&world).await, [2, 3], "what is failed or waits is never deleted");
}

#[tokio::test]
async fn the_walk_goes_past_what_is_kept_and_ends_where_all_is_young() {
    let world = World::new().await;
    let rows = |from: i64, to: i64, values: &str| {
        format!(
            "WITH RECURSIVE n (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to})
             INSERT INTO outbox_events (id, event_id, type, aggregate_type, aggregate_id, payload, created_at, published_at, failed_at)
             SELECT i, i, 'a', 'a', 'a', '{{}}', {values} FROM n"
        )
    };
    let old = START - 31 * DAY;
    world.run(&rows(1, 5000, &format!("{old}, NULL, {old}"))).await;
    world.run(&rows(5001, 7000, &format!("{old}, {old}, NULL"))).await;
    // Another program writes microseconds, and a clock that was wrong published in a year to come.
    world.run(&rows(7001, 7002, &format!("{}, {old}, NULL", START * 1000))).await;
    world.run(&rows(7003, 7004, &format!("{old}, {}, NULL", START + 3650 * DAY))).await;
    world.run(&rows(7005, 12000, &format!("{START}, {START}, NULL"))).await;
    // Behind so many young ones nothing is looked for.
    world.run(&rows(12001, 12001, &format!("{old}, {old}, NULL"))).await;
    let report = prune(&world, |row| row == 6000).await;
    assert_eq!(report, Report { events: 2003, kept: 1, keys: 0 });
    let left = left(&world).await;
    assert_eq!((left.len(), left[5000], left.last()), (9998, 6000, Some(&12001)));
}

#[tokio::test]
async fn keys_of_yesterday_are_deleted() {
    let world = World::new().await;
    let keyed = |key: &str| {
        let key = IdempotencyKey { key: key.into(), body_hash: [1; 32] };
        Posted { key: Some(key), ..posted(vec![event("order.paid", "{}")]) }
    };
    let (old, young) = (keyed("old"), keyed("young"));
    world.write(move |tx| post(tx, &old).unwrap()).await;
    world.advance(SECOND);
    world.write(move |tx| post(tx, &young).unwrap()).await;
    world.advance(DAY - SECOND - 1);
    assert_eq!(prune(&world, |_| false).await.keys, 0);
    world.advance(1);
    assert_eq!(prune(&world, |_| false).await.keys, 1);
    assert_eq!(world.column("SELECT key FROM idempotency_keys").await, ["young"]);
}

#[tokio::test]
async fn a_stop_ends_it() {
    let world = World::new().await;
    world.fill(10).await;
    world.run("UPDATE outbox_events SET published_at = 1").await;
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(run_once(&world.db, KEEP, |_, _| Ok(false), &stop).await.unwrap(), Report::default());
}

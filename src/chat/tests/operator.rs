//! What an operator can see and do.

use super::super::listing::Retried;
use super::super::{Filter, Listed, Status, list, retry, stats};
use super::*;

async fn listed(world: &World, filter: Filter) -> Vec<Listed> {
    world.db.read(move |tx| list(tx, &filter)).await.unwrap()
}

#[tokio::test]
async fn lists_are_pages_with_filters() {
    let world = World::new().await;
    for chat in 1..=5 {
        world.queue(message(chat, Kind::Event, "event")).await;
        world.queue(message(chat, Kind::Reply, "reply")).await;
    }
    world.run("UPDATE telegram_messages SET status = 'cancelled', finished_at = 1 WHERE chat_id = 3").await;
    let page = Filter { limit: 4, ..Filter::default() };
    let first = listed(&world, page.clone()).await;
    let second = listed(&world, Filter { after: first[3].id, ..page.clone() }).await;
    assert_eq!(first.iter().chain(&second).map(|row| row.id).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    let ids = |rows: Vec<Listed>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(listed(&world, Filter { status: Some(Status::Cancelled), ..page.clone() }).await), [5, 6]);
    assert_eq!(ids(listed(&world, Filter { chat_id: Some(2), kind: Some(Kind::Reply), ..page.clone() }).await), [4]);
    assert_eq!(listed(&world, Filter { limit: 1_000_000, ..page }).await.len(), 10);
}

#[tokio::test]
async fn a_retry_opens_what_did_not_certainly_arrive() {
    let world = World::new().await;
    let sent = world.queue(message(1, Kind::Event, "sent")).await;
    world.pass().await;
    let mut ids = vec![sent];
    for (chat, status) in [(2, "undeliverable"), (3, "unknown"), (4, "cancelled"), (5, "skipped"), (6, "pending")] {
        let id = world.queue(message(chat, Kind::Event, status)).await;
        ids.push(id);
    }
    world
        .run(
            "UPDATE telegram_messages SET status = text, error_code = 'x', finished_at = 1
             WHERE text IN ('undeliverable', 'unknown', 'cancelled', 'skipped')",
        )
        .await;
    ids.push(99);
    world.advance(10_000_000);
    let retried = world.db.write(move |tx| retry(tx, &ids)).await.unwrap();
    let expected = Retried { reopened: vec![2, 3, 4, 5], unchanged: vec![1, 6], missing: vec![99] };
    assert_eq!(retried, expected);
    assert_eq!(world.pass().await.sent, 5);
    let rows = listed(&world, Filter { limit: 10, ..Filter::default() }).await;
    assert_eq!(rows.iter().map(|row| row.retried_by_hand).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 0]);
}

#[tokio::test]
async fn numbers_show_each_status_and_each_lanes_age() {
    let world = World::new().await;
    world.queue(message(1, Kind::Event, "one")).await;
    world.queue(message(1, Kind::Event, "two")).await;
    world.pass().await;
    world.advance(7_000);
    let numbers = world.db.read(stats).await.unwrap();
    assert_eq!(numbers.by_status[..3], [("pending", 1), ("sending", 0), ("sent", 1)]);
    assert_eq!(numbers.age_ms, [("interactive", 0), ("transactional", 7_000), ("bulk", 0)]);
}

#[test]
fn every_status_is_found_by_its_name() {
    for status in Status::ALL {
        assert_eq!(Status::parse(status.as_str()).unwrap(), status);
    }
    assert!(Status::parse("open").is_err());
}

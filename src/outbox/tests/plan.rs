//! The plans of the statements that are repeated, by the index each relies on; and what that is good for.

use std::time::{Duration, Instant};

use super::super::sql::plans;
use super::super::{health, inspect};
use super::*;

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let world = World::new().await;
    for (statement, index) in plans() {
        let plan = world.db.read(move |tx| tx.plan(statement)).await.unwrap();
        assert!(plan.contains(index), "{index} is not used: {plan}\n{statement}");
        // One event in both spellings is two rows at most.
        let sorts = statement.contains("IN (:event_id, :lower_case)");
        assert!(sorts || !plan.contains("TEMP B-TREE"), "{plan}\n{statement}");
        assert!(!plan.contains("SCAN outbox_events |") && !plan.ends_with("SCAN outbox_events"), "{plan}\n{statement}");
    }
}

/// A pass, the numbers and a page of the pending and of the failed look at nothing that is published.
#[tokio::test]
async fn a_pass_among_many_published_events_looks_at_none_of_them() {
    let world = World::new().await;
    world.run("
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
        INSERT INTO outbox_events (tenant_id, event_id, type, aggregate_type, aggregate_id, payload, created_at, published_at)
        SELECT 'acme', printf('%08d', i), 'order.paid', 'order', i, '{\"data\": \"' || hex(zeroblob(50)) || '\"}', 1, 1 FROM n").await;
    let taker = Actor::inside("taker");
    let relay = world.relay(&[&taker]);
    world.fill(20).await;
    let began = Instant::now();
    assert_eq!(pass(&relay).await.published, 20);
    assert_eq!(pass(&relay).await, Report::default());
    let look = |tx: &Tx<'_>| {
        let health = health::health(tx)?;
        let filter = inspect::EventFilter { status: Some(inspect::EventStatus::Failed), event_type: None };
        let failed = inspect::events(tx, &acme(), &filter, None, 200)?;
        Ok::<_, super::super::Error>((health, failed.items.len()))
    };
    let (health, failed) = world.db.read(look).await.unwrap();
    assert_eq!((health.pending, health.failed, failed), (0, 0, 0));
    // A look at every row takes a hundred times that; the bench measures it.
    assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
}

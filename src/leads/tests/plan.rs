//! The plans of the statements that are repeated, by the name of the index each relies on; and what that is good for.

use std::time::{Duration, Instant};

use super::super::sql::plans;
use super::super::{Taken, health, next_for_worker, take};
use super::*;

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let world = World::new();
    for (statement, index) in plans() {
        let plan = world.db.read(move |tx| tx.plan(statement)).await.unwrap();
        assert!(plan.contains(index), "{index} is not used: {plan}\n{statement}");
        // A list of what is being sent goes by when it came, which that index does not: these are few.
        let sorts = index == "broker_leads_sending" && !statement.contains("ORDER BY notification_attempted_at");
        assert!(sorts || !plan.contains("TEMP B-TREE"), "{plan}\n{statement}");
    }
}

#[tokio::test]
async fn a_claim_among_many_sent_leads_reads_none_of_them() {
    let world = World::new();
    let fill = "
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO broker_leads (phone, notification_status, announced_at, created_at) SELECT '7', 'sent', 1, i FROM n";
    world.run(fill).await.unwrap();
    for number in 1..=20 {
        world.insert(number, "pending").await;
    }
    let hands = world.hands.clone();
    let took = move |tx: &Tx<'_>| {
        let began = Instant::now();
        for _ in 0..20 {
            let candidate = next_for_worker(tx, &hands).unwrap().unwrap();
            assert!(matches!(take(tx, &candidate).unwrap(), Taken::Claimed { .. }));
        }
        began.elapsed()
    };
    let took = world.write(took).await;
    // A look at every row takes a hundred times that; the bench measures it.
    assert!(took < Duration::from_millis(100), "{took:?}");
    let sent = world.write(|tx| health::health(tx).unwrap()).await.sent;
    assert_eq!((sent.count, sent.oldest_at.as_deref()), (health::COUNT_CAP, Some("1970-01-01T00:00:00.001Z")));
}

//! The plans of the statements that are repeated, by the name of the index each relies on; and what that is good for.

use rusqlite::StatementStatus;

use super::super::delivery::waiting;
use super::super::sql::{STEPS_COUNTED, plans};
use super::*;

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let world = World::new();
    let mut faults = vec![];
    for (statement, expected) in plans() {
        let plan = world.db.write(move |tx| tx.plan(statement)).await.unwrap();
        let is_missing = expected.iter().any(|part| !plan.contains(part));
        let sorts = plan.contains("TEMP B-TREE");
        // A partial index may be gone through from its beginning; a table may not.
        let scans = |step: &str| step.starts_with("SCAN webhook_") && !step.contains("INDEX webhook_");
        if is_missing || sorts || plan.split(" | ").any(scans) {
            faults.push(format!("{expected:?} is not all of: {plan}\n{statement}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

impl World {
    /// So many deliveries of one endpoint that wait.
    async fn pile_up(&self, endpoint: &Endpoint, count: i64) {
        let endpoint = endpoint.row;
        let messages = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO webhook_messages (id, tenant_id, event_id, type, body, created_at)
             SELECT i, 'default', i, 'order.paid', x'7b7d', 1 FROM n"
        );
        self.run(&messages).await.unwrap();
        let deliveries = format!(
            "INSERT INTO webhook_deliveries (message, endpoint, status, next_attempt_at, created_at)
             SELECT id, {endpoint}, 'pending', {START} - 1000000 + id, 1 FROM webhook_messages"
        );
        self.run(&deliveries).await.unwrap();
    }

    /// The steps that SQLite takes to see what waits, to find the endpoint, and to claim four deliveries.
    async fn steps(&self, endpoint: i64) -> Vec<(&'static str, i32, i32)> {
        self.write(move |tx| STEPS_COUNTED.map(|(name, sql)| count(tx, endpoint, name, sql)).to_vec()).await
    }
}

fn count(tx: &Tx<'_>, endpoint: i64, name: &'static str, sql: &str) -> (&'static str, i32, i32) {
    let mut statement = tx.prepare(sql).unwrap();
    let values: [(&str, &dyn rusqlite::ToSql); 5] =
        [(":endpoint", &endpoint), (":now", &START), (":until", &START), (":boot", &"boot"), (":most", &4)];
    for (parameter, value) in values {
        if let Some(at) = statement.parameter_index(parameter).unwrap() {
            statement.raw_bind_parameter(at, value).unwrap();
        }
    }
    let (mut found, mut rows) = (0, statement.raw_query());
    while rows.next().unwrap().is_some() {
        found += 1;
    }
    drop(rows);
    (name, found, statement.get_status(StatementStatus::VmStep))
}

#[tokio::test]
async fn a_claim_among_a_million_that_wait_takes_the_steps_that_it_takes_among_a_few() {
    let mut seen = vec![];
    for count in [1_000, 1_000_000] {
        let world = World::new();
        let endpoints = [world.endpoint().await, world.endpoint().await];
        world.pile_up(&endpoints[0], count).await;
        world.event(2_000_000).await;
        let found = world.write(|tx| waiting(tx).unwrap()).await;
        assert_eq!(found.len(), 2);
        seen.push(world.steps(endpoints[0].row).await);
    }
    assert_eq!(seen[0], seen[1]);
    let found: Vec<i32> = seen[0].iter().map(|(_, found, _)| *found).collect();
    assert_eq!(found, [2, 1, 4]);
}

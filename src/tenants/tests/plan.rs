//! The plans of what is repeated, by the name of the index each statement relies on.

use super::super::sql::plans;
use super::World;

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let world = World::new();
    for (statement, index) in plans() {
        let plan = world.db.read(move |tx| tx.plan(statement)).await.unwrap();
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{index} is not used: {plan}\n{statement}");
    }
}

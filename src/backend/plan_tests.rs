//! The plans of the statements that are repeated, by the name of the index each relies on.

use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings};

use super::{connect, sql};

fn settings() -> Settings {
    Settings::small()
}

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Role::Owner("test"), &settings(), Clock::stopped_at(1), vec![]).unwrap();
    for (name, statement, indexes) in sql::plans().into_iter().chain(connect::plans()) {
        let plan = db.read(move |tx| tx.plan(statement)).await.unwrap();
        for index in indexes {
            assert!(plan.contains(index), "{name} does not use {index}: {plan}");
        }
        assert!(!plan.contains("TEMP B-TREE"), "{name} sorts: {plan}");
        let scans = plan.split(" | ").filter(|step| step.starts_with("SCAN") && !step.contains("USING")).count();
        assert!(scans <= usize::from(plan.contains("SCAN (subquery")), "{name} scans: {plan}");
    }
    db.close().await;
}

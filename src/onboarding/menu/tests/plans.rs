//! Every statement that a tap runs goes by its index, so that it costs the page and not the crowd.

use super::world;
use crate::kernel::store::StoreError;
use crate::onboarding::menu::sql;

#[tokio::test]
async fn lists_and_numbers_go_by_their_index() {
    let world = world().await;
    let plans = world.db.read(|tx| {
        let statements = [
            (sql::METRICS, "USING COVERING INDEX bot_users_by_leader (leader_uid=?)"),
            (sql::COUNT_PARTNERS, "INDEX bot_users_by_structure (structure_uid=?)"),
            (sql::PARTNERS, "INDEX bot_users_by_structure (structure_uid=?)"),
            (sql::COUNT_ASKING, "INDEX bot_users_asking (structure_uid=?)"),
            (sql::ASKING, "INDEX bot_users_asking (structure_uid=?)"),
            (sql::COUNT_WARM, "INDEX bot_users_warm (structure_uid=? AND last_activity_at>?)"),
            (sql::WARM, "INDEX bot_users_warm (structure_uid=? AND last_activity_at>?)"),
        ];
        statements.map(|(sql, part)| Ok((tx.plan(sql)?, part))).into_iter().collect::<Result<Vec<_>, StoreError>>()
    });
    for (plan, part) in plans.await.unwrap() {
        assert!(plan.contains(part), "{part}: {plan}");
        // The order is the index's; only who was here at the same instant is sorted within it.
        assert!(!plan.contains("USE TEMP B-TREE FOR ORDER BY"), "{plan}");
    }
}

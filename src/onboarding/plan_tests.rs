//! The plans of the statements that are repeated, by the name of the index each relies on.

use super::{broadcast, digest, reminders};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings};

/// What a statement is, and how it is to be run.
const PLANS: [(&str, &str, &str); 5] = [
    (
        "reminder candidates",
        reminders::sql::SILENT,
        "SEARCH bot_users USING INDEX bot_users_to_remind (stage=? AND last_activity_at>? AND last_activity_at<?)",
    ),
    (
        "the next leader",
        digest::sql::NEXT_LEADER,
        "SEARCH bot_users USING COVERING INDEX bot_users_by_leader (leader_uid>?)",
    ),
    (
        "recipients who wait",
        broadcast::sql::recipients::PENDING,
        "SEARCH broadcast_recipients USING INDEX broadcast_recipients_pending (broadcast_id=?)",
    ),
    (
        "recipients in the queue",
        broadcast::sql::recipients::QUEUED,
        "SEARCH broadcast_recipients USING INDEX broadcast_recipients_waiting (broadcast_id=?)",
    ),
    ("broadcasts to look at", broadcast::sql::OPEN, "SCAN broadcasts USING INDEX broadcasts_open"),
];

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), Clock::stopped_at(1), vec![]).unwrap();
    for (name, statement, step) in PLANS {
        let plan = db.read(move |tx| tx.plan(statement)).await.unwrap();
        assert!(plan.contains(step), "{name}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{name} sorts: {plan}");
    }
    db.close().await;
}

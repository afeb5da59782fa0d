//! The lanes against what they are made from: whatever anybody writes, each is its subject's lowest open event.

use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};

/// What another program may do to the tables; `at` picks one of the events there are.
#[derive(Clone, Debug)]
enum Change {
    Insert { id: Option<i64>, chat: i64, uid: Option<i64>, due: Option<i64> },
    Close { at: u8 },
    CloseSeveral { at: u8 },
    PutOff { at: u8, due: Option<i64> },
    SetAside { at: u8 },
    Reopen { at: u8, due: Option<i64> },
    Delete { at: u8 },
    Bind { uid: i64, chat: i64 },
}

fn change() -> impl Strategy<Value = Change> {
    let due = || proptest::option::of(0..5_i64);
    let insert = (proptest::option::weighted(0.3, 1..200_i64), 1..4_i64, proptest::option::of(1..4_i64), due());
    prop_oneof![
        4 => insert.prop_map(|(id, chat, uid, due)| Change::Insert { id, chat, uid, due }),
        2 => any::<u8>().prop_map(|at| Change::Close { at }),
        1 => any::<u8>().prop_map(|at| Change::CloseSeveral { at }),
        2 => (any::<u8>(), due()).prop_map(|(at, due)| Change::PutOff { at, due }),
        1 => any::<u8>().prop_map(|at| Change::SetAside { at }),
        2 => (any::<u8>(), due()).prop_map(|(at, due)| Change::Reopen { at, due }),
        1 => any::<u8>().prop_map(|at| Change::Delete { at }),
        1 => (1..5_i64, 1..4_i64).prop_map(|(uid, chat)| Change::Bind { uid, chat }),
    ]
}

const PICKED: &str = "(SELECT id FROM bot_event_outbox ORDER BY id
                       LIMIT 1 OFFSET ?1 % MAX(1, (SELECT count(*) FROM bot_event_outbox)))";

fn apply(tx: &Tx<'_>, change: &Change) -> Result<usize, StoreError> {
    let on_picked = |set: &str| format!("UPDATE bot_event_outbox SET {set} WHERE id = {PICKED}");
    let handled = "processed_at = 1, outcome = 'handled', next_retry_at = NULL, dead_lettered_at = NULL";
    match change {
        // A subject that is wrong is put right.
        Change::Insert { id, chat, uid, due } => tx.execute(
            "INSERT INTO bot_event_outbox (id, event_type, telegram_id, magnet_uid, next_retry_at, subject)
             SELECT ?1, 'registered', ?2, ?3, ?4, CASE ?2 % 2 WHEN 1 THEN 'junk' END
             WHERE NOT EXISTS (SELECT 1 FROM bot_event_outbox WHERE id = ?1)",
            (id, chat, uid, due),
        ),
        Change::Close { at } => tx.execute(&on_picked(handled), [at]),
        Change::CloseSeveral { at } => tx.execute(
            &format!("UPDATE bot_event_outbox SET {handled} WHERE id BETWEEN {PICKED} AND {PICKED} + 20"),
            [at],
        ),
        Change::PutOff { at, due } => tx.execute(&on_picked("next_retry_at = ?2"), (at, due)),
        Change::SetAside { at } => {
            tx.execute(&on_picked("dead_lettered_at = CASE WHEN processed_at IS NULL THEN 1 END"), [at])
        }
        Change::Reopen { at, due } => tx.execute(
            &on_picked(
                "next_retry_at = ?2, processed_at = NULL, outcome = NULL, dead_lettered_at = NULL,
                 subject = CASE WHEN magnet_uid IS NOT NULL THEN 'uid:' || magnet_uid
                                ELSE COALESCE((SELECT 'uid:' || uid FROM members
                                               WHERE members.telegram_id = bot_event_outbox.telegram_id),
                                              'tg:' || telegram_id) END",
            ),
            (at, due),
        ),
        Change::Delete { at } => tx.execute(&format!("DELETE FROM bot_event_outbox WHERE id = {PICKED}"), [at]),
        Change::Bind { uid, chat } => tx.execute(
            "INSERT INTO members (uid, telegram_id)
             SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM members WHERE telegram_id = ?2)
             ON CONFLICT (uid) DO UPDATE SET telegram_id = excluded.telegram_id",
            (uid, chat),
        ),
    }
}

type Lane = (String, i64, i64);

fn lanes(tx: &Tx<'_>, sql: &str) -> Result<Vec<Lane>, StoreError> {
    tx.query_all(sql, [], |row| Ok((row.get("subject")?, row.get("head_id")?, row.get("due_at")?)))
}

const ARE: &str = "SELECT subject, head_id, due_at FROM bot_event_lanes ORDER BY subject, head_id";
const SHOULD_BE: &str = "SELECT subject, id AS head_id, COALESCE(next_retry_at, 0) AS due_at FROM bot_event_outbox
     WHERE id IN (SELECT MIN(id) FROM bot_event_outbox
                  WHERE processed_at IS NULL AND dead_lettered_at IS NULL GROUP BY subject)
     ORDER BY subject";

#[tokio::test]
async fn every_lane_is_the_lowest_open_event_of_its_subject() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::small();
    let db = Db::open(dir.path(), Role::Owner("test"), &settings, Clock::stopped_at(1), vec![]).unwrap();
    let check = move |tx: &Tx<'_>| {
        let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
        let tried = runner.run(&proptest::collection::vec(change(), 1..60), |changes| {
            tx.execute("DELETE FROM bot_event_outbox", []).unwrap();
            tx.execute("DELETE FROM members", []).unwrap();
            for change in &changes {
                apply(tx, change).unwrap();
                assert_eq!(lanes(tx, ARE).unwrap(), lanes(tx, SHOULD_BE).unwrap(), "after {change:?}");
            }
            Ok(())
        });
        tried.unwrap();
        Ok::<(), StoreError>(())
    };
    db.write(check).await.unwrap();
    db.close().await;
}

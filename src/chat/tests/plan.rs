//! The schema: plans of the statements that are repeated, and the triggers against a plain recomputation.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::sql;
use super::*;

async fn plan(world: &World, sql: &str) -> String {
    let explain = format!("EXPLAIN QUERY PLAN {sql}");
    let read =
        move |tx: &Tx<'_>| Ok::<_, Error>(tx.query_all(&explain, [], |row| row.get::<_, String>("detail"))?.join("\n"));
    world.db.read(read).await.unwrap()
}

#[tokio::test]
async fn the_claim_reads_heads_by_their_index_without_sorting() {
    let world = World::new().await;
    let names = [":after_due", ":after_id", ":lane", ":now", ":limit"];
    let literal = names.iter().fold(sql::claim::DUE_HEADS.to_owned(), |sql, name| sql.replace(name, "1"));
    let plan = plan(&world, &literal).await;
    assert!(plan.contains("INDEX telegram_chat_lanes_due (lane=?"), "{plan}");
    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
}

#[tokio::test]
async fn a_lane_finds_its_head_and_a_start_its_lost_sends_by_index() {
    let world = World::new().await;
    let head = "
        SELECT id FROM telegram_messages WHERE chat_id = 1 AND lane = 'bulk' AND status IN ('pending', 'sending')
        ORDER BY id LIMIT 1";
    let head = plan(&world, head).await;
    assert!(head.contains("telegram_messages_open (chat_id=? AND lane=?)") && !head.contains("TEMP"), "{head}");
    let moved = sql::settle::MOVE_CHAT.replace(":to", "2").replace(":from", "1");
    assert!(plan(&world, &moved).await.contains("telegram_messages_open (chat_id=?)"));
    let names = [":chat_id", ":lane", ":edit", ":id", ":now"];
    let cancelled = names.iter().fold(sql::CANCEL_SUPERSEDED.to_owned(), |sql, name| sql.replace(name, "1"));
    assert!(plan(&world, &cancelled).await.contains("telegram_messages_open (chat_id=? AND lane=? AND id<?)"));
    let next = "SELECT MIN(due_at) FROM telegram_chat_lanes WHERE lane = 'bulk' AND due_at > 5";
    assert!(plan(&world, next).await.contains("telegram_chat_lanes_due (lane=? AND due_at>?)"));
}

#[tokio::test]
async fn a_claim_costs_the_same_with_a_long_queue_behind_one_chat() {
    let world = World::new().await;
    world
        .run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO telegram_messages
                 (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at)
             SELECT CASE WHEN i <= 19990 THEN 1 ELSE i END, 'event', 'transactional', 'x', 'plain', 'k' || i, 1, 1, 1 FROM n",
        )
        .await;
    let heads = world.db.read(|tx| Ok::<_, Error>(sql::claim::due_heads(tx, Lane::Transactional, None, 64)?));
    assert_eq!(heads.await.unwrap().len(), 11, "one row for the long queue, and one for each other chat");
    assert_eq!(world.pass().await.sent, 11);
}

/// A change of the table by whatever statement.
#[derive(Clone, Debug)]
enum Change {
    Insert { chat: i64, lane: &'static str, due: i64 },
    Status { id: i64, status: &'static str },
    Due { id: i64, due: i64 },
    Chat { id: i64, chat: i64 },
    AllOfChat { from: i64, to: i64 },
    Delete { id: i64 },
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let chat = || 1_i64..4;
    let id = || 1_i64..25;
    let change = prop_oneof![
        6 => (chat(), prop_oneof![Just("interactive"), Just("bulk")], 0_i64..50)
            .prop_map(|(chat, lane, due)| Change::Insert { chat, lane, due }),
        6 => (id(), prop_oneof![Just("pending"), Just("sending"), Just("sent"), Just("cancelled")])
            .prop_map(|(id, status)| Change::Status { id, status }),
        2 => (id(), 0_i64..50).prop_map(|(id, due)| Change::Due { id, due }),
        1 => (id(), chat()).prop_map(|(id, chat)| Change::Chat { id, chat }),
        1 => (chat(), chat()).prop_map(|(from, to)| Change::AllOfChat { from, to }),
        1 => id().prop_map(|id| Change::Delete { id }),
    ];
    proptest::collection::vec(change, 0..60)
}

fn apply(tx: &Tx<'_>, number: usize, change: &Change) -> Result<usize, StoreError> {
    match *change {
        Change::Insert { chat, lane, due } => tx.execute(
            "INSERT INTO telegram_messages (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at)
             VALUES (?1, 'event', ?2, 'x', 'plain', 'k' || ?3, ?4, 0, 0)",
            (chat, lane, i64::try_from(number).unwrap(), due),
        ),
        Change::Status { id, status } => {
            let closed = matches!(status, "sent" | "cancelled").then_some(1_i64);
            let lease = (status == "sending").then_some(1_i64);
            tx.execute(
                "UPDATE telegram_messages SET status = ?2, finished_at = ?3, locked_until = ?4, lease_boot = ?4 WHERE id = ?1",
                (id, status, closed, lease),
            )
        }
        Change::Due { id, due } => tx.execute("UPDATE telegram_messages SET due_at = ?2 WHERE id = ?1", (id, due)),
        Change::Chat { id, chat } => tx.execute("UPDATE telegram_messages SET chat_id = ?2 WHERE id = ?1", (id, chat)),
        Change::AllOfChat { from, to } => sql::settle::move_chat(tx, from, to),
        Change::Delete { id } => tx.execute("DELETE FROM telegram_messages WHERE id = ?1", [id]),
    }
}

fn differences(tx: &Tx<'_>) -> Result<i64, StoreError> {
    let sql = "
        WITH heads AS (
            SELECT chat_id, lane, MIN(id) AS head_id FROM telegram_messages
            WHERE status IN ('pending', 'sending') GROUP BY chat_id, lane),
        expected AS (
            SELECT h.chat_id, h.lane, h.head_id, CASE m.status WHEN 'pending' THEN m.due_at END AS due_at
            FROM heads AS h JOIN telegram_messages AS m ON m.id = h.head_id),
        kept AS (SELECT chat_id, lane, head_id, due_at FROM telegram_chat_lanes)
        SELECT (SELECT COUNT(*) FROM (SELECT * FROM expected EXCEPT SELECT * FROM kept))
             + (SELECT COUNT(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM expected))";
    tx.query_one(sql, [], |row| row.get(0))
}

#[test]
fn the_lanes_are_what_the_messages_say_after_any_change() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let play = |changes: Vec<Change>| {
        let all = move |tx: &Tx<'_>| {
            tx.execute("DELETE FROM telegram_messages", [])?;
            tx.execute("UPDATE sqlite_sequence SET seq = 0 WHERE name = 'telegram_messages'", [])?;
            for (number, change) in changes.iter().enumerate() {
                apply(tx, number, change)?;
                if differences(tx)? != 0 {
                    return Ok::<_, Error>(Some(number));
                }
            }
            Ok(None)
        };
        runtime.block_on(world.db.write(all)).unwrap()
    };
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(200) });
    let held = runner.run(&changes(), |changes| {
        prop_assert_eq!(play(changes), None);
        Ok(())
    });
    held.unwrap();
}

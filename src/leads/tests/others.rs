//! Leads of other programs: their arrival is recorded, once, and one that cannot be recorded stops no other.

use super::super::{LEADS, RetryReason, announce, enqueue_disabled, summary};
use super::*;
use crate::config::Delivery;
use crate::kernel::events::Event;

async fn announced(world: &World, delivery: Delivery) -> usize {
    world.write(move |tx| announce(tx, delivery, 10).unwrap()).await
}

#[tokio::test]
async fn a_lead_of_another_program_is_announced_once() {
    let world = World::new();
    for (number, status) in [(1, "pending"), (2, "sent"), (3, "pending")] {
        world.insert(number, status).await;
        world.advance(1);
    }
    let own = "INSERT INTO broker_lead_events (lead_id, event_type, payload)
               SELECT id, 'created', '{\"by\":\"import\"}' FROM broker_leads WHERE request_id LIKE '%3'";
    world.run(own).await.unwrap();
    let woken = world.db.subscribe(LEADS);
    assert_eq!(announced(&world, Delivery::Worker).await, 3);
    assert!(world.is_woken(&woken).await, "the worker is woken");
    assert_eq!(announced(&world, Delivery::Worker).await, 0, "twice says nothing new");
    assert_eq!(world.events().await, [r#"created {"by":"import"}"#, "created {}", "created {}"]);
    let expected: Vec<_> = (1..=3).map(|number| format!("lead.received {}", id(number))).collect();
    assert_eq!(world.published().await, expected);
    assert_eq!(world.row(&id(1)).await.status, "pending");
}

#[tokio::test]
async fn with_nobody_to_send_what_others_insert_is_disabled_and_nothing_else_is() {
    let world = World::new();
    world.insert(1, "pending").await;
    assert_eq!(announced(&world, Delivery::Rpc).await, 1);
    for (number, status) in [(2, "pending"), (3, "failed"), (4, "sending")] {
        world.insert(number, status).await;
    }
    assert_eq!(announced(&world, Delivery::Off).await, 3);
    let statuses = world.column("SELECT notification_status FROM broker_leads ORDER BY id").await;
    assert_eq!(statuses, ["pending", "disabled", "failed", "sending"], "a setting moves no row that was there");
}

#[tokio::test]
async fn what_a_person_asked_for_before_it_was_announced_goes_on_waiting() {
    let world = World::new();
    world.insert(1, "disabled").await;
    world.write(|tx| enqueue_disabled(tx, RetryReason::ManualRecovery, 9).unwrap()).await;
    assert_eq!(announced(&world, Delivery::Off).await, 1);
    assert_eq!(world.row(&id(1)).await.status, "pending");
}

fn record_all_but_the_second(tx: &Tx<'_>, event: &Event) -> Result<(), StoreError> {
    if event.aggregate_id() == id(2) { Err(StoreError::NoRow) } else { crate::outbox::record(tx, event) }
}

#[tokio::test]
async fn one_lead_that_cannot_be_announced_stops_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir, Clock::stopped_at(START), vec![record_all_but_the_second]);
    for number in 1..=3 {
        world.insert(number, "pending").await;
    }
    assert_eq!(announced(&world, Delivery::Worker).await, 2);
    assert_eq!(world.events().await, ["created {}"; 2]);
    let left = world.column("SELECT id FROM broker_leads WHERE announced_at IS NULL").await;
    assert_eq!(left, [id(2)], "it is tried again");
}

#[tokio::test]
async fn an_id_is_given_once_and_kept() {
    let world = World::new();
    world.insert(1, "pending").await;
    world.insert(2, "sent").await;
    world
        .run("INSERT INTO broker_lead_events (lead_id, event_type) SELECT id, 'created' FROM broker_leads")
        .await
        .unwrap();
    let (first, second) = (id(1), id(2));
    for refused in [
        format!("INSERT OR REPLACE INTO broker_leads (id, phone) VALUES ('{first}', '7')"),
        format!("INSERT OR REPLACE INTO broker_leads (request_id, phone) VALUES ('{}', '7')", request(1)),
        format!("UPDATE OR REPLACE broker_leads SET id = '{first}' WHERE id = '{second}'"),
        format!("UPDATE OR REPLACE broker_leads SET request_id = '{}' WHERE id = '{second}'", request(1)),
        "INSERT INTO broker_leads (id, phone) VALUES ('00000000-0000-7000-8000-000000000009' || char(0) || 'x', '7')"
            .into(),
        "INSERT INTO broker_leads (id, phone) VALUES ('00000000-0000-7000-8000-00000000000G', '7')".into(),
        "INSERT INTO broker_leads (phone, notification_status) VALUES ('7', 'lost')".into(),
        "INSERT INTO broker_leads (phone) VALUES (NULL)".into(),
        "INSERT INTO broker_leads (phone, raw_payload) VALUES ('7', '{')".into(),
        "INSERT INTO broker_leads (phone, notification_sent_at) VALUES ('7', 1)".into(),
        format!("INSERT INTO broker_lead_events (lead_id, event_type) VALUES ('{first}', 'created')"),
    ] {
        assert!(world.run(&refused).await.is_err(), "{refused}");
    }
    assert_eq!(world.column("SELECT id FROM broker_leads ORDER BY id").await, [first, second]);
    assert_eq!(world.events().await, ["created {}"; 2]);
}

#[tokio::test]
async fn a_hostile_preparation_is_cleaned_whoever_wrote_it() {
    let world = World::new();
    let mut labels: Vec<serde_json::Value> = (0..100).map(|n| format!("<b>{n}</b>'; DROP TABLE x --").into()).collect();
    labels[0] = "я".repeat(1 << 20).into();
    labels[2] = serde_json::json!({ "nested": ["A"] });
    let hostile = serde_json::json!({ "preparation": {
        "journey_type": 7, "journey_stage": { "a": "b" }, "scenario_slug": "; DROP TABLE broker_leads",
        "remaining_questions": format!("a\u{0}b\r\nc  \t d{}", "x".repeat(1 << 20)),
        "completed_checks": std::iter::once("finances").chain(["evil", "documents", "finances"]).chain(["next_step"; 96])
            .collect::<Vec<_>>(),
        "completed_labels": labels,
    }});
    world.insert(1, "pending").await;
    let payload = hostile.to_string();
    world.db.write(move |tx| tx.execute("UPDATE broker_leads SET raw_payload = ?1", [payload])).await.unwrap();
    let row =
        "SELECT concat_ws('|', journey_type, journey_stage, journey_scenario_slug, substr(remaining_questions, 1, 8),
                      length(remaining_questions), json_array_length(preparation_completed),
                      length(preparation_completed ->> 0), preparation_completed ->> 1)
               FROM broker_leads";
    assert_eq!(world.column(row).await, ["ab\nc dxx|700|2|180|Документы"]);
    let text = world.write(|tx| summary(tx, &id(1)).unwrap()).await;
    assert!(text.chars().count() <= 3500 && !text.contains("evil") && !text.contains('<'), "{text}");

    // Escapes of lone surrogates are no text at all; the rest of the object still counts.
    let lone =
        r#"{"preparation":{"journey_type":"a\ud800b","journey_stage":"x\u0000y","completed_checks":["diagnosis"]}}"#;
    world.db.write(move |tx| tx.execute("UPDATE broker_leads SET raw_payload = ?1", [lone])).await.unwrap();
    let text = world.write(|tx| summary(tx, &id(1)).unwrap()).await;
    assert!(text.contains("\nЭтап: xy\n") && text.contains("\nЧто уже проверено: Диагностика\n"), "{text}");
    // What a program wrote there itself is gone with the next payload.
    world.run("UPDATE broker_leads SET journey_stage = 'mine', raw_payload = '{}'").await.unwrap();
    let text = world.write(|tx| summary(tx, &id(1)).unwrap()).await;
    assert!(!text.contains("ПОДГОТОВКА"), "{text}");
}

#[tokio::test]
async fn a_mark_that_another_program_keeps_out_is_told_to_nobody() {
    let world = World::new();
    let keep_out = "CREATE TRIGGER audit BEFORE UPDATE ON broker_leads BEGIN SELECT RAISE(IGNORE); END";
    world.run(keep_out).await.unwrap();
    let unseen = "INSERT INTO broker_leads (phone) VALUES ('+7')";
    world.run(unseen).await.unwrap();
    for _ in 0..2 {
        assert_eq!(world.write(|tx| announce(tx, Delivery::Worker, 10).unwrap()).await, 0);
    }
    assert_eq!(world.column("SELECT CAST(count(*) AS TEXT) FROM outbox_events").await, ["0"]);
    world.run("DROP TRIGGER audit").await.unwrap();
    assert_eq!(world.write(|tx| announce(tx, Delivery::Worker, 10).unwrap()).await, 1);
}

#[tokio::test]
async fn what_happened_to_a_lead_goes_with_it_also_without_foreign_keys() {
    let world = World::new();
    world.run("INSERT INTO broker_leads (phone) VALUES ('+7')").await.unwrap();
    world.write(|tx| announce(tx, Delivery::Worker, 10).unwrap()).await;
    assert_eq!(world.events().await, ["created {}"]);
    let shell = rusqlite::Connection::open(world.dir.path().join("pillarbox.db")).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM broker_leads").unwrap();
    assert!(world.events().await.is_empty());
}

#[tokio::test]
async fn a_row_that_calls_itself_announced_is_cleaned_too() {
    let world = World::new();
    let insert = r#"INSERT INTO broker_leads (phone, created_at, announced_at, raw_payload, preparation, preparation_completed)
        VALUES ('+7', 5, 6, '{"preparation":{"completed_checks":["documents","evil"]}}', '{"a":1}', '["evil"]')"#;
    world.run(insert).await.unwrap();
    let columns = "SELECT preparation || preparation_completed FROM broker_leads";
    assert_eq!(world.column(columns).await, [r#"{"completed_checks":["documents"]}["Документы"]"#]);
}

#[tokio::test]
async fn a_change_that_does_not_say_when_moves_updated_at() {
    let world = World::new();
    let lead = world.insert(1, "pending").await;
    world.run("UPDATE broker_leads SET status = 'in_progress'").await.unwrap();
    let moved = world.row(&lead).await.updated_at;
    assert!(moved > START, "by the clock of SQLite");
    world.run("UPDATE broker_leads SET updated_at = 9e15, city = 'x'").await.unwrap();
    assert_eq!(world.row(&lead).await.updated_at, 9_000_000_000_000_000);
}

//! Other programs that write through SQL: whatever they do to events and bindings, lanes stay in step and nobody else
//! is held up; and leads are completed and cleaned.

use std::process::Command;

use rusqlite::Connection;
use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::text;

const OPEN: &str = "processed_at IS NULL AND dead_lettered_at IS NULL";

fn assert_lanes_in_step(conn: &Connection, after: &str) {
    let lanes: Vec<String> =
        column(conn, "SELECT subject || ' ' || head_id || ' ' || due_at FROM bot_event_lanes ORDER BY 1", []);
    let heads: Vec<String> = column(
        conn,
        &format!(
            "SELECT e.subject || ' ' || e.id || ' ' || COALESCE(e.next_retry_at, 0) FROM bot_event_outbox AS e
             WHERE {OPEN} AND NOT EXISTS (SELECT 1 FROM bot_event_outbox AS b
               WHERE b.subject = e.subject AND b.id < e.id AND b.processed_at IS NULL AND b.dead_lettered_at IS NULL)
             ORDER BY 1"
        ),
        [],
    );
    assert_eq!(lanes, heads, "after {after}");
}

fn subjects(conn: &Connection) -> Vec<String> {
    column(conn, &format!("SELECT subject FROM bot_event_outbox WHERE {OPEN} ORDER BY id"), [])
}

#[test]
fn lanes_follow_whatever_is_done_to_events_and_bindings() {
    let dev = Dev::start(&["bot.event_source=off"]);
    let conn = dev.writer();
    let run = |statement: &str| {
        conn.execute_batch(statement).unwrap();
        assert_lanes_in_step(&conn, statement);
    };
    run("INSERT INTO members (uid, telegram_id) VALUES (1, 11), (2, NULL)");
    run("INSERT INTO bot_event_outbox (event_type, telegram_id) VALUES ('reactivation', 11), ('reactivation', 12)");
    run("INSERT INTO bot_event_outbox (event_type, magnet_uid, dedup_key) VALUES ('reactivation', 1, 'a')");
    assert_eq!(subjects(&conn), ["uid:1", "tg:12", "uid:1"]);
    // The chat moves to another member: its own events go along, those of the member stay.
    run("UPDATE members SET telegram_id = NULL WHERE uid = 1; UPDATE members SET telegram_id = 11 WHERE uid = 2");
    assert_eq!(subjects(&conn), ["uid:2", "tg:12", "uid:1"]);
    run("DELETE FROM members WHERE uid = 2");
    assert_eq!(subjects(&conn), ["tg:11", "tg:12", "uid:1"]);
    run("UPDATE bot_event_outbox SET magnet_uid = 5 WHERE telegram_id = 12");
    run(
        "UPDATE bot_event_outbox SET next_retry_at = 99 WHERE id = 1; UPDATE bot_event_outbox SET subject = 'x:1' WHERE id = 1",
    );
    run("INSERT OR REPLACE INTO bot_event_outbox (event_type, magnet_uid, dedup_key) VALUES ('registered', 9, 'a')");
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM bot_event_outbox WHERE dedup_key = 'a'", []), 1);
    assert_eq!(
        value::<i64>(&conn, "SELECT magnet_uid FROM bot_event_outbox WHERE dedup_key = 'a'", []),
        1,
        "the first"
    );
    run("INSERT INTO bot_event_outbox (id, event_type, magnet_uid) VALUES (100, 'reactivation', 5)");
    run("INSERT INTO bot_event_outbox (id, event_type, magnet_uid) VALUES (50, 'reactivation', 5)");
    run("DELETE FROM bot_event_outbox WHERE id = 50");
    run("UPDATE bot_event_outbox SET processed_at = 1, outcome = 'handled' WHERE id = 100");
    run("UPDATE bot_event_outbox SET processed_at = NULL, outcome = NULL WHERE id = 100");
    for refused in [
        "INSERT OR REPLACE INTO bot_event_outbox (id, event_type, magnet_uid) VALUES (100, 'reactivation', 6)",
        "UPDATE bot_event_outbox SET id = 7000 WHERE id = 100",
        "INSERT INTO bot_event_outbox (id, event_type, magnet_uid) VALUES (-5, 'reactivation', 6)",
        "INSERT INTO bot_event_outbox (event_type, magnet_uid, payload) VALUES ('reactivation', 6, '[1]')",
        "INSERT INTO bot_event_outbox (event_type, magnet_uid, payload)
         VALUES ('reactivation', 6, json_object('x', hex(zeroblob(9000))))",
        "INSERT INTO bot_event_outbox (event_type) VALUES ('reactivation')",
    ] {
        assert!(conn.execute_batch(refused).is_err(), "{refused}");
        assert_lanes_in_step(&conn, refused);
    }
}

#[test]
fn lanes_that_were_written_by_hand_are_mended_by_housekeeping() {
    let dev = Dev::start(&["bot.event_source=off"]);
    let conn = dev.writer();
    conn.execute_batch(
        "INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES
           ('reactivation', 1), ('reactivation', 1), ('reactivation', 2), ('reactivation', 3);
         DELETE FROM bot_event_lanes WHERE subject = 'uid:1';
         UPDATE bot_event_lanes SET head_id = 999 WHERE subject = 'uid:2';
         INSERT INTO bot_event_lanes (due_at, head_id, subject) VALUES (0, 2, 'uid:1'), (5, 77, 'uid:77')",
    )
    .unwrap();
    let ran = dev.http.done("/dev/jobs/housekeeping/run", &json!({}));
    assert_eq!((&ran["outcome"], &ran["counts"]["lanesMended"]), (&json!("ok"), &json!(5)), "{ran}");
    assert_lanes_in_step(&conn, "housekeeping");
    let again = dev.http.done("/dev/jobs/housekeeping/run", &json!({}));
    assert_eq!(again["counts"]["lanesMended"], 0, "{again}");
}

#[test]
fn rows_that_cannot_be_read_fail_by_themselves_and_hold_up_nobody_else() {
    let dev = Dev::start(&[]);
    let conn = dev.writer();
    crate::harness::file::add_person(&conn, 8, 108);
    conn.execute_batch(
        "INSERT INTO bot_users (telegram_id, magnet_uid, first_name, stage) VALUES (109, 9, CAST(x'4a6f73e9' AS TEXT), 6);
         INSERT INTO bot_event_outbox (event_type, magnet_uid, payload) VALUES
           ('registered', 1, '{\"parentUid\": 3, \"n\": 1e999}'),
           ('registered', 2, '{\"parentUid\": 3, \"s\": \"\\ud800\"}'),
           ('new_partner', 3, CAST(x'7b22706172746e6572556964223a312c22706172746e65724e616d65223a224a6f73e9227d' AS TEXT)),
           (CAST(x'e9' AS TEXT), 4, NULL),
           ('reactivation', 9, NULL)",
    )
    .unwrap();
    let last = dev.emit(&json!({"eventType": "reactivation", "magnetUid": 8, "telegramId": "108"}));
    dev.until_event(last, "handled", 0);
    dev.until_event(5, "handled", 0);
    dev.until_event(3, "handled", 0);
    for unreadable in [1, 2, 4] {
        dev.until_event(unreadable, "open", 1);
    }
    let why: String = value(&conn, "SELECT last_error FROM bot_event_outbox WHERE id = 1", []);
    assert_eq!(why, "the payload is not readable");
    dev.until_message(&format!("event:local:{last}:reactivation"), "sent");
    assert!(dev.command(&["outbox", "list"]).status.success());
}

/// Runs SQL in Debian's shell, if it is installed; else on a connection of our own.
fn elsewhere(dev: &Dev, sql: &str) -> bool {
    let file = dev.place.data().join("pillarbox.db");
    match Command::new("sqlite3").args(["-batch", "-bail", "-cmd", ".timeout 20000", text(&file), sql]).output() {
        Ok(done) => done.status.success(),
        Err(_) => dev.writer().execute_batch(sql).is_ok(),
    }
}

#[test]
fn a_lead_that_another_program_inserts_is_completed_and_cleaned_whatever_it_holds() {
    let dev = Dev::start(&["leads.delivery=off"]);
    let hostile = json!({"preparation": {
        "journey_type": "  Первый \t визит\u{0}\n", "journey_stage": ["x"], "scenario_slug": "otkazali-v-ipoteke",
        "remaining_questions": "a'; DROP TABLE broker_leads --\r\n  <b>б</b>",
        "completed_checks": ["hacked", "documents", 7, "diagnosis", "finances"],
        "completed_labels": ["Одобрено банком", " Справка \n 2-НДФЛ ", "Одобрено", "x".repeat(1000)],
    }});
    let payload = hostile.to_string().replace('\'', "''");
    let sql = format!(
        "INSERT INTO broker_leads (request_id, phone, raw_payload, journey_stage, preparation_completed)
         VALUES ('by-hand', '+7', '{payload}', 'mine', '[\"Одобрено\"]')"
    );
    assert!(elsewhere(&dev, &sql));
    let conn = dev.reader();
    let shown: String = value(
        &conn,
        "SELECT concat_ws('|', journey_type, journey_stage, journey_scenario_slug, remaining_questions,
                          json_array_length(preparation_completed), preparation_completed ->> 0,
                          length(preparation_completed ->> 1), status, source, length(id))
         FROM broker_leads",
        [],
    );
    let questions = "a'; DROP TABLE broker_leads --\n<b>б</b>";
    assert_eq!(shown, format!("Первый визит|otkazali-v-ipoteke|{questions}|2|Справка 2-НДФЛ|180|new|site|36"));

    let again = "INSERT OR REPLACE INTO broker_leads (request_id, phone) VALUES ('by-hand', '8')";
    assert!(!elsewhere(&dev, again), "nobody replaces a lead");
    let before: i64 = value(&conn, "SELECT updated_at FROM broker_leads", []);
    assert!(elsewhere(&dev, "UPDATE broker_leads SET status = 'in_progress', raw_payload = '{\"preparation\": 1}'"));
    let after: (i64, String) = conn
        .query_row("SELECT updated_at, preparation_completed || preparation FROM broker_leads", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert!(after.0 > before && after.1 == "[]{}", "{after:?}");
}

#[test]
fn what_no_form_sends_is_cleaned_too() {
    let dev = Dev::start(&["leads.delivery=off"]);
    let conn = dev.writer();
    let long = "я".repeat(1 << 20);
    let many: Vec<String> = (0..100).map(|n| format!("label {n}")).collect();
    let checks = vec!["next_step"; 100];
    let payload = json!({"preparation": {
        "journey_type": long, "completed_checks": checks, "completed_labels": many, "deep": {"deeper": {"journey_type": "no"}},
    }});
    let insert = "INSERT INTO broker_leads (phone, raw_payload) VALUES ('7', ?1)";
    conn.execute(insert, [payload.to_string()]).unwrap();
    // A lone surrogate and a NUL, as escapes that SQLite takes for JSON; and bytes that are no text.
    let lone = r#"{"preparation":{"journey_type":"\ud800x","journey_stage":"a\u0000b\\u0000","completed_checks":["finances\u0000"]}}"#;
    conn.execute(insert, [lone]).unwrap();
    conn.execute("INSERT INTO broker_leads (phone, client_name) VALUES ('7', CAST(x'4a6f73e9' AS TEXT))", []).unwrap();
    let shown: Vec<String> = column(
        &conn,
        "SELECT concat_ws('|', length(journey_type), journey_stage, preparation_completed) FROM broker_leads ORDER BY rowid",
        [],
    );
    assert_eq!(shown[0], r#"160|["label 0"]"#);
    assert!(shown[1].ends_with(r#"|ab\u0000|["Финансы"]"#), "{shown:?}");
    assert_eq!(shown[2], "[]");
    for refused in [
        "INSERT INTO broker_leads (phone, raw_payload) VALUES ('7', '{')",
        "INSERT INTO broker_leads (phone, notification_status) VALUES ('7', 'lost')",
        "INSERT INTO broker_leads (id, phone) VALUES ('1', '7')",
        "UPDATE broker_leads SET preparation_completed = '{}'",
        "INSERT INTO broker_lead_events (lead_id, event_type) VALUES ('x', 'created')",
    ] {
        assert!(conn.execute_batch(refused).is_err(), "{refused}");
    }
}

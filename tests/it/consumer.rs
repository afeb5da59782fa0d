//! The consumer: retries run the handler again, what is given up is set aside and can be brought back, and each of the
//! six events does what the contract says, with its effects and its domain events together.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{add_chat, add_person, call_witness, column, disorder, rows, value};
use crate::harness::until;

/// A server with one person: member 7 in chat 107.
fn dev_with_anna() -> (Dev, Connection) {
    let dev = Dev::start(&["telegram.chat_interval=0s", "store.ballast=0"]);
    let conn = dev.writer();
    call_witness(&conn);
    add_person(&conn, 7, 107);
    (dev, conn)
}

fn stage(conn: &Connection, telegram_id: i64) -> i64 {
    value(conn, "SELECT stage FROM bot_users WHERE telegram_id = ?1", [telegram_id])
}

/// The rises of a person that were published, as `(from, to)`.
fn rises(conn: &Connection, telegram_id: i64) -> Vec<(i64, i64)> {
    let sql = "SELECT json_extract(payload, '$.from'), json_extract(payload, '$.to') FROM outbox_events
               WHERE type = 'funnel.stage_advanced' AND aggregate_id = ?1 ORDER BY id";
    rows(conn, sql, [telegram_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn marks(conn: &Connection, event_id: i64) -> i64 {
    value(conn, "SELECT count(*) FROM bot_processed_events WHERE outbox_event_id = ?1", [event_id])
}

fn minutes(number: u64) -> Duration {
    Duration::from_secs(60 * number)
}

/// The wait after so many failures, and a moment more.
fn back_off(attempts: u32) -> Duration {
    Duration::from_secs((60 << attempts) + 1)
}

#[test]
fn a_failed_event_is_handled_again_and_leaves_its_effects_once() {
    let (dev, conn) = dev_with_anna();
    let id = dev.emit(&json!({"eventType": "status_nft_activated", "magnetUid": 7, "payload": {"level": "lp9"}}));
    dev.until_event(id, "open", 1);
    assert_eq!((stage(&conn, 107), rises(&conn, 107), marks(&conn, id)), (1, vec![], 0), "a failure leaves nothing");
    let error: String = value(&conn, "SELECT last_error FROM bot_event_outbox WHERE id = ?1", [id]);
    assert_eq!(error, "payload.level is missing or not valid");

    conn.execute("UPDATE bot_event_outbox SET payload = '{\"level\": \"lp2\"}' WHERE id = ?1", [id]).unwrap();
    dev.advance(Duration::from_secs(110));
    dev.http.done("/dev/jobs/bot-outbox-poll/run", &json!({}));
    dev.until_event(id, "open", 1);
    dev.advance(Duration::from_secs(11));
    dev.until_event(id, "handled", 1);
    assert_eq!((stage(&conn, 107), rises(&conn, 107), marks(&conn, id)), (9, vec![(1, 9)], 1));
}

#[test]
fn a_dead_registered_is_set_aside_and_comes_back_by_hand() {
    let (dev, conn) = dev_with_anna();
    let dead = dev.emit(&json!({"eventType": "registered", "magnetUid": 7, "payload": {"parentUid": "three"}}));
    let next =
        dev.emit(&json!({"eventType": "status_nft_activated", "telegramId": "107", "payload": {"level": "lp1"}}));
    for attempts in 1..10 {
        dev.until_event(dead, "open", attempts.into());
        assert_eq!(marks(&conn, next), 0, "its subject waits with it");
        dev.advance(back_off(attempts));
    }
    dev.until_event(dead, "dead", 10);
    dev.until_event(next, "handled", 0);
    dev.advance(minutes(24 * 60));
    dev.http.done("/dev/jobs/bot-outbox-poll/run", &json!({}));
    dev.until_event(dead, "dead", 10);
    // The line follows the commit.
    until("the dead letter is told", || dev.process.log().contains("[bot-outbox][DEAD-LETTER]").then_some(()));
    let log = dev.process.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("[bot-outbox][DEAD-LETTER]")).collect();
    assert!(lines.len() == 1 && lines[0].contains("ERROR"), "{lines:?}");

    let listed = dev.command(&["outbox", "list", "--state", "dead", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed["id"], &listed["attempts"]), (&json!(dead), &json!(10)), "{listed}");

    conn.execute("UPDATE bot_event_outbox SET payload = '{\"parentUid\": 3}' WHERE id = ?1", [dead]).unwrap();
    let retried = dev.command(&["outbox", "retry", &dead.to_string()]);
    assert!(retried.status.success(), "{retried:?}");
    dev.until_event(dead, "handled", 0);
    let parent: i64 = value(&conn, "SELECT magnet_parent_uid FROM bot_users WHERE telegram_id = 107", []);
    assert_eq!((parent, stage(&conn, 107), rises(&conn, 107)), (3, 9, vec![(1, 9)]));
    assert_eq!(disorder(&conn), [], "a dead event is not open, so it did not block");
}

#[test]
fn another_type_is_abandoned_after_ten_failures_and_comes_back_by_hand() {
    let (dev, conn) = dev_with_anna();
    let id = dev.emit(&json!({"eventType": "new_partner", "magnetUid": 7}));
    for attempts in 1..10 {
        dev.until_event(id, "open", attempts.into());
        dev.advance(back_off(attempts));
    }
    dev.until_event(id, "abandoned", 10);
    assert!(!dev.process.log().contains("DEAD-LETTER"));
    let handled = dev.emit(&json!({"eventType": "reactivation", "magnetUid": 7}));
    dev.until_event(handled, "handled", 0);

    conn.execute("UPDATE bot_event_outbox SET payload = '{\"partnerUid\": 9}' WHERE id = ?1", [id]).unwrap();
    assert!(dev.command(&["outbox", "retry", &id.to_string()]).status.success());
    dev.until_event(id, "handled", 0);
    dev.until_message(&format!("event:local:{id}:new_partner"), "sent");
    let refused = dev.command(&["outbox", "retry", &handled.to_string()]);
    assert_eq!(refused.status.code(), Some(1), "a handled event is not opened again");
    dev.until_event(handled, "handled", 0);
}

#[test]
fn an_event_of_a_type_from_the_future_fails_and_says_so() {
    let (dev, conn) = dev_with_anna();
    conn.execute("INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('level_up', 7)", []).unwrap();
    dev.until_event(1, "open", 1);
    let error: String = value(&conn, "SELECT last_error FROM bot_event_outbox WHERE id = 1", []);
    assert_eq!(error, "unknown event type");
}

#[test]
fn a_job_can_be_run_by_hand_and_leaves_a_row() {
    let (dev, conn) = dev_with_anna();
    let ran = dev.http.done("/dev/jobs/bot-outbox-poll/run", &json!({}));
    assert_eq!(ran["outcome"], "ok", "whoever has the job in hand is waited for");
    let runs: i64 = value(&conn, "SELECT count(*) FROM job_runs WHERE job = 'bot-outbox-poll'", []);
    assert_eq!(runs, 1);
    assert_eq!(dev.http.post("/dev/jobs/no-such-job/run", &json!({})).status, 404);
}

#[test]
fn a_partner_who_cannot_be_written_to_finds_it_in_the_cabinet_once() {
    let texts = [
        ("bot was blocked by the user", "blocked"),
        ("user is deactivated", "deactivated"),
        ("bot can't initiate conversation with a user", "never_started"),
        ("bot was kicked from the group chat", "blocked"),
        ("bot was kicked from the supergroup chat", "blocked"),
        ("bot was kicked from the channel chat", "blocked"),
        ("bot is not a member of the group chat", "blocked"),
        ("bot is not a member of the supergroup chat", "blocked"),
        ("bot is not a member of the channel chat", "blocked"),
        ("the group chat was deleted", "deactivated"),
    ];
    let (dev, conn) = dev_with_anna();
    for (uid, (text, reachable)) in (20..).zip(texts) {
        let chat = 100 + uid;
        add_person(&conn, uid, chat);
        dev.fault(&json!({"chat_id": chat, "status": 403, "description": format!("Forbidden: {text}")}));
        let emit = |name: &str| {
            let payload = json!({"partnerUid": 9, "partnerName": name});
            dev.emit(&json!({"eventType": "new_partner", "magnetUid": uid, "payload": payload}))
        };
        let first = emit("Boris");
        dev.until_message(&format!("event:local:{first}:new_partner"), "undeliverable");
        let bodies = || -> Vec<String> {
            column(&conn, "SELECT body FROM web_notifications WHERE magnet_uid = ?1 ORDER BY id", [uid])
        };
        assert_eq!(bodies().len(), 1, "{text}");
        assert!(bodies()[0].contains("Boris"), "{text}: {:?}", bodies());
        let noted: String = value(&conn, "SELECT reachable FROM bot_users WHERE telegram_id = ?1", [chat]);
        assert_eq!(noted, reachable, "{text}");

        let second = emit("Clara");
        dev.until_event(second, "handled", 0);
        assert!(bodies().len() == 2 && bodies()[1].contains("Clara"), "{text}: {:?}", bodies());
        let queued: i64 = value(&conn, "SELECT count(*) FROM telegram_messages WHERE chat_id = ?1", [chat]);
        assert_eq!((queued, dev.texts(chat).len()), (1, 0), "{text}: no second attempt");
    }
}

#[test]
fn each_event_does_what_the_contract_says() {
    let (dev, conn) = dev_with_anna();
    add_person(&conn, 3, 103);
    add_person(&conn, 4, 104);
    conn.execute("UPDATE bot_users SET leader_uid = 3 WHERE telegram_id = 107", []).unwrap();
    let emit = |event_type: &str, payload: Value| {
        let id = dev.emit(&json!({"eventType": event_type, "magnetUid": 7, "telegramId": "107", "payload": payload}));
        dev.until_event(id, "handled", 0);
        id
    };
    emit("wallet_connected", json!({}));
    assert_eq!(stage(&conn, 107), 7);
    emit("registered", json!({"parentUid": 4}));
    let person = "SELECT leader_uid, magnet_parent_uid, stage FROM bot_users WHERE telegram_id = 107";
    let person = rows(&conn, person, [], |row| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]));
    assert_eq!(person, [[3, 4, 8]], "first touch stays, the structure is another");
    dev.until_message("left_leader:107", "sent");
    emit("registered", json!({"parentUid": 4}));
    assert_eq!(dev.texts(103).len(), 1, "the former leader is told once");
    emit("status_nft_activated", json!({"level": "lp1"}));
    emit("status_nft_activated", json!({"level": "lp2"}));
    for (event_type, payload) in [
        ("new_partner", json!({"partnerUid": 9, "partnerName": "Anna <3"})),
        ("reactivation", json!({})),
        ("struct_overtake", json!({})),
    ] {
        let id = emit(event_type, payload);
        dev.until_message(&format!("event:local:{id}:{event_type}"), "sent");
    }
    let texts = dev.texts(107);
    assert!(texts.len() == 3 && texts[0].contains("Anna <3"), "{texts:?}");
    assert_eq!((stage(&conn, 107), rises(&conn, 107)), (9, vec![(1, 7), (7, 8), (8, 9)]), "each rise once");
}

#[test]
fn a_stage_never_falls() {
    let (dev, conn) = dev_with_anna();
    let events =
        [("status_nft_activated", json!({"level": "lp1"})), ("wallet_connected", json!({})), ("registered", json!({}))];
    for (event_type, payload) in events {
        let id = dev.emit(&json!({"eventType": event_type, "magnetUid": 7, "payload": payload}));
        dev.until_event(id, "handled", 0);
        assert_eq!((stage(&conn, 107), rises(&conn, 107)), (9, vec![(1, 9)]), "after {event_type}");
    }
}

#[test]
fn a_preview_is_asked_to_bind_and_is_no_binding() {
    let (dev, conn) = dev_with_anna();
    conn.execute("INSERT INTO members (uid, preview_telegram_id) VALUES (8, 108)", []).unwrap();
    add_chat(&conn, None, 108);
    let id = dev.emit(&json!({"eventType": "wallet_connected", "magnetUid": 8, "telegramId": "108",
                              "payload": {"preview": true}}));
    dev.until_message(&format!("event:local:{id}:wallet_connected"), "sent");
    let shown = dev.http.get("/dev/telegram/messages?chat_id=108").json();
    let button = &shown["messages"][0]["reply_markup"]["inline_keyboard"][0][0]["callback_data"];
    assert_eq!(button, "bind:8", "{shown}");
    let member: Option<i64> = value(&conn, "SELECT magnet_uid FROM bot_users WHERE telegram_id = 108", []);
    assert_eq!((member, stage(&conn, 108)), (None, 7));
}

#[test]
fn an_event_of_nobody_the_bot_knows_is_handled_and_only_a_new_partner_is_told() {
    let (dev, conn) = dev_with_anna();
    for (event_type, payload) in [
        ("wallet_connected", json!({})),
        ("registered", json!({"parentUid": 7})),
        ("status_nft_activated", json!({"level": "lp1"})),
        ("reactivation", json!({})),
        ("struct_overtake", json!({})),
        ("new_partner", json!({"partnerUid": 7})),
    ] {
        let id = dev.emit(&json!({"eventType": event_type, "magnetUid": 99, "payload": payload}));
        dev.until_event(id, "handled", 0);
    }
    let kinds: Vec<String> = column(&conn, "SELECT kind FROM web_notifications WHERE magnet_uid = 99", []);
    assert_eq!(kinds, ["new_partner"]);
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM telegram_messages", []), 0);
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM outbox_events", []), 0, "nothing has changed");
}

#[test]
fn a_message_that_is_no_longer_wanted_is_skipped_and_a_blocked_one_falls_back() {
    let (dev, conn) = dev_with_anna();
    // Held back by a pause of its chat, so that what changes meanwhile is read at the claim.
    dev.fault(&json!({"chat_id": 107, "status": 429, "retry_after": 60}));
    let emit = |event_type: &str, payload: Value| {
        let id = dev.emit(&json!({"eventType": event_type, "magnetUid": 7, "payload": payload}));
        dev.until_event(id, "handled", 0);
        format!("event:local:{id}:{event_type}")
    };
    let refused = emit("new_partner", json!({"partnerUid": 9}));
    until("the first attempt is refused", || {
        let sql = "SELECT error_code FROM telegram_messages WHERE dedup_key = ?1";
        (value::<Option<String>>(&conn, sql, [&refused]).as_deref() == Some("rate_limited")).then_some(())
    });
    conn.execute("UPDATE bot_users SET reachable = 'blocked' WHERE telegram_id = 107", []).unwrap();
    dev.advance(Duration::from_secs(62));
    dev.until_message(&refused, "skipped");
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM web_notifications WHERE magnet_uid = 7", []), 1);

    conn.execute("UPDATE bot_users SET reachable = 'ok', optin_urgent = 0 WHERE telegram_id = 107", []).unwrap();
    let unwanted = emit("reactivation", json!({}));
    dev.until_message(&unwanted, "skipped");
    assert_eq!(dev.texts(107).len(), 0);
}

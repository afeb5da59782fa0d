//! Members as a running server keeps them: what changes together with what it tells, and what other programs write.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::until;

/// A server that nobody polls but the test: its own bot is off.
fn backend() -> Dev {
    Dev::start(&["bot.event_source=off", "store.ballast=0"])
}

fn put(dev: &Dev, uid: i64, body: &Value) -> Value {
    let answer = dev.api.call("PUT", &format!("/v1/members/{uid}"), Some(body));
    assert!([200, 201].contains(&answer.status), "{}", answer.body);
    answer.json()
}

fn bot_events(conn: &Connection) -> Vec<String> {
    let sql = "SELECT event_type || ' ' || magnet_uid || ' ' || COALESCE(telegram_id, '-') || ' ' || payload
               FROM bot_event_outbox ORDER BY id";
    column(conn, sql, [])
}

fn domain_events(conn: &Connection) -> Vec<String> {
    column(conn, "SELECT type || ' ' || aggregate_id FROM outbox_events ORDER BY id", [])
}

#[test]
fn a_rollback_takes_the_events() {
    let dev = backend();
    let conn = dev.writer();
    put(&dev, 3, &json!({}));
    conn.execute_batch(
        "CREATE TRIGGER no_partners BEFORE INSERT ON bot_event_outbox WHEN NEW.event_type = 'new_partner'
         BEGIN SELECT RAISE(ABORT, 'not now'); END",
    )
    .unwrap();
    let whole = json!({"addr": "0xA1", "registration_confirmed": true, "parent_uid": 3, "lp1": true});
    let refused = dev.api.call("PUT", "/v1/members/7", Some(&whole));
    assert_eq!(refused.status, 500, "{}", refused.body);
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM members WHERE uid = 7", []), 0);
    assert_eq!((bot_events(&conn).len(), domain_events(&conn).len()), (0, 0), "nothing of it is there");

    conn.execute_batch("DROP TRIGGER no_partners").unwrap();
    let done = put(&dev, 7, &whole);
    let published = ["member.wallet_connected", "member.registered", "partner.joined", "member.nft_activated"];
    assert_eq!(done["published"], json!(published));
    assert_eq!((bot_events(&conn).len(), domain_events(&conn).len()), (4, 4));
}

#[test]
fn sql_is_announced() {
    let dev = backend();
    let conn = dev.writer();
    conn.execute_batch(
        "BEGIN IMMEDIATE;
         INSERT INTO members (uid, name, telegram_id) VALUES (3, 'Boris', 103);
         INSERT INTO members (uid, name, preview_telegram_id, parent_uid, addr, registration_confirmed, lp2)
         VALUES (7, 'Anna', 107, 3, '0xA1', 1, 1);
         COMMIT;",
    )
    .unwrap();
    until("members of another program are told of", || (bot_events(&conn).len() == 4).then_some(()));
    let expected = [
        r#"wallet_connected 7 107 {"preview":true}"#,
        r#"registered 7 107 {"parentUid":3,"preview":true}"#,
        r#"new_partner 3 103 {"partnerName":"Anna","partnerUid":7}"#,
        r#"status_nft_activated 7 107 {"level":"lp2","preview":true}"#,
    ];
    assert_eq!(bot_events(&conn), expected);
    let expected = ["member.wallet_connected 7", "member.registered 7", "partner.joined 3", "member.nft_activated 7"];
    assert_eq!(domain_events(&conn), expected);

    // A field that flaps is no news, to SQL neither.
    conn.execute_batch("UPDATE members SET addr = NULL, lp2 = 0 WHERE uid = 7").unwrap();
    conn.execute_batch("UPDATE members SET addr = '0xB2', lp2 = 1, lp1 = 1 WHERE uid = 7").unwrap();
    until("the one new thing is told", || (bot_events(&conn).len() == 5).then_some(()));
    dev.run_job("bot-outbox-poll");
    assert_eq!(bot_events(&conn)[4..], [r#"status_nft_activated 7 107 {"level":"lp1","preview":true}"#]);
}

#[test]
fn many_members_of_sql_are_all_announced_and_a_bad_one_holds_up_nobody() {
    let dev = backend();
    let conn = dev.writer();
    conn.execute_batch(
        "CREATE TRIGGER not_100 BEFORE INSERT ON bot_event_outbox WHEN NEW.magnet_uid = 100
         BEGIN SELECT RAISE(ABORT, 'not now'); END;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240)
         INSERT INTO members (uid, addr) SELECT i, '0x' || i FROM n;",
    )
    .unwrap();
    until("all but one are told of", || (bot_events(&conn).len() == 239).then_some(()));
    conn.execute_batch("DROP TRIGGER not_100").unwrap();
    dev.run_job("bot-outbox-poll");
    assert_eq!(value::<i64>(&conn, "SELECT count(DISTINCT magnet_uid) FROM bot_event_outbox", []), 240);
    dev.run_job("bot-outbox-poll");
    assert_eq!(bot_events(&conn).len(), 240, "once each");
}

#[test]
fn what_was_emitted_by_hand_is_not_announced() {
    let dev = backend();
    let conn = dev.writer();
    conn.execute_batch(
        "BEGIN IMMEDIATE;
         INSERT INTO members (uid, addr, registration_confirmed, lp1, lp2) VALUES (7, '0xA1', 1, 1, 1);
         INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('wallet_connected', 7), ('registered', 7);
         INSERT INTO bot_event_outbox (event_type, magnet_uid, payload)
         VALUES ('status_nft_activated', 7, '{\"level\":\"lp2\"}');
         COMMIT;",
    )
    .unwrap();
    until("what nobody told by hand is told", || (bot_events_count(&conn) == 4).then_some(()));
    dev.run_job("bot-outbox-poll");
    let last = "SELECT event_type || payload FROM bot_event_outbox ORDER BY id DESC LIMIT 1";
    assert_eq!(value::<String>(&conn, last, []), r#"status_nft_activated{"level":"lp1"}"#);
    assert_eq!(bot_events_count(&conn), 4);
    // The same by PUT: what was told by hand is told.
    dev.emit(&json!({"eventType": "wallet_connected", "magnetUid": 8}));
    put(&dev, 8, &json!({}));
    dev.emit(&json!({"eventType": "registered", "magnetUid": 8}));
    let done = put(&dev, 8, &json!({"addr": "0xA1", "registration_confirmed": true}));
    assert_eq!(done["published"], json!(["member.wallet_connected"]), "a member who was not there had no mark");
}

fn bot_events_count(conn: &Connection) -> i64 {
    value(conn, "SELECT count(*) FROM bot_event_outbox", [])
}

/// From the site to the chat and back, with the bot in the same process.
#[test]
fn a_put_reaches_the_person_in_the_chat() {
    let dev = Dev::start(&["store.ballast=0", "bot.site_url=https://site.example/"]);
    let conn = dev.writer();
    crate::harness::file::add_chat(&conn, None, 107);
    let link = dev.http.done("/bot/telegram/connect-link", &json!({"telegramId": "107"}));
    let token = link["token"].as_str().unwrap();
    put(&dev, 7, &json!({"name": "Anna"}));
    dev.api.done("/v1/connect-links/redeem", &json!({"token": token, "uid": 7}));
    put(&dev, 7, &json!({"addr": "0xA1"}));
    until("the person is asked whether the account is theirs", || (dev.texts(107).len() == 1).then_some(()));
    let bound = dev.http.done("/bot/telegram/bind", &json!({"telegramId": 107, "magnetUid": 7}));
    assert_eq!(bound, json!({"uid": 7, "telegramId": "107"}));
    let account = dev.http.get("/auth/check-account-by-telegram/107");
    assert_eq!(account.json(), json!({"exists": true, "uid": 7}));

    // Links that are over are swept away a week later.
    dev.advance(Duration::from_secs(8 * 86_400));
    dev.run_job("housekeeping");
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM telegram_connect_links", []), 0);
}

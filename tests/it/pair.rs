//! Two processes: one is the backend, the other its bot, and between them is the contract over HTTP.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::file::{self, add_chat, column, rows, value};
use crate::harness::http::Client;
use crate::harness::{Place, Process, text, until};

/// The backend, whose clock can be moved; the bot, a `serve` of its own; and the fake that the bot sends to.
struct Pair {
    backend: Dev,
    bot: Place,
    server: Process,
    fake: Process,
    telegram: Client,
    fake_url: String,
}

impl Pair {
    fn start() -> Self {
        let backend = Dev::start(&["bot.event_source=off", "store.ballast=0"]);
        let bot = Place::new();
        let (fake, fake_url) = bot.start_fake();
        let telegram = Client::new(&fake_url, None);
        let server = launch(&bot, &fake_url, &backend);
        let mut pair = Self { backend, bot, server, fake, telegram, fake_url };
        pair.server.serving_url();
        pair
    }

    fn start_bot_again(&mut self) {
        self.server.kill();
        self.server = launch(&self.bot, &self.fake_url, &self.backend);
    }

    /// The bot's file.
    fn file(&self) -> Connection {
        file::writer(&self.bot.data())
    }

    /// Has the bot look now; its own schedule looks every ten seconds.
    fn look(&self) {
        let data = self.bot.data();
        for job in ["bot-outbox-poll", "backend-calls"] {
            // A job that is under way already is skipped, and may have looked too early.
            until(&format!("{job} is run"), || {
                let ran = self.bot.command(&["jobs", "run", job, "--data-dir", text(&data)]).output();
                let ran = ran.expect("the binary starts");
                let is_skipped = String::from_utf8_lossy(&ran.stdout).contains("\"skipped\"");
                assert!(ran.status.success() || is_skipped, "{job}: {ran:?}");
                (!is_skipped).then_some(())
            });
        }
    }

    fn until_looking(&self, what: &str, found: impl Fn() -> bool) {
        until(what, || {
            self.look();
            found().then_some(())
        });
    }

    fn accepted(&self, chat: i64) -> usize {
        let shown = self.telegram.get(&format!("/dev/telegram/messages?chat_id={chat}")).json();
        shown["messages"].as_array().expect("a list").len()
    }
}

fn launch(bot: &Place, fake_url: &str, backend: &Dev) -> Process {
    let url = format!("bot.remote_url={}", backend.http.url());
    let sets = ["bot.event_source=remote", &url, "bot.remote_source=backend-a", "store.ballast=0"];
    bot.start_serve_with_secret(fake_url, &sets, backend.http.secret())
}

#[test]
fn a_second_process_is_the_bot_of_the_first() {
    let pair = Pair::start();
    let (conn, backend) = (pair.file(), pair.backend.writer());
    add_chat(&conn, Some(7), 107);
    add_chat(&conn, Some(8), 108);
    pair.telegram.done("/dev/telegram/faults", &json!({"chat_id": 108, "status": 403}));

    let risen = pair.backend.emit(&json!({"eventType": "wallet_connected", "magnetUid": 7}));
    let bad = json!({"eventType": "status_nft_activated", "magnetUid": 7, "payload": {"level": "lp9"}});
    let bad = pair.backend.emit(&bad);
    let behind = pair.backend.emit(&json!({"eventType": "reactivation", "magnetUid": 7, "telegramId": "107"}));
    let partner = json!({"eventType": "new_partner", "magnetUid": 8, "payload": {"partnerUid": 7}});
    let partner = pair.backend.emit(&partner);
    pair.look();
    pair.backend.until_event(risen, "handled", 0);
    pair.backend.until_event(bad, "open", 1);
    pair.backend.until_event(partner, "handled", 0);
    pair.backend.until_event(behind, "open", 0);
    let reason: String = value(&backend, "SELECT last_error FROM bot_event_outbox WHERE id = ?1", [bad]);
    assert_eq!(reason, "payload.level is missing or not valid");
    assert_eq!(value::<i64>(&conn, "SELECT stage FROM bot_users WHERE telegram_id = 107", []), 7);
    let told = "SELECT count(*) FROM web_notifications WHERE magnet_uid = 8";
    pair.until_looking("the backend's cabinet has the notification", || value::<i64>(&backend, told, []) == 1);
    assert_eq!(pair.accepted(107), 0, "what is behind a failed event waits");

    let repair = "UPDATE bot_event_outbox SET payload = '{\"level\": \"lp2\"}' WHERE id = ?1";
    backend.execute(repair, [bad]).expect("repaired");
    pair.backend.advance(Duration::from_secs(121));
    pair.look();
    pair.backend.until_event(bad, "handled", 1);
    pair.backend.until_event(behind, "handled", 0);
    until("the message arrives", || (pair.accepted(107) == 1).then_some(()));
    pair.look();
    let sql = "SELECT outbox_event_id FROM bot_processed_events WHERE source = 'backend-a' AND acked_at IS NOT NULL ORDER BY 1";
    assert_eq!(column::<i64>(&conn, sql, []), [risen, bad, behind, partner], "each marked once and acknowledged");
    assert_eq!(value::<i64>(&conn, "SELECT stage FROM bot_users WHERE telegram_id = 107", []), 9);
    assert_eq!(value::<i64>(&backend, told, []), 1);
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM web_notifications", []), 0, "the cabinet is the backend's");
}

#[test]
fn the_bot_binds_at_another_backend() {
    let pair = Pair::start();
    let (conn, backend) = (pair.file(), pair.backend.writer());
    backend.execute("INSERT INTO members (uid, preview_telegram_id) VALUES (7, 107), (8, 109)", []).expect("members");
    // What a confirmation in the chat leaves behind: one for the previewed chat, and one for a chat that is no preview.
    for (chat, uid) in [(107, 7), (108, 8)] {
        let body = json!({"telegram_id": chat, "uid": uid, "prompted_at": 1}).to_string();
        let sql = "INSERT INTO backend_calls (source, kind, body, dedup_key, due_at, created_at)
                   VALUES ('backend-a', 'bind', ?1, ?2, 0, strftime('%s', 'now') * 1000)";
        conn.execute(sql, (body, format!("bind:{chat}"))).expect("a call");
    }
    let done = "SELECT count(*) FROM backend_calls WHERE status = 'done'";
    pair.until_looking("both are answered", || value::<i64>(&conn, done, []) == 2);
    let bound = "SELECT uid || ' ' || COALESCE(telegram_id, '-') FROM members ORDER BY uid";
    assert_eq!(column::<String>(&backend, bound, []), ["7 107", "8 -"]);
}

#[test]
fn a_bot_that_is_killed_takes_nothing_twice_from_its_backend() {
    let mut pair = Pair::start();
    let conn = pair.file();
    let (people, events) = (10_i64, 3000_i64);
    (1..=people).for_each(|uid| add_chat(&conn, Some(uid), 100 + uid));
    let backend = pair.backend.writer();
    backend.execute_batch("BEGIN IMMEDIATE").expect("the lock comes");
    for number in 0..events {
        let event_type = if number / people % 5 == 0 { "reactivation" } else { "wallet_connected" };
        let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES (?1, ?2)";
        backend.execute(sql, (event_type, 1 + number % people)).expect("an event");
    }
    backend.execute_batch("COMMIT").expect("committed");
    let open = "SELECT count(*) FROM bot_event_outbox WHERE processed_at IS NULL";
    let marks = "SELECT count(*) FROM bot_processed_events WHERE source = 'backend-a'";
    let mut in_the_middle = 0;
    for pause_ms in [0, 1, 2, 4, 8, 16] {
        let before: i64 = value(&conn, marks, []);
        pair.start_bot_again();
        // Pages are being applied and acknowledged from here on.
        until("a page is applied", || {
            let is_over = value::<i64>(&backend, open, []) == 0;
            (is_over || value::<i64>(&conn, marks, []) > before).then_some(())
        });
        std::thread::sleep(Duration::from_millis(pause_ms));
        pair.server.kill();
        in_the_middle += i64::from(value::<i64>(&backend, open, []) > 0);
    }
    assert!(in_the_middle > 0, "no kill came while the bot was at work");
    pair.start_bot_again();
    pair.server.serving_url();
    pair.until_looking("all are acknowledged", || value::<i64>(&backend, open, []) == 0);
    let waiting = "SELECT count(*) FROM telegram_messages WHERE status IN ('pending', 'sending')";
    until("all are sent", || (value::<i64>(&conn, waiting, []) == 0).then_some(()));

    let queued: i64 = value(&conn, "SELECT count(*) FROM telegram_messages", []);
    assert_eq!((value::<i64>(&conn, marks, []), queued), (events, events / 5));
    for uid in 1..=people {
        let sql = "SELECT dedup_key FROM telegram_messages WHERE chat_id = ?1 ORDER BY id";
        let ids: Vec<i64> = rows(&conn, sql, [100 + uid], |row| row.get::<_, String>(0))
            .iter()
            .map(|key| key.split(':').nth(2).expect("event:source:id:type").parse().expect("an id"))
            .collect();
        assert!(ids.is_sorted() && ids.len() == 60, "member {uid}: {ids:?}");
    }
    assert!(pair.fake.has_ended().is_none());
}

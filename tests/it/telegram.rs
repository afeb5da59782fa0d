//! What Telegram can answer, and what becomes of the message: through the real client, against the fake and its faults.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{add_chat, add_person, value};
use crate::harness::until;

/// Time-outs are real time, so they are short here, but not so short that a busy machine misses them; limits are out of
/// the way.
const SETS: [&str; 5] = [
    "telegram.timeout=2s",
    "telegram.connect_timeout=1s",
    "telegram.chat_interval=0s",
    "telegram.per_second=1000",
    "store.ballast=0",
];

/// A message as the file has it.
#[derive(Debug, PartialEq)]
struct Message {
    status: String,
    code: Option<String>,
    attempts: i64,
    unknown: i64,
    chat_id: i64,
}

struct Telegram {
    dev: Dev,
    conn: Connection,
    last_chat: i64,
}

impl Telegram {
    fn start() -> Self {
        let dev = Dev::start(&SETS);
        let conn = dev.writer();
        Self { dev, conn, last_chat: 1000 }
    }

    /// A person in a new chat, the next call for whom ends in this fault, and an event's message for them.
    fn send_into(&mut self, fault: &Value) -> (String, i64) {
        self.last_chat += 1;
        let (chat, uid) = (self.last_chat, self.last_chat + 5000);
        add_person(&self.conn, uid, chat);
        self.arm(chat, fault);
        let payload = json!({"partnerUid": 9, "partnerName": "Boris"});
        let event = self.dev.emit(&json!({"eventType": "new_partner", "magnetUid": uid, "payload": payload}));
        (format!("event:local:{event}:new_partner"), chat)
    }

    fn arm(&self, chat: i64, fault: &Value) {
        let mut fault = fault.clone();
        fault["chat_id"] = json!(chat);
        self.dev.fault(&fault);
    }

    fn message(&self, key: &str) -> Option<Message> {
        let sql =
            "SELECT status, error_code, attempts, unknown_count, chat_id FROM telegram_messages WHERE dedup_key = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Message {
                status: row.get(0)?,
                code: row.get(1)?,
                attempts: row.get(2)?,
                unknown: row.get(3)?,
                chat_id: row.get(4)?,
            })
        };
        self.conn.query_row(sql, [key], read).ok()
    }

    /// The message when its first attempt has been recorded.
    fn after_first_attempt(&self, key: &str) -> Message {
        until(&format!("the first attempt of {key} is recorded"), || {
            self.message(key).filter(|message| message.code.is_some() || message.status == "sent")
        })
    }

    fn reachable(&self, chat: i64) -> String {
        value(&self.conn, "SELECT reachable FROM bot_users WHERE telegram_id = ?1", [chat])
    }

    /// A doubtful attempt is repeated after a pause.
    fn assert_repeated(&self, key: &str, chat: i64, code: &str, copies: usize) {
        let message = self.after_first_attempt(key);
        assert_eq!((message.code.as_deref(), message.unknown), (Some(code), 1), "{message:?}");
        self.dev.advance(Duration::from_secs(10));
        self.dev.until_message(key, "sent");
        let message = self.message(key).expect("it is there");
        assert_eq!((message.attempts, message.unknown), (2, 1), "{code}");
        assert_eq!(self.dev.texts(chat).len(), copies, "{code}");
    }
}

fn described(status: u16, text: &str) -> Value {
    json!({"status": status, "description": text})
}

#[test]
fn too_many_requests_wait_as_long_as_telegram_says() {
    let mut telegram = Telegram::start();
    let (key, chat) = telegram.send_into(&json!({"status": 429, "retry_after": 30}));
    let message = telegram.after_first_attempt(&key);
    assert_eq!((message.code.as_deref(), message.unknown, &*message.status), (Some("rate_limited"), 0, "pending"));
    let due: i64 = value(&telegram.conn, "SELECT due_at FROM telegram_messages WHERE dedup_key = ?1", [&key]);
    let wait = due - telegram.dev.now();
    assert!((20_000..=32_000).contains(&wait), "waits {wait} ms");
    telegram.dev.advance(Duration::from_secs(20));
    telegram.dev.http.done("/dev/jobs/telegram-send/run", &json!({}));
    assert_eq!(telegram.dev.texts(chat).len(), 0, "not before its time");
    telegram.dev.advance(Duration::from_secs(12));
    telegram.dev.until_message(&key, "sent");
    assert_eq!((telegram.message(&key).unwrap().attempts, telegram.dev.texts(chat).len()), (2, 1));
}

#[test]
fn a_pause_that_telegram_asked_for_outlives_the_process() {
    let mut telegram = Telegram::start();
    let (key, chat) = telegram.send_into(&json!({"status": 429, "retry_after": 3600}));
    telegram.after_first_attempt(&key);
    telegram.dev.start_again();
    let event = telegram.dev.emit(&json!({"eventType": "reactivation", "telegramId": chat.to_string()}));
    telegram.dev.until_event(event, "handled", 0);
    telegram.dev.http.done("/dev/jobs/telegram-send/run", &json!({}));
    assert_eq!(telegram.dev.texts(chat).len(), 0);
    telegram.dev.advance(Duration::from_secs(3602));
    telegram.dev.until_message(&format!("event:local:{event}:reactivation"), "sent");
    assert_eq!(telegram.dev.texts(chat).len(), 2);
}

#[test]
fn a_forbidden_is_final_and_remembered() {
    let mut telegram = Telegram::start();
    for (text, code, reachable) in [
        ("bot was blocked by the user", "blocked", "blocked"),
        ("user is deactivated", "deactivated", "deactivated"),
        ("bot can't initiate conversation with a user", "cant_initiate", "never_started"),
        ("bot was kicked from the group chat", "not_member", "blocked"),
        ("bot was kicked from the supergroup chat", "not_member", "blocked"),
        ("bot was kicked from the channel chat", "not_member", "blocked"),
        ("bot is not a member of the group chat", "not_member", "blocked"),
        ("bot is not a member of the supergroup chat", "not_member", "blocked"),
        ("bot is not a member of the channel chat", "not_member", "blocked"),
        ("the group chat was deleted", "chat_deleted", "deactivated"),
        ("a text that nobody has seen yet", "forbidden", "blocked"),
    ] {
        let (key, chat) = telegram.send_into(&described(403, &format!("Forbidden: {text}")));
        telegram.dev.until_message(&key, "undeliverable");
        let message = telegram.message(&key).expect("it is there");
        assert_eq!((message.code.as_deref(), message.attempts, message.unknown), (Some(code), 1, 0), "{text}");
        assert_eq!(telegram.reachable(chat), reachable, "{text}");
    }
}

#[test]
fn a_bad_request_is_final_unless_it_can_be_mended() {
    let mut telegram = Telegram::start();
    for (text, code, reachable) in [
        ("chat not found", "chat_not_found", "never_started"),
        ("private chat not found", "chat_not_found", "never_started"),
        ("PEER_ID_INVALID", "chat_not_found", "never_started"),
        ("USER_IS_BOT", "is_bot", "ok"),
        ("group chat was upgraded to a supergroup chat", "migrated", "ok"),
        ("message is too long", "too_long", "ok"),
        ("message is not modified: specified new message content is exactly the same", "not_modified", "ok"),
        ("BUTTON_DATA_INVALID", "button_invalid", "ok"),
        ("query is too old and response timeout expired or query ID is invalid", "query_too_old", "ok"),
        ("not enough rights to send text messages to the chat", "no_rights", "ok"),
        ("message thread not found", "thread_not_found", "ok"),
        ("a text that nobody has seen yet", "http_400", "ok"),
    ] {
        let (key, chat) = telegram.send_into(&described(400, &format!("Bad Request: {text}")));
        telegram.dev.until_message(&key, "undeliverable");
        let message = telegram.message(&key).expect("it is there");
        assert_eq!((message.code.as_deref(), message.attempts, message.unknown), (Some(code), 1, 0), "{text}");
        assert_eq!((telegram.reachable(chat), telegram.dev.texts(chat).len()), (reachable.to_owned(), 0), "{text}");
    }
    let (key, chat) =
        telegram.send_into(&described(400, "Bad Request: can't parse entities: unclosed tag at byte offset 5"));
    telegram.dev.until_message(&key, "sent");
    let message = telegram.message(&key).expect("it is there");
    assert_eq!((message.attempts, message.unknown), (2, 0));
    let shown = telegram.dev.http.get(&format!("/dev/telegram/messages?chat_id={chat}")).json();
    let arrived = &shown["messages"][0];
    assert!(arrived["text"].as_str().is_some_and(|text| text.contains("Boris")), "{shown}");
    assert_eq!(arrived.get("entities"), None, "as plain text: {shown}");
}

#[test]
fn a_failing_server_leaves_a_doubt_and_the_message_is_repeated() {
    let mut telegram = Telegram::start();
    let html = json!({"status": 502, "body": "<html><body>502 Bad Gateway</body></html>", "content_type": "text/html"});
    for (fault, code) in [(described(500, "Internal Server Error: restart"), "http_500"), (html, "http_502")] {
        let (key, chat) = telegram.send_into(&fault);
        telegram.assert_repeated(&key, chat, code, 1);
    }
}

#[test]
fn an_answer_that_is_late_or_lost_leaves_a_doubt_and_may_cost_a_second_copy() {
    let mut telegram = Telegram::start();
    for (fault, code) in [
        (json!({"delay_ms": 4000}), "timeout"),
        (json!({"drop_response": true}), "broken_connection"),
        (json!({"status": 200, "body": "<html>hello</html>"}), "broken_answer"),
    ] {
        let (key, chat) = telegram.send_into(&fault);
        telegram.assert_repeated(&key, chat, code, 2);
    }
}

#[test]
fn a_reminder_in_doubt_is_closed_and_never_repeated() {
    let telegram = Telegram::start();
    add_person(&telegram.conn, 7, 107);
    telegram.arm(107, &json!({"drop_response": true}));
    let sql = "INSERT INTO telegram_messages (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at)
               VALUES (107, 'reminder', 'bulk', 'remember', 'plain', 'reminder:7:stage_1', 0, ?1, ?1)";
    telegram.conn.execute(sql, [telegram.dev.now()]).expect("queued");
    telegram.dev.until_message("reminder:7:stage_1", "unknown");
    telegram.dev.advance(Duration::from_secs(3600));
    telegram.dev.http.done("/dev/jobs/telegram-send/run", &json!({}));
    let message = telegram.message("reminder:7:stage_1").expect("it is there");
    assert_eq!((message.attempts, message.unknown, message.code.as_deref()), (1, 1, Some("broken_connection")));
    assert_eq!(telegram.dev.texts(107).len(), 1);
}

#[test]
fn a_group_that_became_a_supergroup_is_followed() {
    let telegram = Telegram::start();
    add_chat(&telegram.conn, None, -500);
    telegram.arm(-500, &json!({"migrate_to_chat_id": -1_000_500}));
    let event = telegram.dev.emit(&json!({"eventType": "reactivation", "telegramId": "-500"}));
    let key = format!("event:local:{event}:reactivation");
    telegram.dev.until_message(&key, "sent");
    let message = telegram.message(&key).expect("it is there");
    assert_eq!((message.chat_id, message.attempts, message.unknown), (-1_000_500, 2, 0));
    assert_eq!((telegram.dev.texts(-500).len(), telegram.dev.texts(-1_000_500).len()), (0, 1));
}

#[test]
fn a_refused_token_holds_everything_and_is_a_failure_of_readiness() {
    let mut telegram = Telegram::start();
    let (key, chat) = telegram.send_into(&described(401, "Unauthorized"));
    assert_eq!(telegram.after_first_attempt(&key).code.as_deref(), Some("unauthorized"));
    let ready = telegram.dev.http.get("/readyz");
    assert_eq!((ready.status, &ready.json()["checks"]["telegram"]["ok"]), (503, &json!(false)), "{}", ready.body);
    let (other, _) = telegram.send_into(&described(500, "not to be reached yet"));
    telegram.dev.until_message(&other, "pending");
    telegram.dev.advance(Duration::from_secs(30));
    telegram.dev.http.done("/dev/jobs/telegram-send/run", &json!({}));
    assert_eq!(telegram.message(&other).map(|message| message.attempts), Some(0), "nobody else is tried either");
    telegram.dev.advance(Duration::from_secs(32));
    telegram.dev.until_message(&key, "sent");
    assert_eq!(telegram.dev.texts(chat).len(), 1);
    assert_eq!(telegram.dev.http.get("/readyz").status, 200);
}

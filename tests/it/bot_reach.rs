//! Who blocked the bot: nothing reaches them until `/start` or Telegram says otherwise, and what they were to be told goes
//! elsewhere once.

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{add_person, column, value};
use crate::harness::until;

const CHAT: i64 = 501;
const MEMBER: i64 = 77;

/// A member of the backend who talks to the bot.
struct Person {
    dev: Dev,
    updates: i64,
}

impl Person {
    fn start() -> Self {
        let dev = Dev::start(&["telegram.chat_interval=0s"]);
        add_person(&dev.writer(), MEMBER, CHAT);
        dev.writer().execute("UPDATE bot_users SET lang = 'en', stage = 4", []).unwrap();
        Self { dev, updates: 0 }
    }

    /// Something comes from their chat, and is handled.
    fn does(&mut self, kind: &str, mut fields: Value) {
        self.updates += 1;
        fields["chat"] = json!({"id": CHAT, "type": "private", "first_name": "Anna"});
        fields["from"] = json!({"id": CHAT, "is_bot": false, "first_name": "Anna"});
        fields["date"] = json!(self.dev.now() / 1000);
        self.dev.http.done("/dev/telegram/updates", &json!({kind: fields}));
        let (conn, updates) = (self.dev.reader(), self.updates);
        until("the update is handled", || {
            let sql = "SELECT COUNT(*) FROM telegram_updates WHERE status = 'handled'";
            (value::<i64>(&conn, sql, []) == updates).then_some(())
        });
    }

    fn says(&mut self, text: &str) {
        self.does("message", json!({"message_id": 1000 + self.updates, "text": text}));
    }

    fn membership(&mut self, from: &str, to: &str) {
        let of = |status: &str| json!({"user": {"id": 1, "is_bot": true, "first_name": "Bot"}, "status": status});
        self.does("my_chat_member", json!({"old_chat_member": of(from), "new_chat_member": of(to)}));
    }

    /// A partner joins, and the member is told; waits until that event is handled.
    fn gets_a_partner(&self) -> i64 {
        let payload = json!({"partnerUid": 9, "partnerName": "Boris"});
        let event = self.dev.emit(&json!({"eventType": "new_partner", "magnetUid": MEMBER, "payload": payload}));
        self.dev.until_event(event, "handled", 0);
        event
    }

    /// Waits until nothing is left to be sent; what became of the messages, in their order.
    fn ends(&self) -> Vec<String> {
        let conn = self.dev.reader();
        until("everything is sent or closed", || {
            let sql = "SELECT COUNT(*) FROM telegram_messages WHERE status IN ('pending', 'sending')";
            (value::<i64>(&conn, sql, []) == 0).then_some(())
        });
        column(&conn, "SELECT kind || ' ' || status FROM telegram_messages ORDER BY id", [])
    }

    fn notifications(&self) -> i64 {
        value(&self.dev.reader(), "SELECT COUNT(*) FROM web_notifications", [])
    }

    fn sent(&self) -> usize {
        self.dev.texts(CHAT).len()
    }
}

#[test]
fn a_blocked_person_gets_nothing_until_start() {
    let mut person = Person::start();
    person.membership("member", "kicked");
    // Somebody who evidently writes is answered only after they begin anew: that is what Telegram's own button does.
    person.says("/stop");
    assert_eq!(person.ends(), ["reply skipped"]);
    person.says("/start");
    assert_eq!(person.ends(), ["reply skipped", "reply sent"]);
    assert_eq!(person.sent(), 1);
}

#[test]
fn a_blocked_person_gets_nothing_until_my_chat_member() {
    let mut person = Person::start();
    person.membership("member", "kicked");
    person.says("/language");
    person.gets_a_partner();
    assert_eq!((person.ends(), person.sent()), (vec!["reply skipped".to_owned()], 0));
    person.membership("kicked", "member");
    person.says("/language");
    person.gets_a_partner();
    assert_eq!(person.ends(), ["reply skipped", "reply sent", "event sent"]);
}

#[test]
fn the_fallback_happens_once() {
    let mut person = Person::start();
    // Nobody has said yet that the bot is blocked: the refusal does.
    let text = "Forbidden: bot was blocked by the user";
    person.dev.fault(&json!({"chat_id": CHAT, "method": "sendMessage", "status": 403, "description": text}));
    let first = person.gets_a_partner();
    assert_eq!(person.ends(), ["event undeliverable"]);
    assert_eq!(person.notifications(), 1);
    let key: String = value(&person.dev.reader(), "SELECT dedup_key FROM web_notifications", []);
    assert_eq!(key, format!("event:local:{first}:new_partner"));
    // Known to be unreachable, nothing is even queued, and the cabinet is told of the next one.
    person.gets_a_partner();
    assert_eq!((person.ends().len(), person.notifications()), (1, 2));
    // That they are back brings neither of the two again.
    person.says("/start");
    person.gets_a_partner();
    assert_eq!(person.ends(), ["event undeliverable", "reply sent", "event sent"]);
    assert_eq!(person.notifications(), 2);
}

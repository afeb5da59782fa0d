//! Somebody who writes to the bot: updates of the Bot API, queued at a fake as if Telegram had them from a person.

use serde_json::{Value, json};

use super::http::Client;

/// The date of everything that people do here; nothing looks at it but whether it is zero.
const DATE: i64 = 1_790_000_000;

/// A person and their private chat.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) id: i64,
    pub(crate) first_name: String,
}

impl Person {
    pub(crate) fn new(id: i64, first_name: &str) -> Self {
        Self { id, first_name: first_name.to_owned() }
    }

    /// Writes a text; the number of the update.
    pub(crate) fn say(&self, fake: &Client, text: &str) -> u64 {
        post(fake, &self.text(text))
    }

    /// Presses a button of this data on this message; the number of the update. The tap's id is as given.
    pub(crate) fn tap(&self, fake: &Client, tap: &str, message_id: i64, data: &str) -> u64 {
        post(fake, &self.pressed(tap, message_id, data))
    }

    /// Stops the bot.
    pub(crate) fn block(&self, fake: &Client) -> u64 {
        post(fake, &self.membership("member", "kicked"))
    }

    /// The update of a text.
    pub(crate) fn text(&self, text: &str) -> Value {
        json!({"message": {"message_id": 1, "date": DATE, "chat": self.chat(), "from": self.user(), "text": text}})
    }

    /// The update of a pressed button.
    pub(crate) fn pressed(&self, tap: &str, message_id: i64, data: &str) -> Value {
        let on = json!({"message_id": message_id, "date": DATE, "chat": self.chat(), "text": "…"});
        let (from, instance) = (self.user(), self.id.to_string());
        json!({"callback_query": {"id": tap, "from": from, "chat_instance": instance, "message": on, "data": data}})
    }

    fn membership(&self, from: &str, to: &str) -> Value {
        let of = |status: &str| json!({"user": {"id": 1, "is_bot": true, "first_name": "Bot"}, "status": status});
        let (old, new) = (of(from), of(to));
        json!({"my_chat_member": {
            "chat": self.chat(), "from": self.user(), "date": DATE, "old_chat_member": old, "new_chat_member": new,
        }})
    }

    fn chat(&self) -> Value {
        json!({"id": self.id, "type": "private", "first_name": self.first_name})
    }

    fn user(&self) -> Value {
        json!({"id": self.id, "is_bot": false, "first_name": self.first_name, "language_code": "en"})
    }
}

/// Queues an update at the fake; its number.
pub(crate) fn post(fake: &Client, update: &Value) -> u64 {
    let answer = fake.done("/dev/telegram/updates", update);
    answer["update_id"].as_u64().expect("a number")
}

//! What people and the stage do: updates that the fake queues, statements, requests, the clock.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Person, Seen};
use crate::harness::dev::Dev;
use crate::harness::file::column;
use crate::harness::until;

/// Where a conversation is played.
pub(super) struct Stage<'a> {
    dev: &'a Dev,
    people: &'a [Person],
    reader: Connection,
    seen: Seen,
    /// The number of the next message of a person, and of the next tap: far from those that the fake gives.
    number: i64,
    /// The last update that the bot is to fetch.
    last_update: Option<i64>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(dev: &'a Dev, people: &'a [Person]) -> Self {
        let (reader, seen) = (dev.reader(), Seen::default());
        Self { dev, people, reader, seen, number: 1_000_000, last_update: None }
    }

    pub(super) fn look(&mut self) -> String {
        self.seen.look(self.dev, &self.reader, self.people)
    }

    /// `! …`
    pub(super) fn stage(&self, act: &str) {
        let (verb, rest) = act.split_once(' ').unwrap_or((act, ""));
        let rest = rest.replace("{uuid}", self.seen.last_uuid());
        match verb {
            "sql" => self.dev.writer().execute_batch(&rest).unwrap_or_else(|error| panic!("{error}: {rest}")),
            "wait" => self.dev.advance(duration(&rest)),
            "job" => {
                self.dev.run_job(&rest);
            }
            "emit" => {
                self.dev.emit(&parse(&rest));
            }
            "mend" => self.mend(),
            "fault" => self.dev.fault(&parse(&rest)),
            "put" | "post" => {
                let (path, body) = rest.split_once(' ').expect("a path and a body");
                let client = if path.starts_with("/v1") { &self.dev.api } else { &self.dev.http };
                let method = verb.to_uppercase();
                let answer = client.try_call(&method, path, Some(&parse(body))).expect("an answer");
                assert!((200..300).contains(&answer.status), "{act}: {} {}", answer.status, answer.body);
            }
            _ => panic!("the stage cannot do this: {act}"),
        }
    }

    /// `> …`
    pub(super) fn person(&mut self, act: &str) {
        let end = act.find([' ', ':']).unwrap_or(act.len());
        let (name, act) = act.split_at(end);
        let people = self.people;
        let person = people.iter().find(|person| person.name == name).unwrap_or_else(|| panic!("who is {name}?"));
        if let Some(text) = act.strip_prefix(": ") {
            return self.write(person, "message", json!({"text": text}));
        }
        let act = act.trim_start();
        let (verb, rest) = act.split_once(' ').unwrap_or((act, ""));
        match verb {
            "edits:" => {
                let fields = json!({"text": rest, "edit_date": self.date()});
                self.write(person, "edited_message", fields);
            }
            "sends" => self.write(person, "message", thing(rest)),
            "in" => {
                let (chat, text) = rest["group ".len()..].split_once(": ").expect("a group and a text");
                let id: i64 = chat.parse().expect("a group's id");
                let chat = json!({"id": id, "type": "supergroup", "title": "Group"});
                self.write(person, "message", json!({"text": text, "chat": chat}));
            }
            "taps" => self.tap(person, rest),
            "blocks" => {
                let text = "Forbidden: bot was blocked by the user";
                let (chat_id, times) = (person.id, 1_000_000);
                let fault = json!({"chat_id": chat_id, "status": 403, "description": text, "times": times});
                self.dev.fault(&fault);
                let update = self.membership(person, "member", "kicked");
                self.post(&update);
            }
            "unblocks" => {
                self.mend();
                let update = self.membership(person, "kicked", "member");
                self.post(&update);
            }
            _ => panic!("nobody can do this: {name} {act}"),
        }
    }

    /// `"Label" [N times]`, or `data x:y [on an old message]`
    fn tap(&mut self, person: &Person, rest: &str) {
        let newest = self.seen.newest_message(person.id);
        if let Some(data) = rest.strip_prefix("data ") {
            let (data, is_old) = data.strip_suffix(" on an old message").map_or((data, false), |data| (data, true));
            return self.post_tap(person, data, newest, is_old);
        }
        let (label, times) = rest.strip_prefix('"').and_then(|rest| rest.rsplit_once('"')).expect("a label in quotes");
        let (message_id, data) = self.seen.button(person.id, label).unwrap_or_else(|| panic!("no button {label:?}"));
        let times = times.trim().trim_end_matches(" times");
        for _ in 0..times.parse().unwrap_or(1) {
            self.post_tap(person, &data, message_id, false);
        }
    }

    fn post_tap(&mut self, person: &Person, data: &str, message_id: i64, is_old: bool) {
        self.number += 1;
        let date = if is_old { 0 } else { self.date() };
        let mut message = json!({"message_id": message_id, "date": date, "chat": private(person)});
        if !is_old {
            message["from"] = bot();
            message["text"] = json!("…");
        }
        let (id, from) = (self.number.to_string(), user(person));
        let tap = json!({"id": id, "from": from, "chat_instance": "1", "data": data, "message": message});
        self.post(&json!({"callback_query": tap}));
    }

    fn membership(&self, person: &Person, from: &str, to: &str) -> Value {
        let of = |status: &str| json!({"user": bot(), "status": status, "until_date": 0});
        let (old, new, date) = (of(from), of(to), self.date());
        json!({"my_chat_member": {
            "chat": private(person), "from": user(person), "date": date,
            "old_chat_member": old, "new_chat_member": new,
        }})
    }

    /// A message of a person with these fields; a chat among them is where it was written.
    fn write(&mut self, person: &Person, kind: &str, fields: Value) {
        self.number += 1;
        let mut message = json!({
            "message_id": self.number, "date": self.date(), "chat": private(person), "from": user(person),
        });
        for (name, value) in fields.as_object().expect("fields") {
            message[name] = value.clone();
        }
        self.post(&json!({kind: message}));
    }

    /// Whatever was armed to fail is accepted again.
    fn mend(&self) {
        self.dev.http.try_call("DELETE", "/dev/telegram/faults", None).expect("an answer");
    }

    fn date(&self) -> i64 {
        self.dev.now() / 1000
    }

    fn post(&mut self, update: &Value) {
        let posted = self.dev.http.done("/dev/telegram/updates", update);
        if posted["queued"] == true {
            self.last_update = posted["update_id"].as_i64();
        }
    }

    /// What the send queue has to say, for whoever looks for the reason of a difference.
    pub(super) fn queue(&self) -> String {
        let sql =
            "SELECT id || ' ' || dedup_key || ' ' || status || ' ' || attempts || ' ' || COALESCE(error_code, '-')
                       || ' ' || COALESCE('edits ' || edit_message_id, '-')
                   FROM telegram_messages ORDER BY id";
        column::<String>(&self.reader, sql, []).join("\n")
    }

    /// Waits until everything that was done has been fetched, handled and sent, as far as it is due.
    pub(super) fn rest(&self) {
        let sql = "
            SELECT (:update IS NULL OR EXISTS (SELECT 1 FROM telegram_updates WHERE update_id = :update))
               AND NOT EXISTS (SELECT 1 FROM telegram_updates WHERE status = 'pending')
               AND NOT EXISTS (SELECT 1 FROM bot_event_outbox WHERE processed_at IS NULL AND dead_lettered_at IS NULL
                                AND COALESCE(next_retry_at, 0) <= :now)
               AND NOT EXISTS (SELECT 1 FROM telegram_messages WHERE status = 'sending'
                                OR status = 'pending' AND due_at <= :soon)";
        until("everything that was done is answered", || {
            // A send that failed is tried again within seconds; what waits for longer is meant to.
            let (now, update) = (self.dev.now(), self.last_update);
            let params = rusqlite::named_params! { ":update": update, ":now": now, ":soon": now + 10_000 };
            let is_at_rest: bool = self.reader.query_row(sql, params, |row| row.get(0)).ok()?;
            is_at_rest.then_some(())
        });
    }
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// `25h`, `30m`, `61s`, `2d`
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => panic!("how long is {text}?"),
    };
    Duration::from_secs(number.parse::<u64>().expect("a number") * seconds)
}

fn thing(name: &str) -> Value {
    let file = json!({"file_id": "f", "file_unique_id": "u", "file_size": 1});
    match name {
        "sticker" => {
            json!({"sticker": {"file_id": "f", "file_unique_id": "u", "type": "regular", "width": 1, "height": 1}})
        }
        "photo" => json!({"photo": [file], "caption": "/start"}),
        "voice" => json!({"voice": file}),
        "contact" => json!({"contact": {"phone_number": "+70000000000", "first_name": "A"}}),
        _ => panic!("what is {name}?"),
    }
}

fn user(person: &Person) -> Value {
    let mut user = json!({"id": person.id, "is_bot": false, "first_name": person.first_name});
    if let Some(username) = &person.username {
        user["username"] = json!(username);
    }
    if let Some(lang) = &person.lang {
        user["language_code"] = json!(lang);
    }
    user
}

fn private(person: &Person) -> Value {
    json!({"id": person.id, "type": "private", "first_name": person.first_name})
}

fn bot() -> Value {
    json!({"id": 1, "is_bot": true, "first_name": "Bot", "username": "the_bot"})
}

//! What people see: messages and changes of messages as the fake accepted them, written as text.

use std::collections::HashMap;
use std::fmt::Write;

use rusqlite::Connection;
use serde_json::Value;

use super::Person;
use crate::harness::dev::Dev;

/// What has been looked at so far.
#[derive(Default)]
pub(super) struct Seen {
    /// The last message that was looked at.
    ordinal: u64,
    /// The last row of the send queue that was looked at.
    row: i64,
    /// By chat and number, what each message says now: its rows of buttons.
    keyboards: HashMap<(i64, i64), Value>,
    last_uuid: String,
}

impl Seen {
    /// What came since the last look, person by person; empty if nothing did.
    pub(super) fn look(&mut self, dev: &Dev, reader: &Connection, people: &[Person]) -> String {
        let path = format!("/dev/telegram/messages?after={}", self.ordinal);
        let messages = dev.http.get(&path).json()["messages"].as_array().expect("a list").clone();
        let mut by_chat: Vec<(i64, String)> = Vec::new();
        for message in &messages {
            let (chat, shown) = (number(message, "chat_id"), self.take(message, people));
            match by_chat.iter_mut().find(|(of, _)| *of == chat) {
                Some((_, all)) => all.push_str(&shown),
                None => by_chat.push((chat, shown)),
            }
        }
        for chat in self.changed_rows(reader) {
            if by_chat.iter().all(|(of, _)| *of != chat) {
                by_chat.push((chat, format!("< {}, unchanged\n", name_of(people, chat))));
            }
        }
        // Who is first served depends on the moment; who comes first here does not.
        by_chat.sort_by_key(|(chat, _)| people.iter().position(|person| person.id == *chat).unwrap_or(usize::MAX));
        by_chat.into_iter().map(|(_, shown)| shown).collect()
    }

    fn take(&mut self, message: &Value, people: &[Person]) -> String {
        self.ordinal = message["ordinal"].as_u64().expect("an ordinal");
        let (chat, id) = (number(message, "chat_id"), number(message, "message_id"));
        let keyboard = message["reply_markup"]["inline_keyboard"].clone();
        let mut shown = format!("< {}", name_of(people, chat));
        if message["method"] == "editMessageText" {
            shown.push_str(", edited");
        }
        shown.push('\n');
        for line in marked(message).split('\n') {
            writeln!(shown, "  | {}", self.without_uuids(line)).expect("into a text");
        }
        for row in keyboard.as_array().into_iter().flatten() {
            let row = row.as_array().expect("a row").iter().map(button);
            let row = row.map(|(label, does)| format!("[{label} · {}]", self.without_uuids(does))).collect::<Vec<_>>();
            writeln!(shown, "  {}", row.join(" ")).expect("into a text");
        }
        self.keyboards.insert((chat, id), keyboard);
        shown
    }

    /// The chats in which a message was changed, or was to be, since the last look.
    fn changed_rows(&mut self, reader: &Connection) -> Vec<i64> {
        let sql = "SELECT id, chat_id FROM telegram_messages
                   WHERE id > ?1 AND status = 'sent' AND edit_message_id IS NOT NULL ORDER BY id";
        let mut statement = reader.prepare_cached(sql).expect("the queue can be read");
        let rows = statement.query_map([self.row], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let rows: Vec<(i64, i64)> = rows.and_then(Iterator::collect).expect("the queue can be read");
        self.row = reader
            .query_row("SELECT COALESCE(MAX(id), 0) FROM telegram_messages", [], |row| row.get(0))
            .expect("the queue can be read");
        rows.into_iter().map(|(_, chat)| chat).collect()
    }

    /// The newest message of the bot in this chat; 1 if there is none.
    pub(super) fn newest_message(&self, chat: i64) -> i64 {
        self.keyboards.keys().filter(|(of, _)| *of == chat).map(|(_, id)| *id).max().unwrap_or(1)
    }

    /// The newest button of this label: the message it is on, and its data.
    pub(super) fn button(&self, chat: i64, label: &str) -> Option<(i64, String)> {
        let mut messages: Vec<_> = self.keyboards.iter().filter(|((of, _), _)| *of == chat).collect();
        messages.sort_by_key(|((_, id), _)| std::cmp::Reverse(*id));
        messages.into_iter().find_map(|((_, id), keyboard)| {
            let rows = keyboard.as_array()?.iter().filter_map(Value::as_array).flatten();
            let found =
                rows.filter(|button| button["text"] == label).find_map(|button| button["callback_data"].as_str());
            found.map(|data| (*id, data.to_owned()))
        })
    }

    /// The last UUID that was shown.
    pub(super) fn last_uuid(&self) -> &str {
        &self.last_uuid
    }

    fn without_uuids(&mut self, text: &str) -> String {
        let mut rest = text;
        let mut out = String::new();
        while let Some(at) = (0..rest.len()).find(|at| rest.get(*at..*at + 36).is_some_and(is_uuid)) {
            out.push_str(&rest[..at]);
            out.push_str("{uuid}");
            self.last_uuid = rest[at..at + 36].to_owned();
            rest = &rest[at + 36..];
        }
        out + rest
    }
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.bytes()
        .enumerate()
        .all(|(at, byte)| if dashes.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

fn number(message: &Value, name: &str) -> i64 {
    message[name].as_i64().expect("a number")
}

fn name_of(people: &[Person], chat: i64) -> String {
    people.iter().find(|person| person.id == chat).map_or_else(|| chat.to_string(), |person| person.name.clone())
}

fn button(button: &Value) -> (&str, &str) {
    let does = button["callback_data"].as_str().or_else(|| button["url"].as_str());
    (button["text"].as_str().expect("a label"), does.expect("a button that does something"))
}

/// The visible text with its entities as tags. Their places are counted in UTF-16 units.
fn marked(message: &Value) -> String {
    let mut marks: Vec<(u64, i64, String)> = Vec::new();
    for entity in message["entities"].as_array().into_iter().flatten() {
        let tag = match entity["type"].as_str().expect("a type") {
            "bold" => "b",
            "italic" => "i",
            "text_link" => "a",
            other => other,
        };
        let (start, length) = (entity["offset"].as_u64().unwrap(), entity["length"].as_u64().unwrap());
        let outermost_first = -i64::try_from(length).unwrap();
        marks.push((start, outermost_first, format!("<{tag}>")));
        // What ends here ends before anything begins, the innermost first.
        marks.push((start + length, i64::MIN + i64::try_from(length).unwrap(), format!("</{tag}>")));
    }
    marks.sort();
    let mut marks = marks.into_iter().peekable();
    let (mut out, mut at) = (String::new(), 0);
    for character in message["text"].as_str().expect("a text").chars() {
        while let Some((_, _, mark)) = marks.next_if(|(place, ..)| *place <= at) {
            out.push_str(&mark);
        }
        out.push(character);
        at += character.len_utf16() as u64;
    }
    marks.for_each(|(_, _, mark)| out.push_str(&mark));
    out
}

//! An event as the values of a content block: what every event has, and the fields of its payload that are a text, a number
//! or a switch. A field that is null is there and empty; one that is a list or an object is not there.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::chat::plain_text;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Tx;
use crate::onboarding;
use crate::onboarding::content::{Content, Values};
use crate::outbox::consumer::{Refusal, StoredEvent};

/// Characters of a value that are shown: a whole payload's length would make the message undeliverable.
const LONGEST_VALUE: usize = 1_000;
/// UTF-16 units of a message that Telegram takes (Bot API, sendMessage), counted after its formatting is read.
const LONGEST_TEXT: usize = 4_096;

/// The block's text for this event.
///
/// # Errors
/// A code: the payload cannot be taken apart, the block names what the event does not have, or the text is none that can
/// be sent.
pub(super) fn render(content: &Content, tx: &Tx<'_>, block: &str, event: &StoredEvent) -> Result<String, Refusal> {
    sendable(content.render(tx, block, content.default_lang(), &values(event)?))
}

/// The same of the shipped block, for whoever has no transaction.
///
/// # Errors
/// As [`render`].
pub(super) fn render_shipped(content: &Content, block: &str, event: &StoredEvent) -> Result<String, Refusal> {
    sendable(content.render_shipped(block, content.default_lang(), &values(event)?))
}

fn sendable(text: Result<String, onboarding::Error>) -> Result<String, Refusal> {
    let text = text.map_err(|error| match error {
        onboarding::Error::Store(error) => error.into(),
        _ => Refusal::Code("block_not_rendered"),
    })?;
    let seen = plain_text(&text);
    match seen.encode_utf16().count() {
        _ if seen.trim().is_empty() => Err(Refusal::Code("text_empty")),
        length if length > LONGEST_TEXT => Err(Refusal::Code("text_too_long")),
        _ => Ok(text),
    }
}

/// The event's own values are set last: a payload that uses their names does not change what they mean.
fn values(event: &StoredEvent) -> Result<Values, Refusal> {
    let unreadable = |_| Refusal::Code("payload_unreadable");
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&event.payload).map_err(unreadable)?;
    let mut values = Values::none();
    for (name, value) in fields {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'"') => {
                let text: String = serde_json::from_str(text).map_err(unreadable)?;
                values.set(&name, &shortened(&text));
            }
            Some(b't' | b'f') => values.set_switch(&name, text == "true"),
            Some(b'n') => values.set(&name, ""),
            Some(b'{' | b'[') => {}
            // A number as it came: no other notation, and none is too large.
            _ => values.set(&name, &shortened(text)),
        }
    }
    values.set("type", &event.event_type);
    values.set("event_id", &event.event_id);
    values.set("aggregate_type", &shortened(&event.aggregate_type));
    values.set("aggregate_id", &shortened(&event.aggregate_id));
    values.set("occurred_at", &rfc3339(event.occurred_at));
    Ok(values)
}

/// A value as it fits into a message: lines stay, what else steers a screen goes.
fn shortened(text: &str) -> String {
    let mut characters = text.chars().filter(|character| *character == '\n' || !character.is_control());
    let mut short: String = characters.by_ref().take(LONGEST_VALUE).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

//! What an event must be to be stored. No stricter than the schema needs, but where consumers and receivers rely on it.

use uuid::Uuid;

use super::{MOST_EVENTS, NewEvent};
use crate::outbox::{Error, SAYABLE, json};

/// The longest type, aggregate and key; in characters.
const LONGEST_TYPE: usize = 128;
const LONGEST_AGGREGATE_TYPE: usize = 128;
const LONGEST_AGGREGATE_ID: usize = 255;
const LONGEST_KEY: usize = 255;
/// The longest data, in characters, as the schema counts it.
const LONGEST_DATA: usize = 64 * 1024;
/// The deepest data: what the parsers of receivers take without being told to.
const DEEPEST_DATA: usize = 100;

/// An event that may be stored.
#[derive(Clone, Debug)]
pub(crate) struct Checked<'e> {
    /// The id in the one form in which it is stored.
    pub(crate) event_id: Option<String>,
    pub(crate) event: &'e NewEvent,
    /// The data without white space around it.
    pub(crate) payload: &'e str,
}

/// Whether a type can be called so: words of `a-z0-9_` with dots between them.
pub(crate) fn is_type_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= LONGEST_TYPE && name.split('.').all(|word| !word.is_empty() && word.bytes().all(is_fit))
}

pub(super) fn key(key: &str) -> Result<(), Error> {
    if (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Ok(());
    }
    Err(Error::invalid_request("Idempotency-Key", "must be 1 to 255 printable ASCII characters"))
}

pub(super) fn count(events: usize) -> Result<(), Error> {
    if (1..=MOST_EVENTS).contains(&events) {
        return Ok(());
    }
    Err(Error::invalid_request("events", "must be 1 to 1000 events"))
}

pub(super) fn event(index: usize, event: &NewEvent) -> Result<Checked<'_>, Error> {
    let invalid = |field, what| Err(Error::invalid(index, field, what));
    if !is_type_name(&event.event_type) {
        return invalid("type", "must be words of a-z, 0-9 and _ with dots between them, at most 128 characters");
    }
    if event.version < 1 {
        return invalid("version", "must be at least 1");
    }
    if !is_text(&event.aggregate_type, LONGEST_AGGREGATE_TYPE) {
        return invalid("aggregate.type", "must be 1 to 128 characters without control characters");
    }
    if !is_text(&event.aggregate_id, LONGEST_AGGREGATE_ID) {
        return invalid("aggregate.id", "must be 1 to 255 characters without control characters");
    }
    if event.occurred_at.is_some_and(|at| !SAYABLE.contains(&at)) {
        return invalid("occurred_at", "must be in the years 0001 to 9999");
    }
    let event_id = event.event_id.as_deref().map(|text| uuid(index, text)).transpose()?;
    let payload = data(index, &event.payload)?;
    Ok(Checked { event_id, event, payload })
}

fn is_text(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.chars().count() <= longest && !text.chars().any(char::is_control)
}

/// In the form with hyphens only, and stored in lower case: two spellings of one id are one event.
fn uuid(index: usize, text: &str) -> Result<String, Error> {
    let parsed = Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
    parsed.map(|id| id.to_string()).ok_or_else(|| Error::invalid(index, "event_id", "must be a UUID"))
}

fn data(index: usize, text: &str) -> Result<&str, Error> {
    let invalid = |what| Err(Error::invalid(index, "data", what));
    let Some(text) = json::object(text) else { return invalid("must be a JSON object") };
    if text.len() > LONGEST_DATA && text.chars().count() > LONGEST_DATA {
        return invalid("must be at most 65536 characters");
    }
    if json::is_deeper(text, DEEPEST_DATA) {
        return invalid("must be nested no deeper than 100 levels");
    }
    Ok(text)
}

//! A row that is due, as far as it can be read. Another program may have written anything that the schema lets in, or
//! more with its checks switched off: what no consumer could take is refused here, by the same rules as a refusal of theirs.

use super::acceptances::Acceptances;
use crate::kernel::clock::UnixMs;
use crate::kernel::tenant::TenantId;
use crate::outbox::consumer::StoredEvent;
use crate::outbox::{SAYABLE, json};

/// The columns of a row, as they are; `None` for a text in another encoding.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) row: i64,
    pub(crate) tenant: Option<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) version: i64,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) occurred_at: UnixMs,
    pub(crate) payload: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) next_attempt_at: Option<UnixMs>,
    pub(crate) acceptances: Option<String>,
}

/// A row that is due.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) row: i64,
    pub(crate) attempts: i64,
    pub(crate) next_attempt_at: Option<UnixMs>,
    pub(crate) acceptances: Acceptances,
    /// The event, or the code of why it is none.
    pub(crate) event: Result<StoredEvent, &'static str>,
}

impl From<Columns> for Candidate {
    fn from(mut columns: Columns) -> Self {
        let acceptances = Acceptances::read(columns.acceptances.take().unwrap_or_default());
        let Columns { row, attempts, next_attempt_at, .. } = columns;
        Self { row, attempts, next_attempt_at, acceptances, event: event(columns) }
    }
}

fn event(columns: Columns) -> Result<StoredEvent, &'static str> {
    let readable = |text: Option<String>| text.ok_or("encoding");
    let tenant = TenantId::parse(&readable(columns.tenant)?).ok_or("tenant")?;
    let event_type = readable(columns.event_type)?;
    if !is_type(&event_type) {
        return Err("type");
    }
    let payload = readable(columns.payload)?;
    let object = json::object(&payload).ok_or("data")?;
    Ok(StoredEvent {
        row: columns.row,
        tenant,
        event_id: readable(columns.event_id)?,
        event_type,
        version: columns.version,
        aggregate_type: readable(columns.aggregate_type)?,
        aggregate_id: readable(columns.aggregate_id)?,
        // Consumers say it in RFC 3339. A number that is no time at all is nearly one, and the event is not lost for it.
        occurred_at: columns.occurred_at.clamp(*SAYABLE.start(), *SAYABLE.end()),
        payload: if object.len() == payload.len() { payload } else { object.to_owned() },
        attempts: columns.attempts,
    })
}

/// As the schema has it. Its check ends at a zero byte.
fn is_type(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(is_fit)
}

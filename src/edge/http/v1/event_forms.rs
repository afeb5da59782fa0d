//! Events as they travel: what is posted, and what is shown of what is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::time::Instant;
use crate::edge::http::decode::{AtMost, Object, Whole};
use crate::kernel::clock::rfc3339;
use crate::outbox::inspect::{EventRow, EventStatus, WholeEvent};
use crate::outbox::{MOST_EVENTS, NewEvent};

/// An event to be stored.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewEvent)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEventBody {
    /// Words of `a-z0-9_` with dots between them; not one of the installation's own.
    #[schema(min_length = 1, max_length = 128, pattern = "^[a-z0-9_]+(\\.[a-z0-9_]+)*$")]
    r#type: String,
    /// The version of its fields.
    #[schema(value_type = i64, minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    version: Whole,
    #[schema(inline = false, value_type = AggregateBody)]
    aggregate: Object<AggregateBody>,
    /// When it happened; now, if nothing is said.
    #[serde(default)]
    occurred_at: Option<Instant>,
    /// An object of at most 64 KiB as it is written, kept byte for byte and nested no deeper than 100 levels.
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    data: Data,
    /// Its id. An event of a known id is not stored again; a new one is made for an event without.
    #[schema(format = Uuid)]
    #[serde(default)]
    event_id: Option<String>,
}

/// What an event is about.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Aggregate)]
#[serde(deny_unknown_fields)]
pub(super) struct AggregateBody {
    /// The kind.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    r#type: String,
    /// Which one of that kind.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    id: String,
}

/// The text of an object, as it came.
#[derive(Debug)]
struct Data(Box<RawValue>);

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(from)?;
        match text.get().starts_with('{') {
            true => Ok(Self(text)),
            false => Err(serde::de::Error::custom("must be an object")),
        }
    }
}

/// Events to be stored together.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewEvents)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchBody {
    /// All of them are stored, or none.
    #[schema(value_type = Vec<NewEventBody>, min_items = 1, max_items = 1000)]
    events: AtMost<MOST_EVENTS, Object<NewEventBody>>,
}

impl From<NewEventBody> for NewEvent {
    fn from(body: NewEventBody) -> Self {
        let Object(AggregateBody { r#type, id }) = body.aggregate;
        Self {
            event_id: body.event_id,
            event_type: body.r#type,
            version: body.version.0,
            aggregate_type: r#type,
            aggregate_id: id,
            occurred_at: body.occurred_at.map(|instant| instant.0),
            payload: Box::<str>::from(body.data.0).into(),
        }
    }
}

impl From<BatchBody> for Vec<NewEvent> {
    fn from(body: BatchBody) -> Self {
        body.events.0.into_iter().map(|Object(event)| event.into()).collect()
    }
}

/// The event that was stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PostedEvent)]
pub(super) struct PostedBody {
    /// Its id: what receivers know it by.
    #[schema(format = Uuid)]
    pub(super) event_id: String,
}

/// The events that were stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PostedEvents)]
pub(super) struct PostedBatchBody {
    /// Their ids, in the order of the request.
    pub(super) event_ids: Vec<String>,
}

/// An event as lists show it: everything but its data.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventBody {
    /// Its id.
    event_id: String,
    /// The dotted type.
    r#type: String,
    /// The version of its fields.
    #[schema(minimum = 1)]
    version: i64,
    aggregate: AggregateBody,
    /// When it happened.
    #[schema(format = DateTime)]
    occurred_at: String,
    /// When it was stored.
    #[schema(format = DateTime)]
    created_at: String,
    /// Whether every consumer has accepted it, or it was given up.
    #[schema(schema_with = event_status)]
    status: &'static str,
    /// Hand-overs that a consumer refused.
    #[schema(minimum = 0)]
    attempts: i64,
    /// When it is handed over again, if that has a time.
    #[schema(format = DateTime)]
    next_attempt_at: Option<String>,
    /// Who refused it last, and why: `consumer: code`.
    last_error: Option<String>,
    /// When the last consumer had accepted it.
    #[schema(format = DateTime)]
    published_at: Option<String>,
    /// When it was given up.
    #[schema(format = DateTime)]
    failed_at: Option<String>,
    /// Which consumers have accepted it, and when.
    acceptances: BTreeMap<String, String>,
}

/// The words of [`EventStatus`].
pub(super) fn event_status() -> utoipa::openapi::schema::Object {
    super::words(&EventStatus::ALL.map(EventStatus::as_str))
}

impl From<EventRow> for EventBody {
    fn from(row: EventRow) -> Self {
        Self {
            event_id: row.event_id,
            r#type: row.event_type,
            version: row.version,
            aggregate: AggregateBody { r#type: row.aggregate.aggregate_type, id: row.aggregate.id },
            occurred_at: rfc3339(row.occurred_at),
            created_at: rfc3339(row.created_at),
            status: row.status.as_str(),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at.map(rfc3339),
            last_error: row.last_error,
            published_at: row.published_at.map(rfc3339),
            failed_at: row.failed_at.map(rfc3339),
            acceptances: row.acceptances.into_iter().map(|(name, at)| (name, rfc3339(at))).collect(),
        }
    }
}

/// An event with its data.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WholeEvent)]
pub(super) struct WholeEventBody {
    #[serde(flatten)]
    event: EventBody,
    /// The text that came, byte for byte.
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    data: Box<RawValue>,
}

impl From<WholeEvent> for WholeEventBody {
    fn from(whole: WholeEvent) -> Self {
        Self { event: whole.event.into(), data: whole.data }
    }
}

//! The forms of `/bot/events` on the wire, and what of them is checked where they are read.

use std::borrow::Cow;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, Object, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::decode::{AtMost, Whole, check_text};
use super::error::{Fault, Problem};
use crate::backend::{Ack, NewBotEvent, Retry};
use crate::kernel::contract::{BotEvent, BotEventType};

/// The most ids of one list of an acknowledgement: a page of the largest size.
const LONGEST_LIST: usize = 500;
/// Bytes of a payload, as it is stored (contract).
const LARGEST_PAYLOAD: usize = 16 << 10;
/// Levels of a payload. A page wraps it in three more, and a client's parser must still take that (ours stops at 128).
const DEEPEST_PAYLOAD: usize = 32;
/// Characters of a dedup key, as the schema has it.
const LONGEST_KEY: usize = 200;

/// A page of open events.
#[derive(Serialize, ToSchema)]
#[schema(as = PendingBotEvents)]
pub(super) struct PendingBody {
    /// Of one subject in their order.
    #[schema(value_type = Vec<BotEventForm>)]
    pub(super) events: Vec<BotEvent>,
}

/// An event that waits for the bot.
#[derive(ToSchema)]
#[schema(as = BotEvent, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the contract's own type writes")]
struct BotEventForm {
    /// Its place in the outbox; the order within a subject.
    id: i64,
    /// One of the contract's types, or a word that another program has inserted.
    event_type: String,
    /// The chat, as text, since it does not fit a JavaScript number.
    #[schema(required, pattern = "^-?[0-9]+$")]
    telegram_id: Option<String>,
    /// The member.
    #[schema(required)]
    magnet_uid: Option<i64>,
    /// The type's own fields.
    #[schema(required)]
    payload: Option<Map<String, Value>>,
    /// When it was emitted.
    #[schema(format = DateTime)]
    created_at: String,
    /// Failed attempts so far.
    #[schema(minimum = 0)]
    attempts: i64,
}

/// How many events became what.
#[derive(ToSchema)]
#[schema(as = AcknowledgedBotEvents, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the domain's own type writes")]
pub(super) struct AcknowledgedForm {
    /// Handled, now or before.
    processed: u64,
    /// To come again later.
    retried: u64,
    /// Given up after their last attempt.
    abandoned: u64,
    /// Given up, and kept for a person to look at.
    dead_lettered: u64,
    /// Of no event that is there.
    unknown: u64,
}

/// The event that was emitted, or is known by its dedup key.
#[derive(Serialize, ToSchema)]
#[schema(as = EmittedBotEvent)]
pub(super) struct EmittedBody {
    /// Its place in the outbox.
    #[schema(minimum = 1)]
    pub(super) id: i64,
}

/// An id that a page can have shown.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(as = BotEventId, minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
#[serde(try_from = "Whole")]
struct EventId(i64);

impl TryFrom<Whole> for EventId {
    type Error = &'static str;

    fn try_from(Whole(id): Whole) -> Result<Self, Self::Error> {
        if id > 0 { Ok(Self(id)) } else { Err("must be above 0") }
    }
}

/// What became of the events of a page. A list that is not there is empty.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BotEventsAck)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AckBody {
    /// Those that were handled.
    #[serde(default)]
    #[schema(value_type = Vec<EventId>, max_items = 500)]
    processed_ids: AtMost<LONGEST_LIST, EventId>,
    /// Those that failed.
    #[serde(default)]
    #[schema(value_type = Vec<RetryForm>, max_items = 500)]
    retry_ids: AtMost<LONGEST_LIST, RetryBody>,
}

impl From<AckBody> for Ack {
    fn from(body: AckBody) -> Self {
        let retry = |retry: RetryBody| Retry { id: retry.id.0, error: retry.error };
        Self {
            processed: body.processed_ids.0.into_iter().map(|id| id.0).collect(),
            retry: body.retry_ids.0.into_iter().map(retry).collect(),
        }
    }
}

/// A failed event: its id, or `{"id", "error"}`.
#[derive(Debug)]
struct RetryBody {
    id: EventId,
    error: Option<String>,
}

impl<'de> Deserialize<'de> for RetryBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// Not an untagged enum: that forgets where in the body the fault is.
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RetryBody;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("an id, or an object with `id` and `error`")
            }

            fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<RetryBody, E> {
                Ok(RetryBody { id: EventId::try_from(Whole(id)).map_err(E::custom)?, error: None })
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<RetryBody, E> {
                self.visit_i64(Whole::deserialize(id.into_deserializer())?.0)
            }

            fn visit_f64<E: serde::de::Error>(self, id: f64) -> Result<RetryBody, E> {
                self.visit_i64(Whole::of_double(id)?.0)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RetryBody, A::Error> {
                let WithReason { id, error } = WithReason::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RetryBody { id, error })
            }
        }

        from.deserialize_any(Either)
    }
}

/// A failed event with what is kept of the reason.
#[derive(Deserialize, ToSchema)]
#[schema(as = BotEventFailure)]
#[serde(deny_unknown_fields)]
struct WithReason {
    id: EventId,
    #[serde(default)]
    error: Option<String>,
}

/// A failed event, with or without a reason.
#[derive(ToSchema)]
#[schema(as = BotEventRetry)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what the reader of a failed event takes")]
enum RetryForm {
    Id(EventId),
    WithReason(WithReason),
}

/// The fields of an event to be emitted.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BotEventFields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EmitBody {
    /// One of the contract's types.
    #[schema(schema_with = event_types)]
    event_type: String,
    #[serde(default)]
    telegram_id: Option<ChatId>,
    #[serde(default)]
    magnet_uid: Option<MemberUid>,
    /// The type's own fields: at most 16 KiB as JSON, and 32 levels deep.
    #[serde(default)]
    payload: Map<String, Value>,
    /// Names the cause; an event of a known cause is not stored again.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    dedup_key: Option<String>,
}

/// [`EmitBody`] with what no single field can say: it is about a chat, or a member, or both.
pub(super) struct AboutSomebody;

impl ToSchema for AboutSomebody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewBotEvent")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((EmitBody::name().into_owned(), EmitBody::schema()));
        EmitBody::schemas(schemas);
    }
}

impl PartialSchema for AboutSomebody {
    fn schema() -> RefOr<Schema> {
        let has = |field: &str, kind| {
            let there = ObjectBuilder::new().schema_type(kind).build();
            ObjectBuilder::new().property(field, there).required(field).build()
        };
        let subject = AnyOfBuilder::new().item(has("telegramId", Type::String)).item(has("magnetUid", Type::Integer));
        let form = Ref::from_schema_name(EmitBody::name());
        Schema::AllOf(AllOfBuilder::new().item(form).item(subject).build()).into()
    }
}

fn event_types() -> Object {
    let words = BotEventType::ALL.map(BotEventType::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// A chat's id: text, since it may not fit a JavaScript number, and a number there would already be another one.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = "^-?([1-8][0-9]{18}|[1-9][0-9]{0,17})$")]
#[serde(try_from = "String")]
struct ChatId(i64);

impl TryFrom<String> for ChatId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // One chat has one spelling: no plus sign, no leading zeros.
        match text.parse::<i64>() {
            Ok(id) if id != 0 && id.to_string() == text => Ok(Self(id)),
            _ => Err("must be the digits of a chat's id, with a minus for a group"),
        }
    }
}

/// A member's id.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
#[serde(try_from = "Whole")]
pub(super) struct MemberUid(pub(super) i64);

impl TryFrom<Whole> for MemberUid {
    type Error = &'static str;

    fn try_from(Whole(uid): Whole) -> Result<Self, Self::Error> {
        if uid > 0 { Ok(Self(uid)) } else { Err("must be above 0") }
    }
}

impl EmitBody {
    pub(super) fn check(self) -> Result<NewBotEvent, Problem> {
        let known = BotEventType::ALL.map(BotEventType::as_str);
        let event_type = BotEventType::parse(&self.event_type).ok_or_else(|| Problem::unknown_event_type(&known))?;
        let mut faults = Vec::new();
        faults.extend(check_payload(&self.payload).err());
        let key = self.dedup_key.as_deref().map_or(Ok(()), |key| check_text(key, LONGEST_KEY, &[]));
        faults.extend(key.err().map(|why| Fault::new("dedupKey", why)));
        if !faults.is_empty() {
            return Err(Problem::invalid_body(faults));
        }
        Ok(NewBotEvent {
            event_type,
            telegram_id: self.telegram_id.map(|id| id.0),
            magnet_uid: self.magnet_uid.map(|uid| uid.0),
            payload: self.payload,
            dedup_key: self.dedup_key,
        })
    }
}

fn check_payload(payload: &Map<String, Value>) -> Result<(), Fault> {
    let size = serde_json::to_string(payload).map_or(usize::MAX, |text| text.len());
    if size > LARGEST_PAYLOAD {
        return Err(Fault::new("payload", format!("is {size} bytes of JSON; at most {LARGEST_PAYLOAD} are taken")));
    }
    let depth = 1 + payload.values().map(depth).max().unwrap_or(0);
    if depth > DEEPEST_PAYLOAD {
        return Err(Fault::new("payload", format!("is {depth} levels deep; at most {DEEPEST_PAYLOAD} are taken")));
    }
    Ok(())
}

/// Levels of nesting; the parser has bounded them.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

//! `/bot/events`: the outbox contract over HTTP. Fetching is a read, an acknowledgement can be repeated, and emitting
//! can be repeated under a dedup key.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::decode::{AtMost, JsonBody, NoQuery, check_text, parameters};
use super::error::{Fault, Problem};
use super::finish::see_through;
use super::openapi::refusals;
use super::{Consumer, HttpState};
use crate::backend::page::Served;
use crate::backend::{self, Ack, Acknowledged, DEFAULT_PAGE, Emitted, LARGEST_PAGE, NewBotEvent, Retry};
use crate::kernel::contract::{BotEvent, BotEventType, TAKES_REASONS};
use crate::kernel::store::Db;

/// The most ids of one list of an acknowledgement: a page of the largest size.
const LONGEST_LIST: usize = 500;
/// Bytes of a payload, as it is stored (contract).
const LARGEST_PAYLOAD: usize = 16 << 10;
/// Levels of a payload. A page wraps it in three more, and a client's parser must still take that (ours stops at 128).
const DEEPEST_PAYLOAD: usize = 32;
/// Characters of a dedup key, as the schema has it.
const LONGEST_KEY: usize = 200;

/// Keeps what this process consumes from being fetched too: two consumers would break the order.
pub(super) async fn refuse_while_consumed_here(
    State(state): State<Arc<HttpState>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match state.consumer {
        Consumer::ThisProcess => Err(Problem::events_are_consumed_here()),
        Consumer::Fetching => Ok(next.run(request).await),
    }
}

/// How many events a page is to hold.
pub(super) struct PageLimit(i64);

impl FromRequestParts<Arc<HttpState>> for PageLimit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [limit] = parameters(&parts.uri, ["limit"])?;
        let Some(text) = limit else { return Ok(Self(DEFAULT_PAGE)) };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) || text.bytes().all(|byte| byte == b'0') {
            return Err(Problem::bad_query(Fault::new("limit", "must be a whole number above 0")));
        }
        // Only a number too large for 64 bits fails to parse now, and that is above the cap.
        Ok(Self(text.parse().map_or(LARGEST_PAGE, |number: i64| number.min(LARGEST_PAGE))))
    }
}

#[derive(Serialize)]
pub(super) struct PendingBody {
    events: Vec<BotEvent>,
}

/// `GET /bot/events/pending`: the next page, without taking it.
pub(super) async fn pending(
    State(state): State<Arc<HttpState>>,
    PageLimit(limit): PageLimit,
) -> Result<([(&'static str, &'static str); 1], Json<PendingBody>), Problem> {
    let page = state.db.read(move |tx| backend::page::pending(tx, limit)).await?;
    let events = page.into_iter().map(Served::into_event).collect();
    Ok(([(TAKES_REASONS, "1")], Json(PendingBody { events })))
}

/// `POST /bot/events/ack`: what became of the events of a page.
pub(super) async fn ack(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<AckBody>,
) -> Result<Json<Acknowledged>, Problem> {
    settle(state.db.clone(), body.into(), state.limits.request).await.map(Json)
}

/// The log gets its line even if the client goes away in the middle.
async fn settle(db: Db, ack: Ack, limit: Duration) -> Result<Acknowledged, Problem> {
    let settling = async move {
        let done = db.settle(move |tx| backend::acknowledge(tx, &ack)).await?;
        done.report();
        Ok(done)
    };
    see_through(limit, settling).await.unwrap_or_else(|| Err(Problem::too_slow()))
}

/// The event that was emitted, or is known by its dedup key.
#[derive(Serialize, ToSchema)]
#[schema(as = EmittedBotEvent)]
pub(super) struct EmittedBody {
    /// Its place in the outbox.
    #[schema(minimum = 1)]
    id: i64,
}

/// Emits an event for the bot, once per dedup key.
#[utoipa::path(
    post,
    path = "/bot/events",
    operation_id = "emit_bot_event",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body = EmitBody,
    responses(
        (status = 201, description = "It is stored.", body = EmittedBody),
        (status = 200, description = "Its dedup key is known; this is the event that has it.", body = EmittedBody),
        refusals::Any, refusals::Secret, refusals::Body,
    )
)]
pub(super) async fn emit(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<EmitBody>,
) -> Result<(StatusCode, Json<EmittedBody>), Problem> {
    let event = body.check()?;
    let emitted = state.db.write(move |tx| backend::emit(tx, &event)).await?;
    Ok(match emitted {
        Emitted::New(id) => (StatusCode::CREATED, Json(EmittedBody { id })),
        Emitted::Known(id) => (StatusCode::OK, Json(EmittedBody { id })),
    })
}

/// An id that a page can have shown.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
struct EventId(i64);

impl TryFrom<i64> for EventId {
    type Error = &'static str;

    fn try_from(id: i64) -> Result<Self, Self::Error> {
        if id > 0 { Ok(Self(id)) } else { Err("must be above 0") }
    }
}

/// The acknowledgement on the wire. A list that is not there is empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AckBody {
    #[serde(default)]
    processed_ids: AtMost<LONGEST_LIST, EventId>,
    #[serde(default)]
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
                Ok(RetryBody { id: EventId::try_from(id).map_err(E::custom)?, error: None })
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<RetryBody, E> {
                self.visit_i64(i64::try_from(id).map_err(|_| E::custom("does not fit 64 bits with a sign"))?)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RetryBody, A::Error> {
                let WithReason { id, error } = WithReason::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RetryBody { id, error })
            }
        }

        from.deserialize_any(Either)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithReason {
    id: EventId,
    #[serde(default)]
    error: Option<String>,
}

/// An event to be emitted. It is about a chat, or a member, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewBotEvent)]
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

fn event_types() -> Object {
    let words = BotEventType::ALL.map(BotEventType::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// A chat's id: text, since it may not fit a JavaScript number, and a number there would already be another one.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = "^-?[1-9][0-9]{0,18}$")]
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
#[schema(minimum = 1)]
#[serde(try_from = "i64")]
pub(super) struct MemberUid(pub(super) i64);

impl TryFrom<i64> for MemberUid {
    type Error = &'static str;

    fn try_from(uid: i64) -> Result<Self, Self::Error> {
        if uid > 0 { Ok(Self(uid)) } else { Err("must be above 0") }
    }
}

impl EmitBody {
    fn check(self) -> Result<NewBotEvent, Problem> {
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

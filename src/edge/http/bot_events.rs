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

use super::bot_event_forms::{AboutSomebody, AckBody, AcknowledgedForm, EmitBody, EmittedBody, PendingBody};
use super::decode::{JsonBody, NoQuery, parameters};
use super::error::{Fault, Problem};
use super::finish::see_through;
use super::openapi::refusals;
use super::{Consumer, HttpState};
use crate::backend::page::Served;
use crate::backend::{self, Ack, Acknowledged, DEFAULT_PAGE, Emitted, LARGEST_PAGE};
use crate::kernel::contract::TAKES_REASONS;
use crate::kernel::store::Db;

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

/// Shows the next page of open events, without taking it.
///
/// Of each subject the first event is shown, and what follows it up to the page's end; order counts within a subject.
#[utoipa::path(
    get,
    path = "/bot/events/pending",
    operation_id = "list_pending_bot_events",
    tag = "bot",
    security(("bot_secret" = [])),
    params((
        "limit" = Option<usize>, Query, minimum = 1,
        description = "How many events at most; 100 if it is not there, and no more than 500 whatever it says."
    )),
    responses(
        (
            status = 200, description = "The page.", body = PendingBody,
            headers(("pillarbox-takes-reasons" = String, description = "`1`: `retryIds` may give reasons."))
        ),
        refusals::Any, refusals::Secret, refusals::Query, refusals::Conflict,
    )
)]
pub(super) async fn pending(
    State(state): State<Arc<HttpState>>,
    PageLimit(limit): PageLimit,
) -> Result<([(&'static str, &'static str); 1], Json<PendingBody>), Problem> {
    let page = state.db.read(move |tx| backend::page::pending(tx, limit)).await?;
    let events = page.into_iter().map(Served::into_event).collect();
    Ok(([(TAKES_REASONS, "1")], Json(PendingBody { events })))
}

/// Says what became of the events of a page.
///
/// It can be repeated: an event that is settled stays as it is.
#[utoipa::path(
    post,
    path = "/bot/events/ack",
    operation_id = "acknowledge_bot_events",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body = AckBody,
    responses(
        (status = 200, description = "How many events became what.", body = AcknowledgedForm),
        refusals::Any, refusals::Secret, refusals::Body, refusals::Conflict,
    )
)]
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

/// Emits an event for the bot, once per dedup key.
#[utoipa::path(
    post,
    path = "/bot/events",
    operation_id = "emit_bot_event",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body(content = AboutSomebody, content_type = "application/json"),
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

//! `/v1/events`: what happened at a tenant's, posted once and relayed to its endpoints; and how that goes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::admission::Owner;
use super::event_forms::{
    BatchBody, EventBody, NewEventBody, PostedBatchBody, PostedBody, WholeEventBody, event_status,
};
use super::keyed::{Keyed, read_keyed};
use super::page::{self, PageBody, one_of};
use super::path::Named;
use crate::edge::http::HttpState;
use crate::edge::http::decode::{NoQuery, parameters};
use crate::edge::http::error::{Posting, Problem};
use crate::edge::http::openapi::refusals;
use crate::outbox::inspect::{self, Cursor, EventFilter, EventStatus};
use crate::outbox::{self, Posted};

/// How much larger than any other body that of a batch may be. A thousand events of the largest data would be 64 MB,
/// which one request shall not hold in memory; 8 MiB, as it is unless `http.body_limit` says otherwise, are a thousand
/// events of 8 KiB.
const BATCH_BODIES: usize = 8;
/// What a batch's body never exceeds: it is then as large as a batch can be.
const LARGEST_BATCH: usize = 64 << 20;

/// Stores an event, to be relayed to every consumer at least once.
///
/// A repeat under the same `Idempotency-Key` with the same body, or with the same `event_id` and content, gets the same
/// answer and stores nothing.
#[utoipa::path(
    post,
    path = "/v1/events",
    operation_id = "post_event",
    tag = "events",
    params(("Idempotency-Key" = Option<String>, Header, description = "Known for 24 hours.", min_length = 1, max_length = 255, pattern = "^[!-~]+$")),
    request_body = NewEventBody,
    responses(
        (status = 202, description = "It is stored.", body = PostedBody),
        refusals::Query, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn post(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    _: NoQuery,
    request: Request,
) -> Result<(StatusCode, Json<PostedBody>), Problem> {
    let Keyed { form, key } = read_keyed::<NewEventBody>(request, &state, state.limits.body_bytes).await?;
    let posted = Posted { tenant, key, events: vec![form.into()], strict: state.strict_types };
    let mut event_ids = store(&state, posted, Posting::One).await?;
    let event_id = event_ids.pop().ok_or_else(Problem::internal)?;
    Ok((StatusCode::ACCEPTED, Json(PostedBody { event_id })))
}

/// Stores up to a thousand events, all or none.
///
/// The body may be eight times as large as that of any other request: 8 MiB, unless `http.body_limit` is changed.
#[utoipa::path(
    post,
    path = "/v1/events/batch",
    operation_id = "post_events",
    tag = "events",
    params(("Idempotency-Key" = Option<String>, Header, description = "Known for 24 hours.", min_length = 1, max_length = 255, pattern = "^[!-~]+$")),
    request_body = BatchBody,
    responses(
        (status = 202, description = "They are stored.", body = PostedBatchBody),
        refusals::Query, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn post_batch(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    _: NoQuery,
    request: Request,
) -> Result<(StatusCode, Json<PostedBatchBody>), Problem> {
    let limit = state.limits.body_bytes.saturating_mul(BATCH_BODIES).min(LARGEST_BATCH);
    let Keyed { form, key } = read_keyed::<BatchBody>(request, &state, limit).await?;
    let posted = Posted { tenant, key, events: form.into(), strict: state.strict_types };
    let event_ids = store(&state, posted, Posting::Batch).await?;
    Ok((StatusCode::ACCEPTED, Json(PostedBatchBody { event_ids })))
}

async fn store(state: &HttpState, posted: Posted, posting: Posting) -> Result<Vec<String>, Problem> {
    let stored = state.db.write(move |tx| outbox::post(tx, &posted)).await;
    stored.map_err(|error| Problem::refused_events(error, posting))
}

/// Which events are listed.
pub(super) struct Listed {
    filter: EventFilter,
    after: Option<Cursor>,
    limit: i64,
}

impl FromRequestParts<Arc<HttpState>> for Listed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [status, event_type, limit, after] = parameters(&parts.uri, ["status", "type", "limit", "after"])?;
        let words = EventStatus::ALL.map(|status| (status.as_str(), status));
        Ok(Self {
            filter: EventFilter { status: one_of("status", status.as_deref(), &words)?, event_type },
            after: page::after(after.as_deref(), Cursor::parse)?,
            limit: i64::try_from(page::limit(limit.as_deref())?).unwrap_or(i64::MAX),
        })
    }
}

impl IntoParams for Listed {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        page::parameters([
            page::parameter("status", "Only those that stand there.", event_status()),
            page::parameter("type", "Only those of exactly this type.", page::text()),
        ])
    }
}

/// Lists events, without their data.
#[utoipa::path(
    get,
    path = "/v1/events",
    operation_id = "list_events",
    tag = "events",
    params(Listed),
    responses((status = 200, description = "A page.", body = PageBody<EventBody>), refusals::Query)
)]
pub(super) async fn list(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    listed: Listed,
) -> Result<Json<PageBody<EventBody>>, Problem> {
    let Listed { filter, after, limit } = listed;
    let page = state.db.read(move |tx| inspect::events(tx, &tenant, &filter, after.as_ref(), limit)).await?;
    let items = page.items.into_iter().map(EventBody::from).collect();
    Ok(Json(PageBody { items, next: page.next.map(|place| place.to_string()) }))
}

/// Shows an event whole.
#[utoipa::path(
    get,
    path = "/v1/events/{event_id}",
    operation_id = "show_event",
    tag = "events",
    params(("event_id" = String, Path, description = "The id that the post was answered.")),
    responses((status = 200, description = "The event.", body = WholeEventBody), refusals::Query, refusals::Missing)
)]
pub(super) async fn show(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(event_id): Named,
    _: NoQuery,
) -> Result<Json<WholeEventBody>, Problem> {
    let event = state.db.read(move |tx| inspect::find(tx, &tenant, &event_id)).await?;
    event.map(|event| Json(event.into())).ok_or_else(|| Problem::no_such("event"))
}

/// Has an event handed over now to the consumers that have not accepted it.
#[utoipa::path(
    post,
    path = "/v1/events/{event_id}/retry",
    operation_id = "retry_event",
    tag = "events",
    params(("event_id" = String, Path, description = "The id that the post was answered.")),
    responses(
        (status = 200, description = "The event, which is due now.", body = WholeEventBody),
        refusals::Query, refusals::Missing, refusals::Conflict,
    )
)]
pub(super) async fn retry(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(event_id): Named,
    _: NoQuery,
) -> Result<Json<WholeEventBody>, Problem> {
    let retried = state.db.write(move |tx| {
        outbox::retry(tx, &tenant, &event_id)?;
        Ok::<_, outbox::Error>(inspect::find(tx, &tenant, &event_id)?)
    });
    retried.await?.map(|event| Json(event.into())).ok_or_else(|| Problem::no_such("event"))
}

//! `/v1/endpoints/{id}/recover` and `/replay-skipped`: deliveries that an endpoint did not get wait again.
//!
//! There may be millions. They are queued in batches for a part of the time that a request has; what is left then the
//! next call takes up, since what was queued is no longer among what is looked for.

use std::sync::Arc;
use std::time::Instant as RealInstant;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::admission::Owner;
use super::path::Named;
use super::time::Instant;
use crate::edge::http::HttpState;
use crate::edge::http::decode::{JsonBody, NoQuery};
use crate::edge::http::error::{Fault, Problem};
use crate::edge::http::openapi::refusals;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;
use crate::webhooks::Error;
use crate::webhooks::recover::{Batch, Cursor, Window, recover as recover_batch, replay_skipped as replay_batch};

/// When the deliveries were made that are to wait again.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Window)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowBody {
    /// Then or later.
    since: Instant,
    /// Before then; without it, until now.
    #[serde(default)]
    until: Option<Instant>,
}

impl WindowBody {
    fn check(self) -> Result<Window, Problem> {
        let until = self.until.map_or(UnixMs::MAX, |until| until.0);
        if until <= self.since.0 {
            return Err(Problem::invalid_body(vec![Fault::new("until", "must be later than since")]));
        }
        Ok(Window { since: self.since.0, until })
    }
}

/// How many deliveries wait again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Queued)]
pub(super) struct QueuedBody {
    /// How many this call has queued.
    queued: usize,
    /// Whether these were all; if not, the same call takes up the rest.
    complete: bool,
}

/// Has failed and cancelled deliveries of an endpoint wait again, with the whole schedule before them.
#[utoipa::path(
    post,
    path = "/v1/endpoints/{endpoint_id}/recover",
    operation_id = "recover_endpoint",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    request_body = WindowBody,
    responses(
        (status = 202, description = "They wait; call again if these were not all.", body = QueuedBody),
        refusals::Query, refusals::Missing, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn recover(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
    JsonBody(body): JsonBody<WindowBody>,
) -> Result<(StatusCode, Json<QueuedBody>), Problem> {
    queue(&state, (tenant, id), body.check()?, recover_batch).await
}

/// Has deliveries that were skipped while an endpoint was disabled wait.
#[utoipa::path(
    post,
    path = "/v1/endpoints/{endpoint_id}/replay-skipped",
    operation_id = "replay_skipped",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    request_body = WindowBody,
    responses(
        (status = 202, description = "They wait; call again if these were not all.", body = QueuedBody),
        refusals::Query, refusals::Missing, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn replay_skipped(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
    JsonBody(body): JsonBody<WindowBody>,
) -> Result<(StatusCode, Json<QueuedBody>), Problem> {
    queue(&state, (tenant, id), body.check()?, replay_batch).await
}

/// Queues a batch, and answers where the next one begins.
type Step = fn(&Tx<'_>, &TenantId, &str, Window, Cursor) -> Result<Batch, Error>;

async fn queue(
    state: &HttpState,
    (tenant, id): (TenantId, String),
    window: Window,
    step: Step,
) -> Result<(StatusCode, Json<QueuedBody>), Problem> {
    let begun = RealInstant::now();
    let mut done = QueuedBody { queued: 0, complete: false };
    let mut from = Cursor::default();
    // A call that has queued nothing goes on: the next one would have to look at the same rows again.
    while !done.complete && (done.queued == 0 || begun.elapsed() < state.limits.batches) {
        let (tenant, id) = (tenant.clone(), id.clone());
        let batch = state.db.write(move |tx| step(tx, &tenant, &id, window, from)).await?;
        done.queued += batch.queued;
        (done.complete, from) = (batch.next.is_none(), batch.next.unwrap_or_default());
    }
    Ok((StatusCode::ACCEPTED, Json(done)))
}

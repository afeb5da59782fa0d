//! `POST /v1/endpoints/{id}/test`: a request is sent at once, and everything that was said on both sides is shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::admission::Owner;
use super::delivery_forms::error_class;
use super::path::Named;
use crate::edge::http::HttpState;
use crate::edge::http::decode::NoQuery;
use crate::edge::http::error::Problem;
use crate::edge::http::finish::see_through;
use crate::edge::http::openapi::refusals;
use crate::webhooks::ErrorClass;
use crate::webhooks::probe::{Said, Tested, Tools, test};

/// Tests under way at the same time. Each may take as long as an attempt, and holds its caller's connection: without a
/// limit, tests of a receiver that hangs could hold every connection that there is.
pub(in crate::edge::http) const MOST_TESTS: usize = 16;

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tested)]
pub(super) struct TestedBody {
    /// Whether the endpoint has taken it.
    delivered: bool,
    /// The status of the answer; null without one.
    #[schema(required)]
    http_status: Option<u16>,
    /// How long it took.
    #[schema(minimum = 0)]
    duration_ms: u64,
    /// Why it did not deliver; null if it did.
    #[schema(required, schema_with = error_class)]
    error: Option<&'static str>,
    /// What was sent, or would have been.
    request: SaidBody,
    /// What was answered; null if nothing was.
    #[schema(required)]
    response: Option<SaidBody>,
}

/// One side of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Said)]
pub(super) struct SaidBody {
    /// By name; several of a name are joined by a comma.
    headers: BTreeMap<String, String>,
    /// The body; of an answer, its first 4 KiB.
    body: String,
}

impl From<Said> for SaidBody {
    fn from(said: Said) -> Self {
        let mut headers = BTreeMap::new();
        for (name, value) in said.headers {
            headers.entry(name).and_modify(|all: &mut String| *all = format!("{all}, {value}")).or_insert(value);
        }
        Self { headers, body: said.body }
    }
}

impl From<Tested> for TestedBody {
    fn from(tested: Tested) -> Self {
        let Tested { outcome, request, response } = tested;
        Self {
            delivered: outcome.is_delivered(),
            http_status: outcome.http_status,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            error: outcome.error.map(ErrorClass::as_str),
            request: request.into(),
            response: response.map(SaidBody::from),
        }
    }
}

/// Sends `webhook.test` to an endpoint, whatever its status is, in the way in which deliveries are sent.
#[utoipa::path(
    post,
    path = "/v1/endpoints/{endpoint_id}/test",
    operation_id = "test_endpoint",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    responses(
        (status = 200, description = "What came of it; that it did not arrive is no error.", body = TestedBody),
        refusals::Query, refusals::Missing, refusals::TooMany,
    )
)]
pub(super) async fn send(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
) -> Result<Json<TestedBody>, Problem> {
    let seat = Arc::clone(&state.test_seats).try_acquire_owned().map_err(|_| Problem::too_many_tests())?;
    // However long one may take: an answer that is cut off would ask for another test.
    let limit = state.limits.request.max(state.webhooks.transport.timeout() + Duration::from_secs(10));
    // Of what was sent there is to be a trace, whether or not its caller is still there.
    let testing = async move {
        let tools = Tools { transport: &state.webhooks.transport, vault: &state.webhooks.vault };
        let tested = test(&state.db, tools, &tenant, &id).await;
        drop(seat);
        tested
    };
    let tested = see_through(limit, testing).await.ok_or_else(Problem::too_slow)?;
    Ok(Json(tested?.into()))
}

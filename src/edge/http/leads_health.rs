//! `GET /v1/leads/health`: how the queue of notifications is, for whoever watches it. Counts and ages only.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::HttpState;
use super::error::Problem;
use super::keys::{Role, Stranger};
use super::openapi::{Routes, refusals};
use super::v1::find_caller;
use crate::leads::health;
use crate::tenants::{Caller, Right};

/// The one address.
pub(super) fn routes() -> Routes {
    OpenApiRouter::default().routes(routes!(show))
}

/// How the queue of notifications is.
#[derive(ToSchema)]
#[schema(as = LeadsHealth)]
#[expect(dead_code, reason = "describes what the domain's own type writes")]
struct HealthForm {
    /// Waiting to be claimed.
    pending: QueueForm,
    /// Claimed and not completed.
    sending: QueueForm,
    /// Told.
    sent: QueueForm,
    /// Given up, until a person asks for it.
    failed: QueueForm,
    /// Not to be told.
    disabled: QueueForm,
    /// Claimed for over 15 minutes; counted among `sending` too.
    #[schema(minimum = 0)]
    stale_sending: i64,
    /// Where counts stop.
    #[schema(minimum = 1)]
    count_cap: i64,
    /// What a person should look after.
    alerts: Vec<AlertForm>,
}

/// The leads of one status.
#[derive(ToSchema)]
#[schema(as = LeadsQueue)]
#[expect(dead_code, reason = "describes what the domain's own type writes")]
struct QueueForm {
    /// How many; where counts stop it means that many or more.
    #[schema(minimum = 0)]
    count: i64,
    /// Since when the oldest has this status; null if there is none.
    #[schema(required, format = DateTime)]
    oldest_at: Option<String>,
    /// How long ago that was, in milliseconds.
    #[schema(required, minimum = 0)]
    oldest_age_ms: Option<i64>,
}

/// Something that a person should look after.
#[derive(ToSchema)]
#[schema(as = LeadsAlert, rename_all = "snake_case")]
#[expect(dead_code, reason = "describes what the domain's own type writes")]
enum AlertForm {
    StaleSending,
    FailedPresent,
    FailedCritical,
    PendingBacklog,
}

/// Shows how the queue of notifications is.
#[utoipa::path(
    get,
    path = "/v1/leads/health",
    operation_id = "show_leads_health",
    tag = "leads",
    security(("api_key" = []), ("service_key" = []), ("service_apikey" = [])),
    responses(
        (status = 200, description = "Counts and ages.", body = HealthForm),
        refusals::Any, refusals::Key, refusals::Missing,
    )
)]
pub(super) async fn show(State(state): State<Arc<HttpState>>, headers: HeaderMap) -> Result<Response, Problem> {
    admit(&state, &headers).await?;
    let health = state.db.read(health::health).await?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(health)).into_response())
}

/// Lets the installation's own keys pass, and the service key, which programs have that watch the leads. Leads are the
/// installation's: to another tenant there is nothing here.
async fn admit(state: &HttpState, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(caller) = find_caller(state, headers).await? {
        return match caller {
            Caller { tenant, .. } if !tenant.is_installation() => Err(Problem::nothing_here()),
            Caller { role, .. } if !role.has(Right::Read) => Err(Problem::forbidden()),
            Caller { .. } => Ok(()),
        };
    }
    match state.keys.role(headers) {
        Ok(Role::Service) => Ok(()),
        Ok(Role::Anon) => Err(Problem::forbidden()),
        Err(Stranger::NoKey | Stranger::WrongKey) => Err(Problem::wrong_key()),
        Err(Stranger::Closed) => Err(Problem::no_service_key()),
    }
}

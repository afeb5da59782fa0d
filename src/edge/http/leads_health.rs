//! `GET /v1/leads/health`: how the queue of notifications is, for whoever watches it. Counts and ages only.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

use super::HttpState;
use super::error::Problem;
use super::keys::{Role, Stranger};
use super::openapi::Routes;
use crate::leads::health;

/// The one address.
pub(super) fn routes() -> Routes {
    OpenApiRouter::default().route("/v1/leads/health", get(show))
}

/// Answers the service key.
pub(super) async fn show(State(state): State<Arc<HttpState>>, headers: HeaderMap) -> Result<Response, Problem> {
    match state.keys.role(&headers) {
        Ok(Role::Service) => {}
        Ok(Role::Anon) => return Err(Problem::forbidden()),
        Err(Stranger::NoKey | Stranger::WrongKey) => return Err(Problem::wrong_key()),
        Err(Stranger::Closed) => return Err(Problem::no_service_key()),
    }
    let health = state.db.read(health::health).await?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(health)).into_response())
}

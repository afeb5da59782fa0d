//! `POST /dev/jobs/{name}/run`: a job now, instead of when its schedule says.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};

use super::guard;
use super::problem::Problem;
use crate::edge::jobs::{Driver, RunError};

/// The router over these jobs.
pub(crate) fn router(driver: &Arc<Driver>) -> Router {
    guard::local_only(Router::new().route("/dev/jobs/{name}/run", post(run)).with_state(Arc::clone(driver)))
}

async fn run(State(driver): State<Arc<Driver>>, Path(name): Path<String>) -> Response {
    match driver.run_now(&name).await {
        Ok(settled) => Json(settled).into_response(),
        Err(error @ RunError::Unknown) => Problem::unknown(error.to_string()).into_response(),
        Err(error) => Problem::unavailable(error.to_string()).into_response(),
    }
}

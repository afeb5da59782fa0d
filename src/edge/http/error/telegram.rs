//! What whoever brings updates is told. Telegram brings one again until it hears a 2xx, as soon as `Retry-After` says.

use axum::http::StatusCode;

use super::{Fault, Problem, Then};
use crate::kernel::store::StoreError;

impl Problem {
    pub(in crate::edge::http) fn no_update() -> Self {
        let fault = Fault::new("update_id", "is missing, or not a number");
        Self::new(StatusCode::BAD_REQUEST, "no_update", "the body is no update of the Bot API").at(vec![fault])
    }

    /// Whatever stands in the way, the update is wanted soon: a person waits for its answer.
    pub(in crate::edge::http) fn bring_it_again(error: StoreError) -> Self {
        let mut problem = Self::from(error);
        if problem.status == StatusCode::SERVICE_UNAVAILABLE {
            problem.then = Then::RetryAfterSeconds(1);
        }
        problem
    }
}

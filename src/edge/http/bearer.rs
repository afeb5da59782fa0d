//! The guard of `/bot`: `Authorization: Bearer <secret>` (RFC 6750 §2.1), compared in constant time.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;

use super::HttpState;
use super::error::Problem;

/// Lets a request with the secret pass; without a configured secret none passes.
pub(super) async fn require(
    State(state): State<Arc<HttpState>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(secret) = &state.bot_secret else { return Err(Problem::no_secret()) };
    match find_token(request.headers()) {
        Some(token) if secret.matches(token) => Ok(next.run(request).await),
        _ => Err(Problem::unauthorized()),
    }
}

/// What follows the scheme. Two such headers are no answer to the question who is asking.
pub(super) fn find_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer".len())?;
    let is_ours = scheme.eq_ignore_ascii_case(b"Bearer") && token.starts_with(b" ");
    is_ours.then(|| token.trim_ascii_start())
}

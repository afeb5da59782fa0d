//! What is the same for every request: its id, its span, its time limit, the net under a panic, one access-log line.
//!
//! The line has the matched route, never the address itself: what is in an address or a query may be personal.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;

use super::Limits;
use super::error::Problem;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A longer id of a client is replaced: it would only bloat the log.
const LONGEST_ID: usize = 64;
/// Asked every few seconds by machines, so their lines are for debugging only.
const MONITORING: [&str; 3] = ["/livez", "/readyz", "/metrics"];

tokio::task_local! {
    /// The id of the request that this task answers, for the problem it may end in.
    static REQUEST_ID: String;
}

/// The id of the request that is being answered.
pub(super) fn request_id() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// Answers a request under observation.
pub(super) async fn observe(
    State(limits): State<Limits>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let id = accepted_id(request.headers()).unwrap_or_else(new_id);
    let method = method_label(request.method());
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let span = tracing::info_span!("request", request.id = %id, method, route);
    let answer = answer_within(limits.request, next.run(request));
    let mut response = REQUEST_ID.scope(id.clone(), answer).instrument(span.clone()).await;
    let id = HeaderValue::try_from(id).expect("both kinds of id are visible ASCII");
    response.headers_mut().insert(X_REQUEST_ID, id);
    span.in_scope(|| tell(method, route, response.status().as_u16(), started.elapsed()));
    response
}

async fn answer_within(limit: Duration, answer: impl Future<Output = Response>) -> Response {
    match cut_off(limit, answer).await {
        Ok(response) => response,
        Err(Cut::Panic) => Problem::internal().into_response(),
        Err(Cut::TooSlow) => Problem::too_slow().into_response(),
    }
}

/// Why an answer did not come to its end; the log has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Panic,
    TooSlow,
}

/// What `answer` ends in, if it does within this time.
pub(super) async fn cut_off<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, Cut> {
    // Nothing of the request is used after its panic, so nothing half-changed can be seen.
    match tokio::time::timeout(limit, AssertUnwindSafe(answer).catch_unwind()).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => {
            tracing::error!("a request ended in a panic");
            Err(Cut::Panic)
        }
        Err(_) => {
            tracing::warn!("a request took too long and was given up");
            Err(Cut::TooSlow)
        }
    }
}

fn tell(method: &'static str, route: &str, status: u16, took: Duration) {
    // Two digits are more than a log needs.
    let took_ms = (took.as_secs_f64() * 100_000.0).round() / 100.0;
    if MONITORING.contains(&route) {
        tracing::debug!(status, took_ms, "request answered");
    } else {
        tracing::info!(status, took_ms, "request answered");
    }
    let labels = [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
    metrics::counter!("pillarbox_http_requests_total", &labels).increment(1);
    metrics::histogram!("pillarbox_http_request_seconds", "method" => method, "route" => route.to_owned()).record(took);
}

/// The client's own id, if it is one that can stand in a log as it is.
fn accepted_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (is_plain && (1..=LONGEST_ID).contains(&id.len())).then(|| id.to_owned())
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// A made-up method must not become a label of its own.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

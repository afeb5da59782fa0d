//! `POST /leads`: what the form of an allowed site posts, stored before it is answered. A browser reads an answer only if
//! it names the page's origin, so whatever goes wrong here is answered here, in the envelope and with its CORS headers.
//!
//! The order of the checks is the contract's: origin, method, content type, size, JSON, and then the domain's.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    CACHE_CONTROL, ORIGIN, USER_AGENT, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use super::HttpState;
use super::client_ip::ClientIp;
use super::decode::{is_json, read};
use super::lead_envelope::{PostRefusals, PreflightRefusals, Refusal, RefusedBody, Reply, TakenBody};
use super::lead_form::LeadForm;
use super::observe::{Cut, cut_off};
use super::openapi::Routes;
use crate::config::LeadsConfig;
use crate::leads::{self, Answer, Submission, Visitor};

/// What a form's script may send. The last three are not looked at: scripts written for another backend send them.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static("content-type, apikey, authorization, x-client-info");
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");
/// Seconds for which a browser may remember the two: a change of the configuration shows within the hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// What of a refused origin is told to the log, in characters.
const LONGEST_ORIGIN: usize = 200;

/// The one address. Every method is answered in the same way: who may ask at all is looked at before how.
pub(super) fn routes() -> Routes {
    OpenApiRouter::default().routes(routes!(submit, preflight).map(|known| any(answer).merge(known)))
}

/// Takes a lead that the form of an allowed site posts.
///
/// It is stored before it is answered, and the broker is told behind the answer. A page reads the answer if its origin
/// is one of `leads.allowed_origins`.
#[utoipa::path(
    post,
    path = "/leads",
    operation_id = "submit_lead",
    tag = "leads",
    params((
        "Origin" = Option<String>, Header,
        description = "One of `leads.allowed_origins`; it may be missing where `leads.allow_originless` is set."
    )),
    request_body = LeadForm,
    responses(
        (
            status = 201, description = "It is stored.", body = TakenBody,
            headers(("Access-Control-Allow-Origin" = String, description = "The page's own origin, if it is an allowed one."))
        ),
        (
            status = 200, description = "It was stored before, under this request id.", body = TakenBody,
            headers(("Access-Control-Allow-Origin" = String, description = "The page's own origin, if it is an allowed one."))
        ),
        PostRefusals,
        (
            status = 202, description = "`request_rejected`: the form takes its sender for a machine.",
            body = RefusedBody,
            headers(("Access-Control-Allow-Origin" = String, description = "The page's own origin, if it is an allowed one."))
        ),
    )
)]
pub(super) async fn submit(state: State<Arc<HttpState>>, ip: ClientIp, request: Request) -> Response {
    answer(state, ip, request).await
}

/// Tells a browser what a page of an allowed site may send.
#[utoipa::path(
    options,
    path = "/leads",
    operation_id = "preflight_lead",
    tag = "leads",
    params((
        "Origin" = Option<String>, Header,
        description = "One of `leads.allowed_origins`; it may be missing where `leads.allow_originless` is set."
    )),
    responses(
        (
            status = 204, description = "It may post.",
            headers(
                ("Access-Control-Allow-Origin" = String, description = "The page's own origin, if it is an allowed one."),
                ("Access-Control-Allow-Methods" = String, description = "`POST, OPTIONS`."),
                ("Access-Control-Allow-Headers" = String, description = "What the page may send."),
                ("Access-Control-Max-Age" = i64, description = "Seconds for which a browser may remember this."),
            )
        ),
        PreflightRefusals,
    )
)]
pub(super) async fn preflight(state: State<Arc<HttpState>>, ip: ClientIp, request: Request) -> Response {
    answer(state, ip, request).await
}

/// Any request to `/leads`.
async fn answer(State(state): State<Arc<HttpState>>, ClientIp(ip): ClientIp, request: Request) -> Response {
    let page = Page::of(request.headers(), &state.leads);
    let limit = little_less(state.limits.request);
    let visitor = Visitor { ip, user_agent: user_agent(request.headers()) };
    let may_post = !matches!(page, Page::Stranger(_));
    let reply = saved(limit, async {
        match may_post {
            true => take(&state, request, visitor).await.unwrap_or_else(Reply::from),
            false => Refusal::OriginNotAllowed.into(),
        }
    });
    let reply = reply.await;
    metrics::counter!("pillarbox_leads_requests_total", "outcome" => reply.outcome()).increment(1);
    page.tell(&reply);
    page.marked(reply)
}

/// A request of a page that may post.
async fn take(state: &HttpState, request: Request, visitor: Visitor) -> Result<Reply, Refusal> {
    match *request.method() {
        Method::OPTIONS => return Ok(Reply::MayPost),
        Method::POST => {}
        _ => return Err(Refusal::MethodNotAllowed),
    }
    if !is_json(request.headers()) {
        return Err(Refusal::ContentTypeNotSupported);
    }
    let body = read(request, state.leads.max_body_bytes, state.limits.body).await?;
    let submission = Arc::new(Submission::parse(&body, &state.leads).map_err(|_| Refusal::InvalidJson)?);
    let rules = Arc::clone(&state.leads);
    // Kept until the answer is there, so that it is not the one writer that frees its forty strings.
    let written = Arc::clone(&submission);
    let answer = state.db.write(move |tx| leads::accept(tx, &written, &visitor, &rules)).await?;
    drop(submission);
    match &answer {
        Answer::Stored { request_id, .. } => tracing::info!(lead.request_id = request_id, "a lead was stored"),
        Answer::Invalid { faults, .. } => {
            tracing::info!(error_code = "validation_failed", faults = faults.join(","), "a lead was refused");
        }
        _ => {}
    }
    Ok(answer.into())
}

/// The reply, or what is told instead when it panics or takes too long. What it was to write may still be written, and
/// a repeat under the same request id is answered as one.
async fn saved(limit: Duration, reply: impl Future<Output = Reply>) -> Reply {
    match cut_off(limit, reply).await {
        Ok(reply) => reply,
        Err(Cut::Panic) => Refusal::LeadStorageFailed.into(),
        Err(Cut::TooSlow) => Refusal::BackendUnavailable.into(),
    }
}

/// Before the time limit of every request, which would be told in another form and without CORS headers.
fn little_less(limit: Duration) -> Duration {
    limit.saturating_sub(limit / 10)
}

/// Names of browsers are ASCII; what is not is replaced, since the lead counts for more.
fn user_agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Where a request comes from.
#[derive(Debug)]
enum Page {
    /// From a page of this allowed origin.
    Allowed(HeaderValue),
    /// From no page, which is allowed.
    None,
    /// From a page, or a program, that is not allowed: what it calls itself.
    Stranger(String),
}

impl Page {
    fn of(headers: &HeaderMap, leads: &LeadsConfig) -> Self {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) if leads.allow_originless => Self::None,
            (Some(origin), None) if origin.to_str().is_ok_and(|origin| leads.allows(origin)) => {
                Self::Allowed(origin.clone())
            }
            (origin, _) => {
                let origin = origin.map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned());
                Self::Stranger(origin.unwrap_or_default().chars().take(LONGEST_ORIGIN).collect())
            }
        }
    }

    /// Tells the log why a lead was refused. Whose site it was is the first thing that whoever set it up has to know. An
    /// invalid one has been told with its faults.
    fn tell(&self, reply: &Reply) {
        match (reply, self) {
            (Reply::Refused { why: Refusal::ValidationFailed, .. }, _) => {}
            (Reply::Refused { .. }, Self::Stranger(origin)) => {
                tracing::info!(error_code = reply.outcome(), origin = origin.as_str(), "a lead was refused");
            }
            (Reply::Refused { why: Refusal::BackendUnavailable | Refusal::LeadStorageFailed, .. }, _) => {
                tracing::warn!(error_code = reply.outcome(), "a lead could not be stored");
            }
            (Reply::Refused { .. }, _) => tracing::info!(error_code = reply.outcome(), "a lead was refused"),
            _ => {}
        }
    }

    /// The response with what every answer of `/leads` says of itself.
    fn marked(self, reply: Reply) -> Response {
        let is_preflight = matches!(reply, Reply::MayPost);
        let mut response = reply.into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if let Self::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        if is_preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
            headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_and_a_wait_without_end_are_answered_in_the_envelope_with_the_origin() {
        let limit = Duration::from_millis(20);
        let panicked = saved(limit, async { panic!("a fault of the domain") }).await;
        let stuck = saved(limit, std::future::pending()).await;
        for (reply, status, code) in [(panicked, 500, "lead_storage_failed"), (stuck, 503, "backend_unavailable")] {
            assert_eq!(reply.outcome(), code);
            let response = Page::Allowed(HeaderValue::from_static("https://a.example")).marked(reply);
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "https://a.example");
            assert_eq!(
                (&response.headers()[VARY], &response.headers()[CACHE_CONTROL]),
                (&HeaderValue::from_static("Origin"), &HeaderValue::from_static("no-store"))
            );
        }
    }
}

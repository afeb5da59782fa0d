//! From what went wrong to what the client is told: the one place that maps errors to HTTP.
//!
//! Every error is `application/problem+json` (RFC 9457) with a stable `code`, the request's id and the fields at fault.
//! What the client cannot act on is a 500 with the id only; its details are logged here, once.

mod events;
mod members;
mod telegram;
mod webhooks;

use std::borrow::Cow;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use events::Posting;

use super::observe;
use crate::kernel::store::StoreError;

/// An error as the client sees it.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    faults: Vec<Fault>,
    then: Then,
}

/// What the client may do next, said in a header.
#[derive(Clone, Copy, Debug)]
enum Then {
    GiveUp,
    RetryAfterSeconds(u16),
    ShowSecret,
}

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Fault {
    /// Where: `processedIds[3]`, `payload.level`, or the name of a parameter or header.
    pub(super) field: String,
    /// What is wrong with it.
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }
}

impl Then {
    fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::GiveUp => None,
            Self::RetryAfterSeconds(seconds) => Some((RETRY_AFTER, HeaderValue::from(seconds))),
            Self::ShowSecret => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        }
    }
}

/// An error, as RFC 9457 has it.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'a> {
    /// `urn:pillarbox:problem:` and the code.
    #[schema(pattern = "^urn:pillarbox:problem:[a-z0-9_]+$")]
    r#type: String,
    /// What the status means.
    title: &'a str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What a person should know.
    detail: &'a str,
    /// What a program may rely on.
    #[schema(pattern = "^[a-z0-9_]+$")]
    code: &'a str,
    /// The request's name in the log. Not there in a 401, which is the same for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<String>,
    /// The fields at fault, where it is about fields.
    #[serde(skip_serializing_if = "<[Fault]>::is_empty")]
    #[schema(required = false)]
    errors: &'a [Fault],
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, detail: detail.into(), faults: Vec::new(), then: Then::GiveUp }
    }

    fn at(mut self, faults: Vec<Fault>) -> Self {
        self.faults = faults;
        self
    }

    fn retry_after(mut self, seconds: u16) -> Self {
        self.then = Then::RetryAfterSeconds(seconds);
        self
    }

    /// For surfaces with a shape of their own.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client may do next.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.then.header()
    }

    /// The same for every wrong guess, byte for byte.
    pub(super) fn unauthorized() -> Self {
        let detail = "this address needs the header `Authorization: Bearer <secret>` with the right secret";
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        problem.then = Then::ShowSecret;
        problem
    }

    /// The same for every text that is no valid key of a tenant, byte for byte: none, one never made, a revoked one.
    pub(super) fn unknown_key() -> Self {
        let detail = "this address needs a valid API key, as `Authorization: Bearer <key>`";
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        problem.then = Then::ShowSecret;
        problem
    }

    /// The same for every wrong key, byte for byte.
    pub(super) fn wrong_key() -> Self {
        let detail =
            "this address needs an API key as `Authorization: Bearer <key>`, or the service key so or as `apikey`";
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        problem.then = Then::ShowSecret;
        problem
    }

    pub(super) fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "the key is known, and may not do this")
    }

    pub(super) fn no_service_key() -> Self {
        let detail = "leads.service_role_key (SUPABASE_SERVICE_ROLE_KEY) is not set, so this address is closed without an API key";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "secret_not_set", detail)
    }

    pub(super) fn no_secret() -> Self {
        let detail = "bot.backend_secret (BOT_TO_BACKEND_SECRET) is not set, so this address stays closed";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "secret_not_set", detail)
    }

    pub(super) fn events_are_consumed_here() -> Self {
        let detail =
            "this process consumes its own bot events; set bot.event_source to \"off\" to have them fetched over HTTP";
        Self::new(StatusCode::CONFLICT, "events_are_consumed_here", detail)
    }

    pub(super) fn nothing_here() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
    }

    /// The same for what never was and for what is another tenant's.
    pub(super) fn no_such(thing: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no such {thing}"))
    }

    pub(super) fn bad_query(fault: Fault) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is not as it must be").at(vec![fault])
    }

    pub(super) fn bad_header(fault: Fault) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_header", "a header is not as it must be").at(vec![fault])
    }

    pub(super) fn wrong_content_type() -> Self {
        let fault = Fault::new("Content-Type", "must be application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body must be JSON").at(vec![fault])
    }

    pub(super) fn body_too_large(limit: usize) -> Self {
        let detail = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    pub(super) fn body_too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body did not arrive in time")
    }

    pub(super) fn body_broken_off() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "body_broken_off", "the body ended early or was framed wrongly")
    }

    pub(super) fn not_utf8(at: usize) -> Self {
        let detail = format!("the body is not UTF-8: the first wrong byte is number {}", at + 1);
        Self::new(StatusCode::BAD_REQUEST, "invalid_utf8", detail)
    }

    /// The body is not JSON at all.
    pub(super) fn not_json(detail: String, faults: Vec<Fault>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", detail).at(faults)
    }

    /// The body is JSON of another form.
    pub(super) fn invalid_body(faults: Vec<Fault>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", "the body is not as it must be").at(faults)
    }

    pub(super) fn unknown_event_type(known: &[&str]) -> Self {
        let fault = Fault::new("eventType", format!("must be one of {}", known.join(", ")));
        let detail = "the contract has no such event type";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_event_type", detail).at(vec![fault])
    }

    fn secrets_unavailable() -> Self {
        let detail = "the secrets of endpoints cannot be sealed or opened now; the log says why under this request id";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "secrets_unavailable", detail).retry_after(30)
    }

    pub(super) fn too_many_tests() -> Self {
        let detail = "as many tests are under way as may be; each ends within an attempt's time";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_tests", detail).retry_after(5)
    }

    pub(super) fn too_slow() -> Self {
        let detail = "the request took too long and was given up; what it was to write may still be written";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_slow", detail).retry_after(10)
    }

    /// What nobody foresaw. Details are the log's, which has the request's id too.
    pub(super) fn internal() -> Self {
        let detail = "something went wrong here; the log has it under this request id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    fn unavailable(code: &'static str, error: &StoreError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // How soon to come back: a lock or a queue passes in a moment, a disk waits for a person.
        match &error {
            StoreError::Busy => Self::unavailable("store_busy", &error).retry_after(1),
            StoreError::QueueFull => Self::unavailable("store_queue_full", &error).retry_after(1),
            StoreError::DiskLow => Self::unavailable("disk_low", &error).retry_after(30),
            StoreError::DiskFull => Self::unavailable("disk_full", &error).retry_after(30),
            StoreError::ReadOnly => Self::unavailable("store_read_only", &error).retry_after(30),
            StoreError::Io => Self::unavailable("store_io", &error).retry_after(10),
            StoreError::Damaged => Self::unavailable("store_damaged", &error),
            StoreError::Displaced => Self::unavailable("store_displaced", &error),
            StoreError::Closed => Self::unavailable("shutting_down", &error).retry_after(5),
            _ => {
                tracing::error!(%error, "a request failed in a way that was not foreseen");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let is_the_same_for_all = self.status == StatusCode::UNAUTHORIZED;
        let body = ProblemBody {
            r#type: format!("urn:pillarbox:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            request_id: if is_the_same_for_all { None } else { observe::request_id() },
            errors: &self.faults,
        };
        let text = serde_json::to_string(&body).expect("a problem is made of texts and numbers");
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.then.header());
        response
    }
}

/// No such address.
pub(super) async fn not_found() -> Problem {
    Problem::nothing_here()
}

/// The address is there, the method is not; axum adds which are.
pub(super) async fn method_not_allowed() -> Problem {
    let detail = "this address does not take this method; the header `Allow` names those it does";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

//! Every error under `/rest`, in PostgREST's shape: `{code, message, details, hint}`, with its codes and PostgreSQL's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::response::{Response as DescribedResponse, ResponseBuilder};
use utoipa::openapi::{Content, Ref, RefOr};
use utoipa::{IntoResponses, ToSchema};

use super::SCHEMA;
use crate::edge::http::decode::Unread;
use crate::edge::http::error::Problem;
use crate::edge::http::observe::Cut;
use crate::edge::http::openapi::refusals;
use crate::kernel::store::StoreError;

/// What is repeated to the caller of its own words, in characters each.
const LONGEST_WORD: usize = 80;
/// Of lists of such words: as many as the longest list of parameters, and a few more.
const MOST_WORDS: usize = 12;

/// An error as the caller sees it.
#[derive(Debug)]
pub(in crate::edge::http) struct Refusal {
    status: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
    body: Box<Body>,
}

/// An error in PostgREST's shape.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PostgrestError)]
pub(super) struct Body {
    /// PostgREST's code or PostgreSQL's.
    code: &'static str,
    /// What a person should know, or the contract's own word (`P0001`).
    message: Cow<'static, str>,
    #[schema(required)]
    details: Option<String>,
    #[schema(required)]
    hint: Option<String>,
}

/// What a call with its arguments in the query may be refused with, for the document, beside 400.
pub(super) struct ReadRefusals;

impl IntoResponses for ReadRefusals {
    fn responses() -> BTreeMap<String, RefOr<DescribedResponse>> {
        described(&[401, 403, 404, 406, 500, 503])
    }
}

/// What a call with its arguments in the body may be refused with, for the document, beside 400.
pub(super) struct CallRefusals;

impl IntoResponses for CallRefusals {
    fn responses() -> BTreeMap<String, RefOr<DescribedResponse>> {
        described(&[401, 403, 404, 406, 408, 413, 500, 503])
    }
}

fn described(statuses: &[u16]) -> BTreeMap<String, RefOr<DescribedResponse>> {
    let each = statuses.iter().map(|status| {
        let description = match status {
            401 => "There is no key, or a wrong one.",
            403 => "The key is known, and may not call.",
            404 => "No function takes arguments of these names (`PGRST202`).",
            406 => "The answer cannot be given in the form or the schema that was asked for.",
            408 => "The body did not arrive in time.",
            413 => "The body is too large.",
            503 => "The store cannot be used now, or no service key is set.",
            _ => "Something went wrong here; the log has it under the request's id.",
        };
        let form = Content::new(Some(Ref::from_schema_name(Body::name())));
        let mut response = ResponseBuilder::new().description(description).content("application/json", form);
        if *status == 503 {
            response = response.header("Retry-After", refusals::retry_after());
        }
        (status.to_string(), response.build().into())
    });
    each.collect()
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let body = Body { code, message: message.into(), details: None, hint: None };
        Self { status, header: None, body: Box::new(body) }
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    fn details(mut self, details: String) -> Self {
        self.body.details = Some(details);
        self
    }

    fn hint(mut self, hint: String) -> Self {
        self.body.hint = Some(hint);
        self
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &'static str {
        self.body.code
    }

    // --- who is asking

    pub(super) fn no_service_key() -> Self {
        let message = "leads.service_role_key is not set, so this address stays closed";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST300", message)
    }

    pub(super) fn no_key() -> Self {
        let message = "No API key found in request";
        Self::new(StatusCode::UNAUTHORIZED, "PGRST302", message).with(WWW_AUTHENTICATE, "Bearer")
    }

    /// The same for every wrong guess, byte for byte.
    pub(super) fn wrong_key() -> Self {
        let challenge = "Bearer error=\"invalid_token\", error_description=\"Invalid API key\"";
        Self::new(StatusCode::UNAUTHORIZED, "PGRST301", "Invalid API key").with(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn permission_denied(function: Option<&str>) -> Self {
        let message = match function {
            None => format!("permission denied for schema {SCHEMA}"),
            Some(name) => format!("permission denied for function {}", shortened(name)),
        };
        Self::new(StatusCode::FORBIDDEN, "42501", message)
    }

    // --- what is asked

    pub(super) fn unknown_schema(name: &str) -> Self {
        let message = format!("Invalid schema: {}", shortened(name));
        Self::new(StatusCode::NOT_ACCEPTABLE, "PGRST106", message)
            .hint(format!("Only the following schemas are exposed: {SCHEMA}"))
    }

    pub(super) fn wrong_method(method: &str) -> Self {
        let message = format!("Cannot use the {} method on RPC", shortened(method));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "PGRST101", message).with(ALLOW, "OPTIONS,GET,HEAD,POST")
    }

    /// PostgREST runs a `GET` in a transaction that may only read, and PostgreSQL refuses the change.
    pub(super) fn changes_on_read() -> Self {
        let message = "cannot execute UPDATE in a read-only transaction";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "25006", message).with(ALLOW, "OPTIONS,POST")
    }

    pub(super) fn wrong_content_type(essence: &str) -> Self {
        let message = format!("Content-Type not acceptable: {}", shortened(essence));
        Self::new(StatusCode::BAD_REQUEST, "PGRST102", message)
    }

    pub(super) fn not_json() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "PGRST102", "Empty or invalid json")
    }

    pub(super) fn not_implemented(parameter: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "PGRST127", "Feature not implemented").details(format!(
            "A function's answer is given as a whole; the query parameter '{}' is not taken.",
            shortened(parameter)
        ))
    }

    /// No function of this name takes arguments of these names; `known` are the parameters of the one of that name.
    pub(super) fn no_function(name: &str, arguments: &[&str], is_post: bool, known: Option<&[&str]>) -> Self {
        let function = format!("{SCHEMA}.{}", shortened(name));
        let listed = list(arguments);
        let (brief, long) = match arguments.len() {
            0 => (" without parameters".to_owned(), " without parameters".to_owned()),
            1 => (format!("({listed})"), format!(" with parameter {listed}")),
            _ => (format!("({listed})"), format!(" with parameters {listed}")),
        };
        let or_json = if is_post { " or with a single unnamed json/jsonb parameter" } else { "" };
        let refusal = Self::new(
            StatusCode::NOT_FOUND,
            "PGRST202",
            format!("Could not find the function {function}{brief} in the schema cache"),
        )
        .details(format!(
            "Searched for the function {function}{long}{or_json}, but no matches were found in the schema cache."
        ));
        match known {
            Some(known) => {
                refusal.hint(format!("Perhaps you meant to call the function {function}({})", known.join(", ")))
            }
            None => refusal,
        }
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "PGRST125", "Invalid path specified in request URL")
    }

    pub(super) fn not_acceptable<'a>(ranges: impl Iterator<Item = &'a str>) -> Self {
        let ranges: Vec<&str> = ranges.collect();
        let message = format!("None of these media types are available: {}", list(&ranges));
        Self::new(StatusCode::NOT_ACCEPTABLE, "PGRST107", message)
    }

    // --- the values of its arguments

    pub(super) fn invalid_text(kind: &str, text: &str) -> Self {
        let message = format!("invalid input syntax for type {kind}: \"{}\"", shortened(text));
        Self::new(StatusCode::BAD_REQUEST, "22P02", message)
    }

    pub(super) fn out_of_range(kind: &str, text: &str) -> Self {
        let message = format!("value \"{}\" is out of range for type {kind}", shortened(text));
        Self::new(StatusCode::BAD_REQUEST, "22003", message)
    }

    pub(super) fn nul_in_text() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "22P05", "unsupported Unicode escape sequence")
            .details("\\u0000 cannot be converted to text.".to_owned())
    }

    // --- what came of it

    /// What the function itself raises; the message is the contract's word.
    pub(super) fn raised(message: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "P0001", message)
    }

    /// What it was to write may still be written.
    pub(super) fn unavailable() -> Self {
        let message = "The store is not available now; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", message)
    }

    fn internal() -> Self {
        let message = "Something went wrong here; the log has it under this request's id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", message)
    }
}

impl From<StoreError> for Refusal {
    /// As elsewhere on this edge, where the wait is known, too; but without the store's own words.
    fn from(error: StoreError) -> Self {
        let problem = Problem::from(error);
        let mut refusal =
            if problem.status() == StatusCode::SERVICE_UNAVAILABLE { Self::unavailable() } else { Self::internal() };
        refusal.header = problem.header();
        refusal
    }
}

impl From<Unread> for Refusal {
    fn from(unread: Unread) -> Self {
        let (status, message) = match unread {
            Unread::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
            Unread::TooSlow => (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"),
            Unread::BrokenOff => (StatusCode::BAD_REQUEST, "The body ended early or was framed wrongly"),
        };
        Self::new(status, "PGRST102", message)
    }
}

impl From<Cut> for Refusal {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Panic => Self::internal(),
            Cut::TooSlow => Self::unavailable(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self.body).expect("a refusal is made of texts");
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.header);
        response
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_WORD) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn list(words: &[&str]) -> String {
    let mut shown: Vec<Cow<'_, str>> = words.iter().take(MOST_WORDS).map(|word| shortened(word)).collect();
    if words.len() > MOST_WORDS {
        shown.push(Cow::Borrowed("…"));
    }
    shown.join(", ")
}

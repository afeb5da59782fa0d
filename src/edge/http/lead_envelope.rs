//! What the site's form is answered: the lead envelope, whose keys and codes the form's script knows byte for byte.
//!
//! An error tells a code and nothing else: no field, no limit, no text of the store.

use std::collections::BTreeMap;

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::{self as openapi, ResponseBuilder};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{Content, Ref, RefOr};
use utoipa::{IntoResponses, ToSchema};

use super::decode::Unread;
use super::openapi::refusals;
use crate::kernel::store::StoreError;
use crate::leads::{Answer, NotificationStatus};

/// An answer of `/leads`, without its CORS headers.
#[derive(Debug)]
pub(super) enum Reply {
    /// The page may post; nothing more to say.
    MayPost,
    Taken {
        duplicate: bool,
        request_id: String,
        status: NotificationStatus,
    },
    Refused {
        why: Refusal,
        /// The one that was sent, if it is one.
        request_id: Option<String>,
        retry_after_seconds: Option<i64>,
    },
}

/// Why no lead was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    OriginNotAllowed,
    MethodNotAllowed,
    ContentTypeNotSupported,
    PayloadTooLarge,
    /// The contract has no word for it; the browser's connection is what was slow.
    BodyTooSlow,
    InvalidJson,
    RateLimitExceeded,
    RequestRejected,
    ValidationFailed,
    LeadStorageFailed,
    BackendUnavailable,
}

impl Refusal {
    const ALL: [Self; 11] = [
        Self::OriginNotAllowed,
        Self::MethodNotAllowed,
        Self::ContentTypeNotSupported,
        Self::PayloadTooLarge,
        Self::BodyTooSlow,
        Self::InvalidJson,
        Self::RateLimitExceeded,
        Self::RequestRejected,
        Self::ValidationFailed,
        Self::LeadStorageFailed,
        Self::BackendUnavailable,
    ];

    const fn code(self) -> &'static str {
        match self {
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::ContentTypeNotSupported => "content_type_not_supported",
            Self::PayloadTooLarge => "payload_too_large",
            Self::BodyTooSlow => "body_too_slow",
            Self::InvalidJson => "invalid_json",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::RequestRejected => "request_rejected",
            Self::ValidationFailed => "validation_failed",
            Self::LeadStorageFailed => "lead_storage_failed",
            Self::BackendUnavailable => "backend_unavailable",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::OriginNotAllowed => StatusCode::FORBIDDEN,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentTypeNotSupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::InvalidJson => StatusCode::BAD_REQUEST,
            Self::RateLimitExceeded => StatusCode::TOO_MANY_REQUESTS,
            // A robot is not told that it was found out.
            Self::RequestRejected => StatusCode::ACCEPTED,
            Self::ValidationFailed => StatusCode::UNPROCESSABLE_ENTITY,
            Self::LeadStorageFailed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BackendUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// What a post may be refused with, for the document.
pub(super) struct PostRefusals;

impl IntoResponses for PostRefusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        described(Refusal::ALL.into_iter().filter(|why| *why != Refusal::MethodNotAllowed))
    }
}

/// What a preflight may be refused with.
pub(super) struct PreflightRefusals;

impl IntoResponses for PreflightRefusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        described([Refusal::OriginNotAllowed, Refusal::LeadStorageFailed, Refusal::BackendUnavailable].into_iter())
    }
}

/// Each by its status; no two have the same.
fn described(refusals: impl Iterator<Item = Refusal>) -> BTreeMap<String, RefOr<openapi::Response>> {
    let each = refusals.map(|why| {
        let form = Ref::from_schema_name(RefusedBody::name());
        let mut response = ResponseBuilder::new()
            .description(format!("`{}`", why.code()))
            .content("application/json", Content::new(Some(form)));
        if why != Refusal::OriginNotAllowed {
            let origin =
                HeaderBuilder::new().description(Some("The page's own origin, if it is an allowed one.")).build();
            response = response.header("Access-Control-Allow-Origin", origin);
        }
        if why == Refusal::RateLimitExceeded {
            response = response.header("Retry-After", refusals::retry_after());
        }
        (why.status().as_u16().to_string(), response.build().into())
    });
    each.collect()
}

impl From<Refusal> for Reply {
    fn from(why: Refusal) -> Self {
        Self::Refused { why, request_id: None, retry_after_seconds: None }
    }
}

impl From<Unread> for Refusal {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::TooLarge => Self::PayloadTooLarge,
            Unread::TooSlow => Self::BodyTooSlow,
            // Half a body is no object.
            Unread::BrokenOff => Self::InvalidJson,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        if error.is_store_fault() {
            return Self::BackendUnavailable;
        }
        tracing::error!(%error, "a lead could not be stored in a way that was not foreseen");
        Self::LeadStorageFailed
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        let refused = |why, request_id| Self::Refused { why, request_id, retry_after_seconds: None };
        match answer {
            Answer::Stored { request_id, status } => Self::Taken { duplicate: false, request_id, status },
            Answer::Known { request_id, status } => Self::Taken { duplicate: true, request_id, status },
            Answer::RateLimited { request_id, retry_after_seconds } => Self::Refused {
                why: Refusal::RateLimitExceeded,
                request_id,
                retry_after_seconds: Some(retry_after_seconds),
            },
            Answer::Spam { request_id } => refused(Refusal::RequestRejected, request_id),
            Answer::Invalid { request_id, .. } => refused(Refusal::ValidationFailed, request_id),
        }
    }
}

impl Reply {
    /// One word for what came of it: the code of a refusal, or how it was taken.
    pub(super) const fn outcome(&self) -> &'static str {
        match self {
            Self::MayPost => "preflight",
            Self::Taken { duplicate: false, .. } => "stored",
            Self::Taken { duplicate: true, .. } => "duplicate",
            Self::Refused { why, .. } => why.code(),
        }
    }
}

/// A lead that is stored.
#[derive(Serialize, ToSchema)]
#[schema(as = LeadTaken)]
pub(super) struct TakenBody<'a> {
    #[schema(schema_with = yes)]
    ok: bool,
    #[schema(schema_with = yes)]
    success: bool,
    /// Whether it was stored before.
    duplicate: bool,
    /// The id that the form gave it.
    request_id: &'a str,
    /// Whether the broker has been told of it.
    #[schema(schema_with = statuses)]
    notification_status: &'a str,
}

/// Why no lead was stored. A code and nothing else.
#[derive(Serialize, ToSchema)]
#[schema(as = LeadRefused)]
pub(super) struct RefusedBody<'a> {
    #[schema(schema_with = no)]
    ok: bool,
    #[schema(schema_with = no)]
    success: bool,
    #[schema(schema_with = codes)]
    error_code: &'a str,
    /// The id that the form gave it, if it is one.
    #[schema(required)]
    request_id: Option<&'a str>,
    /// When the next hour begins; with 429 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    retry_after_seconds: Option<i64>,
}

fn yes() -> Object {
    only(Type::Boolean, [true])
}

fn no() -> Object {
    only(Type::Boolean, [false])
}

fn statuses() -> Object {
    only(Type::String, NotificationStatus::ALL.map(NotificationStatus::as_str))
}

fn codes() -> Object {
    only(Type::String, Refusal::ALL.map(Refusal::code))
}

fn only<const N: usize, T: Into<serde_json::Value>>(kind: Type, values: [T; N]) -> Object {
    ObjectBuilder::new().schema_type(kind).enum_values(Some(values)).build()
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self {
            Self::MayPost => StatusCode::NO_CONTENT.into_response(),
            Self::Taken { duplicate, request_id, status } => {
                let body = TakenBody {
                    ok: true,
                    success: true,
                    duplicate,
                    request_id: &request_id,
                    notification_status: status.as_str(),
                };
                let code = if duplicate { StatusCode::OK } else { StatusCode::CREATED };
                json(code, &body)
            }
            Self::Refused { why, request_id, retry_after_seconds } => {
                let error_code = why.code();
                let request_id = request_id.as_deref();
                let body = RefusedBody { ok: false, success: false, error_code, request_id, retry_after_seconds };
                let mut response = json(why.status(), &body);
                let headers = response.headers_mut();
                headers.extend(retry_after_seconds.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds))));
                if why == Refusal::MethodNotAllowed {
                    headers.insert(ALLOW, HeaderValue::from_static("POST, OPTIONS"));
                }
                response
            }
        }
    }
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_string(body).expect("an envelope is made of texts and numbers");
    (status, [(CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_not_there_is_503_and_one_that_refuses_is_500() {
        for error in [
            StoreError::Busy,
            StoreError::QueueFull,
            StoreError::DiskLow,
            StoreError::DiskFull,
            StoreError::ReadOnly,
            StoreError::Io,
            StoreError::Damaged,
            StoreError::Displaced,
            StoreError::Closed,
        ] {
            assert_eq!(Refusal::from(error).code(), "backend_unavailable");
        }
        for error in [StoreError::NoRow, StoreError::Constraint(275)] {
            let reply = Reply::from(Refusal::from(error));
            assert_eq!((reply.outcome(), reply.into_response().status().as_u16()), ("lead_storage_failed", 500));
        }
    }
}

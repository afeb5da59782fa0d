//! How the Bot API says no, and the texts it says it with; clients match on these texts, so they are the real server's.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// An error answer: HTTP status and `error_code` are the same number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) description: String,
    /// Seconds; also sent as `Retry-After`.
    pub(super) retry_after: Option<u64>,
    pub(super) migrate_to_chat_id: Option<i64>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, description: impl Into<String>) -> Self {
        Self { status, description: description.into(), retry_after: None, migrate_to_chat_id: None }
    }

    pub(super) fn bad_request(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("Bad Request: {what}"))
    }

    pub(super) fn conflict(what: &str) -> Self {
        Self::new(StatusCode::CONFLICT, format!("Conflict: {what}"))
    }

    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    }

    /// The malformed token: the server does not say more.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    pub(super) fn method_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found: method not found")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.status.as_u16();
        let mut body = json!({"ok": false, "error_code": code, "description": self.description});
        let mut parameters = Map::new();
        if let Some(seconds) = self.retry_after {
            parameters.insert("retry_after".into(), seconds.into());
        }
        if let Some(chat_id) = self.migrate_to_chat_id {
            parameters.insert("migrate_to_chat_id".into(), chat_id.into());
        }
        if !parameters.is_empty() {
            body["parameters"] = Value::Object(parameters);
        }
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (self.status, json, body.to_string()).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

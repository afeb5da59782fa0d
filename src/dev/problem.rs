//! How `/dev/*` says no: `application/problem+json`, and the readers of bodies and queries that answer with it.

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Far above anything a test sends on purpose, far below what would hurt.
pub(super) const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// A refusal of a `/dev/*` endpoint.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    /// 400: the request cannot be read at all.
    pub(super) fn unreadable(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, detail: detail.into() }
    }

    /// 422: readable, and makes no sense; `detail` names the field.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, detail: detail.into() }
    }

    /// 403: whoever asks is not one that these endpoints obey.
    pub(super) fn foreign(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, detail: detail.into() }
    }

    /// 404: there is nothing of that name.
    pub(super) fn unknown(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, detail: detail.into() }
    }

    /// 503: not now.
    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, detail: detail.into() }
    }

    pub(super) fn too_large() -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, detail: format!("the body is larger than {BODY_LIMIT} bytes") }
    }

    /// 405, as the fallback of the routes that have other methods.
    pub(super) async fn wrong_method() -> Self {
        Self { status: StatusCode::METHOD_NOT_ALLOWED, detail: "this path has no such method".into() }
    }

    /// 500: the directory of `dev` could not be written; the log has the cause.
    pub(super) fn not_written(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %error, "dev could not write its directory");
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, detail: "the data directory could not be written".into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let body =
            json!({"type": "about:blank", "title": title, "status": self.status.as_u16(), "detail": self.detail});
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
        (self.status, json, body.to_string()).into_response()
    }
}

/// A JSON body, whatever its content type says: these endpoints are typed by hand with curl.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let bytes = to_bytes(request.into_body(), BODY_LIMIT).await.map_err(|_| Problem::too_large())?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.inner().classify() {
            serde_json::error::Category::Data => Problem::invalid(error.to_string()),
            _ => Problem::unreadable(format!("the body is not JSON: {}", error.inner())),
        })?;
        reader.end().map_err(|error| Problem::unreadable(format!("the body is not one JSON value: {error}")))?;
        Ok(Self(value))
    }
}

/// Query parameters.
pub(super) struct QueryOf<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(value)| Self(value)).map_err(|error| Problem::unreadable(error.body_text()))
    }
}

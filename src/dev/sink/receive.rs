//! What a receiver does with a request: writes it down, checks its signature, answers as it was told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Entry, Name, Program, Received, Sink};
use crate::dev::problem::{BODY_LIMIT, Problem};
use crate::dev::signature::{Key, Moment, Signed};
use crate::kernel::clock::rfc3339;

pub(super) async fn receive(State(sink): State<Sink>, Name(name): Name, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_LIMIT).await.map_err(|_| Problem::too_large())?;
    let program = sink.write_down(name, &parts, &body)?;
    tokio::time::sleep(Duration::from_millis(program.delay_ms)).await;
    Ok(program.answer())
}

impl Sink {
    /// Returns how the receiver was programmed at that moment.
    fn write_down(&self, name: String, parts: &Parts, body: &[u8]) -> Result<Program, Problem> {
        let mut kept = self.kept();
        let receiver = kept.receivers.entry(name.clone()).or_default();
        let (program, ordinal) = (receiver.program.clone(), receiver.came + 1);
        let now = self.0.clock.now();
        let key = program.secret.as_deref().and_then(Key::parse);
        let text = std::str::from_utf8(body).ok();
        let request = Received {
            ordinal,
            method: parts.method.to_string(),
            query: parts.uri.query().map(str::to_owned),
            headers: readable(&parts.headers),
            body: text.map(str::to_owned),
            body_base64: text.is_none().then(|| STANDARD.encode(body)),
            received_at: rfc3339(now),
            verified: key.map(|key| signed(&parts.headers).check(&key, body, Moment::usual(now)).is_ok()),
        };
        kept.commit(Entry::Received { name, request: Arc::new(request) })?;
        Ok(program)
    }
}

impl Program {
    fn answer(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let (content_type, body) = match self.body {
            None => (None, String::new()),
            Some(Value::String(text)) => (Some("text/plain; charset=utf-8"), text),
            Some(json) => (Some("application/json"), json.to_string()),
        };
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// What the headers say of the signature; the first of each name counts.
pub(in crate::dev) fn signed(headers: &HeaderMap) -> Signed<'_> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    Signed { id: text("webhook-id"), timestamp: text("webhook-timestamp"), signatures: text("webhook-signature") }
}

/// The headers by name; a name that came twice has both values, with a comma between.
fn readable(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut readable = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let before = readable.entry(name.to_string()).or_default();
        if !before.is_empty() {
            before.push_str(", ");
        }
        before.push_str(&value);
    }
    readable
}

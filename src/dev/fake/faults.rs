//! Faults: what a test arms so that the next matching calls fail, are late, or lose their answer.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Method, answer};
use super::refusal::Refusal;
use crate::dev::problem::Problem;

/// One armed fault, as it is posted and listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// Only this method, in any case; absent means all but those that a bot calls by itself to hear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat_id: Option<i64>,
    /// Absent or 200: the call is carried out. Anything else: it is not, and this is its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    migrate_to_chat_id: Option<i64>,
    /// Sent as it is instead of the Bot API's JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Real time, and after the call was carried out.
    #[serde(default, skip_serializing_if = "is_zero")]
    delay_ms: u64,
    /// The call is carried out, and the connection closed without an answer.
    #[serde(default, skip_serializing_if = "is_false")]
    drop_response: bool,
    #[serde(default = "once")]
    times: u64,
}

fn once() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Fault {
    /// Fills in what follows from the rest, and refuses what could never match or would change nothing.
    pub(super) fn checked(mut self) -> Result<Self, Problem> {
        if let Some(unknown) = self.method.as_ref().filter(|name| Method::find(name).is_none()) {
            return Err(Problem::invalid(format!("method: the fake has no method {unknown:?}")));
        }
        if self.times == 0 {
            return Err(Problem::invalid("times: must be at least 1"));
        }
        if self.status.is_none() {
            self.status = match (self.retry_after, self.migrate_to_chat_id) {
                (Some(_), _) => Some(429),
                (_, Some(_)) => Some(400),
                _ => None,
            };
        }
        match self.status {
            Some(200) => {}
            Some(code) if (300..=599).contains(&code) => {}
            Some(_) => return Err(Problem::invalid("status: must be 200 or between 300 and 599")),
            None if self.drop_response || self.delay_ms > 0 || self.body.is_some() => {}
            None => return Err(Problem::invalid("status: without it, delay_ms, drop_response or body must be given")),
        }
        if self.content_type.as_ref().is_some_and(|text| HeaderValue::from_str(text).is_err()) {
            return Err(Problem::invalid("content_type: not a header value"));
        }
        Ok(self)
    }

    fn matches(&self, method: Method, chat_id: Option<i64>) -> bool {
        let of_method = match self.method.as_deref() {
            Some(name) => Method::find(name) == Some(method),
            // A bot that polls would take it before whatever it is meant for.
            None => !method.is_of_the_intake(),
        };
        of_method && self.chat_id.is_none_or(|wanted| chat_id == Some(wanted))
    }

    /// Whether the call is carried out although this fault answers it.
    pub(super) fn lets_through(&self) -> bool {
        self.drop_response || self.status.is_none_or(|code| code == 200)
    }

    /// The answer; `outcome` is there when the call was carried out.
    pub(super) async fn answer(self, outcome: Option<Result<Value, Refusal>>) -> Response {
        tokio::time::sleep(Duration::from_millis(self.delay_ms)).await;
        if self.drop_response {
            return no_answer();
        }
        let status = self.status.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::OK);
        match (self.body, outcome) {
            (Some(body), _) => {
                let content_type = self.content_type.as_deref().unwrap_or("text/html");
                let content_type = HeaderValue::from_str(content_type).expect("was checked when it was armed");
                let mut response = (status, [(header::CONTENT_TYPE, content_type)], body).into_response();
                if let Some(seconds) = self.retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                }
                response
            }
            (None, Some(outcome)) => answer(outcome),
            (None, None) => {
                let description = self.description.unwrap_or_else(|| usual_text(status, self.retry_after));
                let (retry_after, migrate_to_chat_id) = (self.retry_after, self.migrate_to_chat_id);
                Refusal { status, description, retry_after, migrate_to_chat_id }.into_response()
            }
        }
    }
}

/// A body that fails before its first byte: the HTTP server then closes the connection and has sent nothing, not even
/// the status line, which it would only have flushed together with the body.
fn no_answer() -> Response {
    let broken = std::io::Error::other("the answer is dropped on purpose");
    Body::from_stream(futures_util::stream::iter([Err::<Vec<u8>, _>(broken)])).into_response()
}

/// What the real server most often says with this status.
fn usual_text(status: StatusCode, retry_after: Option<u64>) -> String {
    match (status.as_u16(), retry_after) {
        (400, _) => "Bad Request: group chat was upgraded to a supergroup chat".into(),
        (403, _) => "Forbidden: bot was blocked by the user".into(),
        (409, _) => format!("Conflict: {}", super::polling::OTHER_POLLER),
        (429, Some(seconds)) => format!("Too Many Requests: retry after {seconds}"),
        _ => status.canonical_reason().unwrap_or("Error").into(),
    }
}

/// The armed faults; the first added that matches wins.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn list(&self) -> &[Fault] {
        &self.0
    }

    /// The fault that answers this call, which has one time less from now on.
    pub(super) fn take(&mut self, method: Method, chat_id: Option<i64>) -> Option<Fault> {
        let at = self.0.iter().position(|fault| fault.matches(method, chat_id))?;
        self.0[at].times -= 1;
        match self.0[at].times {
            0 => Some(self.0.remove(at)),
            _ => Some(self.0[at].clone()),
        }
    }
}

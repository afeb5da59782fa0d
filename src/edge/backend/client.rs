//! The contract's calls over HTTP: what was answered, in the terms that the consumer can act on.
//!
//! The secret is only in a header that is marked as sensitive; of a failure only short codes leave this file.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::json;

use super::ClientError;
use super::wire::{AccountBody, AckBody, LeaderBody, Page, Reasons, read_answer, read_page};
use crate::config::RemoteBackend;
use crate::kernel::contract::{Bound, ConnectLink, Leader, MemberState, TAKES_REASONS, WebNotification};
use crate::kernel::loopback::is_loopback;
use crate::onboarding::BackendError;

/// No page is longer: 500 events with the largest payload that our own side takes.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
/// A kept connection is dropped before Node.js does it, after five seconds: a request on a connection that is just
/// being closed fails.
const IDLE: Duration = Duration::from_secs(4);
/// The code of an attempt that certainly had no effect.
pub(super) const NO_CONNECTION: &str = "no_connection";

/// The code of a backend that knows no site.
const NO_SITE: &str = "site_url_not_set";

pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
}

/// An answer of success.
struct Answer {
    body: Result<Vec<u8>, BackendError>,
    reasons: Reasons,
}

impl Client {
    pub(super) fn new(remote: &RemoteBackend, connect: Duration, call: Duration) -> Result<Self, ClientError> {
        let base = remote.url.clone();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(ClientError::Address);
        }
        let mut authorization = HeaderValue::from_bytes(format!("Bearer {}", remote.secret.expose()).as_bytes())
            .map_err(|_| ClientError::Secret)?;
        authorization.set_sensitive(true);
        let mut builder = reqwest::Client::builder()
            .timeout(call)
            .connect_timeout(connect)
            .pool_idle_timeout(IDLE)
            // Following one would show the secret elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        // No proxy could reach this machine's own address.
        if base.host_str().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|_| ClientError::Transport)?;
        Ok(Self { http, base, authorization })
    }

    /// `GET /bot/events/pending`.
    pub(super) async fn pending(&self, limit: i64) -> Result<(Page, Reasons), BackendError> {
        let mut url = self.url(&["bot", "events", "pending"]);
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        let answer = self.send(self.http.request(Method::GET, url)).await?;
        Ok((read_page(&answer.body?)?, answer.reasons))
    }

    /// `POST /bot/events/ack`. The counts that it answers are the backend's to log.
    pub(super) async fn ack(&self, ack: &AckBody) -> Result<(), BackendError> {
        let url = self.url(&["bot", "events", "ack"]);
        self.send(self.http.request(Method::POST, url).json(ack)).await.map(|_| ())
    }

    /// `POST /bot/notification`. The key by which ours are stored once is not in the contract, and a strict backend
    /// refuses what it does not know: then it is left out.
    pub(super) async fn notify(&self, notification: &WebNotification) -> Result<(), BackendError> {
        let url = self.url(&["bot", "notification"]);
        let post =
            |notification: &WebNotification| self.send(self.http.request(Method::POST, url.clone()).json(notification));
        match post(notification).await {
            Err(BackendError::Refused(code)) if code.starts_with("http_400") || code.starts_with("http_422") => {
                post(&WebNotification { dedup_key: None, ..notification.clone() }).await.map(|_| ())
            }
            answered => answered.map(|_| ()),
        }
    }

    /// `GET /bot/leader/resolve`.
    pub(super) async fn leader(&self, code: &str) -> Result<Option<Leader>, BackendError> {
        let mut url = self.url(&["bot", "leader", "resolve"]);
        url.query_pairs_mut().append_pair("code", code);
        let found: Option<LeaderBody> = self.find(Method::GET, url).await?;
        Ok(found.map(|leader| leader.into_leader(code)))
    }

    /// `GET /auth/check-account-by-telegram/{id}`.
    pub(super) async fn account(&self, telegram_id: i64) -> Result<Option<i64>, BackendError> {
        let url = self.url(&["auth", "check-account-by-telegram", &telegram_id.to_string()]);
        let found: Option<AccountBody> = self.find(Method::GET, url).await?;
        found.map_or(Ok(None), AccountBody::into_uid)
    }

    /// `GET /bot/user/state`.
    pub(super) async fn state(&self, telegram_id: i64) -> Result<Option<MemberState>, BackendError> {
        let mut url = self.url(&["bot", "user", "state"]);
        url.query_pairs_mut().append_pair("telegramId", &telegram_id.to_string());
        self.find(Method::GET, url).await
    }

    /// `POST /bot/telegram/connect-link`; `None` from a backend that knows no site.
    pub(super) async fn connect_link(&self, telegram_id: i64) -> Result<Option<ConnectLink>, BackendError> {
        let url = self.url(&["bot", "telegram", "connect-link"]);
        let body = json!({ "telegramId": telegram_id.to_string() });
        match self.send(self.http.request(Method::POST, url).json(&body)).await {
            Err(BackendError::Unreachable(code)) if code.ends_with(NO_SITE) => Ok(None),
            answered => Ok(Some(read_answer(&answered?.body?)?)),
        }
    }

    /// `POST /bot/telegram/bind`. Whoever repeats it is told the same, so nothing is lost with an answer.
    pub(super) async fn bind(&self, telegram_id: i64, uid: i64) -> Result<Bound, BackendError> {
        let url = self.url(&["bot", "telegram", "bind"]);
        let body = json!({ "telegramId": telegram_id.to_string(), "magnetUid": uid });
        match self.send(self.http.request(Method::POST, url).json(&body)).await {
            Ok(_) => Ok(Bound::Now),
            Err(BackendError::Refused(code)) if code.starts_with("http_409") => Ok(Bound::Refused),
            Err(error) => Err(error),
        }
    }

    /// What is at this address; `None` if there is nothing.
    async fn find<T: for<'de> Deserialize<'de>>(&self, method: Method, url: Url) -> Result<Option<T>, BackendError> {
        match self.send(self.http.request(method, url)).await {
            Err(BackendError::Refused(code)) if code.starts_with("http_404") => Ok(None),
            answered => Ok(Some(read_answer(&answered?.body?)?)),
        }
    }

    /// An address below the base, which may have a path of its own.
    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, BackendError> {
        let request = request.header(AUTHORIZATION, self.authorization.clone()).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status();
        let reasons = if response.headers().contains_key(TAKES_REASONS) { Reasons::Taken } else { Reasons::NotTaken };
        let body = read_body(&mut response).await;
        if status.is_success() {
            // Whether the body arrived matters only to who reads it: the request was accepted.
            return Ok(Answer { body, reasons });
        }
        Err(refusal(status, &body.unwrap_or_default()))
    }
}

/// What an answer other than success means.
fn refusal(status: StatusCode, body: &[u8]) -> BackendError {
    let code = problem_code(body);
    let number = status.as_u16();
    let described = match &code {
        Some(code) => format!("http_{number} {code}"),
        None => format!("http_{number}"),
    };
    match number {
        401 | 403 => BackendError::Unauthorized,
        409 if code.as_deref() == Some("events_are_consumed_here") => BackendError::ConsumedThere,
        408 | 425 | 429 | 500..=599 => BackendError::Unreachable(described),
        400..=499 => BackendError::Refused(described),
        300..=399 => BackendError::Contract(format!("{described}; a redirect is not followed, see bot.remote_url")),
        _ => BackendError::Contract(described),
    }
}

/// The stable code of a problem document, if it is one and the code is a plain word.
fn problem_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ProblemBody {
        code: String,
    }
    let ProblemBody { code } = serde_json::from_slice(body).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (code.len() <= 40 && code.bytes().all(is_plain)).then_some(code)
}

/// What an error of the transport means.
fn lost(error: reqwest::Error) -> BackendError {
    let code = match &error {
        error if error.is_connect() => NO_CONNECTION,
        error if error.is_timeout() => "timeout",
        _ => "broken_connection",
    };
    tracing::debug!(error = %error.without_url(), code, "a call to the remote backend broke off");
    BackendError::Unreachable(code.to_owned())
}

async fn read_body(response: &mut Response) -> Result<Vec<u8>, BackendError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err(BackendError::Contract(format!("an answer of more than {LONGEST_ANSWER} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

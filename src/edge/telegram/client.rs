//! One call of the Bot API over HTTP: what was answered, or in which phase it failed.
//!
//! The token is part of the address, so no error of the transport leaves this file: only codes do.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use teloxide::requests::Payload;

use super::Failure;
use super::classify::{Answer, classify};
use crate::chat::{Class, FailureCode};
use crate::kernel::loopback::is_loopback;
use crate::kernel::secret::Secret;

/// No answer is longer than this; a hundred updates with long texts stay well below.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// A kept connection is dropped before the other side does it: a request on a connection that is just being closed
/// has an unknown outcome.
const IDLE: Duration = Duration::from_secs(20);

/// How the Bot API is reached.
#[derive(Clone, Debug)]
pub(crate) struct TelegramSettings {
    /// Its base address, without the token.
    pub(crate) api_url: String,
    /// The bot's token.
    pub(crate) token: Secret,
    /// How long a whole call may take.
    pub(crate) timeout: Duration,
    /// How long making the connection may take; shorter than `timeout`, so that the phase of a time-out is known.
    pub(crate) connect_timeout: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// The base address is no http(s) address.
    #[error("telegram.api_url is not an http or https address")]
    Address,
    /// The HTTP client could not be set up: TLS roots, or the proxy that the environment names.
    #[error("the HTTP client could not be set up")]
    Transport,
}

/// A client of the Bot API. One for each set of time-outs: a long poll needs others than a send.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: Secret,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Client {
    /// A client with these settings. It makes no connection yet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) fn new(settings: &TelegramSettings) -> Result<Self, ClientError> {
        let base = settings.api_url.trim_end_matches('/').to_owned();
        let url = Url::parse(&base).map_err(|_| ClientError::Address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ClientError::Address);
        }
        let mut builder = reqwest::Client::builder()
            .timeout(settings.timeout)
            .connect_timeout(settings.connect_timeout.min(settings.timeout))
            .pool_idle_timeout(IDLE)
            // A redirect is an answer like any other: following it would send twice, and show the token elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        // No proxy could reach this machine's own address.
        if url.host_str().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|_| ClientError::Transport)?;
        Ok(Self { http, base, token: settings.token.clone() })
    }

    /// Calls the payload's method once.
    ///
    /// # Errors
    /// [`Failure`] says whether it may have had its effect nevertheless.
    pub(crate) async fn call<P, T>(&self, payload: &P) -> Result<T, Failure>
    where
        P: Payload + Serialize,
        T: DeserializeOwned,
    {
        let body = serde_json::to_vec(payload).expect("payloads are plain structs with string keys");
        let url = Url::parse(&format!("{}/bot{}/{}", self.base, self.token.expose(), P::NAME))
            .map_err(|_| Failure::Refused { class: Class::Unauthorized, code: FailureCode::Unauthorized })?;
        let request = self.http.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await.map_err(|error| phase_of(&error))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(&response);
        let body = match read_body(&mut response).await {
            // The status alone decides what it can: a refusal stays one, however it is explained.
            Err(failure) if (200..300).contains(&status) => return Err(failure),
            Err(_) => Vec::new(),
            Ok(body) => body,
        };
        let result = classify(&Answer { status, retry_after, body: &body })?;
        // Accepted; but what was made of it cannot be read.
        serde_json::from_str(result.get()).map_err(|_| Failure::Unknown { code: FailureCode::BrokenAnswer })
    }
}

/// What an error of the transport means: before the connection stood, nothing was sent; afterwards nobody knows.
fn phase_of(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        return Failure::Refused { class: Class::Later, code: FailureCode::Connect };
    }
    let code = if error.is_timeout() { FailureCode::Timeout } else { FailureCode::BrokenConnection };
    Failure::Unknown { code }
}

async fn read_body(response: &mut Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| phase_of(&error))? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err(Failure::Unknown { code: FailureCode::BrokenAnswer });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

//! Handing a delivery on to the program that is being written, and its answer back to the sender.
//!
//! What belongs to a connection and not to the message stays with its connection (RFC 9110 §7.6.1). Of the answer goes
//! back what a sender of webhooks looks at: status, `retry-after`, `location`, and the beginning of the body.

use std::error::Error as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::Answer;
use crate::dev::Error;

/// Longer than a sender waits, so that what a slow program says is seen at least here.
const PATIENCE: Duration = Duration::from_secs(60);
/// More of a body no sender of webhooks reads.
const LONGEST_ANSWER: usize = 64 * 1024;

/// What is of one connection only, and what the client says anew.
const OF_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];
/// What goes back of the answer's headers.
const OF_ANSWER: [HeaderName; 3] = [header::CONTENT_TYPE, header::RETRY_AFTER, header::LOCATION];

/// The way to the program.
pub(crate) struct Forward {
    client: Client,
    url: Url,
}

impl Forward {
    /// A way to `url`: without proxies of the environment, and without following redirects.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub(crate) fn to(url: Url) -> Result<Self, Error> {
        let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(PATIENCE).build()?;
        Ok(Self { client, url })
    }

    /// Hands it on; what the program answered, and what the sender is answered.
    pub(super) async fn hand_on(&self, parts: Parts, body: Bytes) -> (Answer, Response) {
        let mut headers = parts.headers;
        OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
        let request = self.client.request(parts.method, self.url.clone()).headers(headers).body(body);
        match answer_of(request).await {
            Ok((status, headers, body)) => {
                (Answer::Forwarded(status.as_u16()), (status, headers, body).into_response())
            }
            Err(error) => {
                let why = reason(&error);
                let said = format!("the program behind --forward-to gave no answer: {why}");
                (Answer::Unreachable(why), (StatusCode::BAD_GATEWAY, said).into_response())
            }
        }
    }
}

async fn answer_of(request: reqwest::RequestBuilder) -> reqwest::Result<(StatusCode, HeaderMap, Vec<u8>)> {
    let mut response = request.send().await?;
    let mut headers = HeaderMap::new();
    for name in OF_ANSWER {
        if let Some(value) = response.headers().get(&name) {
            headers.insert(name, value.clone());
        }
    }
    let mut body = Vec::new();
    while body.len() < LONGEST_ANSWER
        && let Some(part) = response.chunk().await?
    {
        body.extend_from_slice(&part[..part.len().min(LONGEST_ANSWER - body.len())]);
    }
    Ok((response.status(), headers, body))
}

/// What the system says, without the address, which the one who gave it knows.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("none within {} s", PATIENCE.as_secs());
    }
    let causes = std::iter::successors(error.source(), |cause: &&dyn std::error::Error| (*cause).source());
    causes.last().map_or_else(|| "the connection broke".to_owned(), ToString::to_string)
}

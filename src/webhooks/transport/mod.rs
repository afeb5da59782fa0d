//! One HTTP request to a receiver: the only home of the HTTP client of webhooks, so that no request of theirs can be made
//! without the egress rules.
//!
//! **What.** [`Transport::post`] sends given bytes and answers what came of it. It never fails: every way in which a
//! request can end has its class.
//!
//! **Guarantees.**
//! - One deadline covers the lookup, the connection, TLS, the request, and the answer with its body:
//!   `src/webhooks/transport/tests/answers.rs::one_deadline_covers_everything`.
//! - The status decides as soon as it is there; a body that drips, breaks off or never ends changes nothing, only its
//!   beginning is read, and a second later it is waited for no longer:
//!   `src/webhooks/transport/tests/answers.rs::the_status_decides_whatever_becomes_of_the_body`,
//!   `src/webhooks/transport/tests/answers.rs::a_body_that_is_kept_back_is_not_waited_for_when_the_status_is_there`.
//! - An answer that never ends, provisional answers and the lines of a head among them, is cut off, and whoever writes it
//!   keeps nothing else from its turn, however fast: `src/webhooks/transport/tests/floods.rs::provisional_answers_without_end_are_no_answer_and_hold_up_nobody`,
//!   `src/webhooks/transport/tests/floods.rs::a_head_without_end_is_no_answer_and_holds_up_nobody`,
//!   `src/webhooks/transport/tests/floods.rs::a_body_without_end_changes_nothing_and_holds_up_nobody`,
//!   `src/webhooks/transport/tests/floods.rs::tls_that_never_comes_to_a_point_holds_up_nobody`.
//! - No request begins on a connection that is older than a minute, so that a name is looked up and judged again:
//!   `src/webhooks/transport/tests/guard.rs::a_connection_is_used_for_a_minute_and_then_the_name_is_judged_again`.
//! - Nothing is decompressed: `src/webhooks/transport/tests/answers.rs::a_compressed_body_is_kept_as_it_came`.
//! - The certificate must be for the name of the URL and by a trusted authority; TLS 1.2 is the least:
//!   `src/webhooks/transport/tests/tls.rs::only_a_valid_certificate_for_the_name_is_spoken_to`.
//! - No proxy, cookie, referer or redirect: `src/webhooks/transport/tests/guard.rs::a_redirect_is_a_failure_and_is_never_followed`.
//!
//! - What could not be begun, for want of a descriptor, a thread or a turn at the resolver, is told as interrupted and not
//!   as the receiver's failure: `src/webhooks/transport/tests/shortage.rs::without_a_descriptor_nothing_is_the_receivers_failure`,
//!   `src/webhooks/transport/tests/shortage.rs::a_lookup_that_never_began_is_not_the_receivers_failure`.
//!
//! **Not here.** No repeats (but what a connection that was closed beforehand never carried), no signing, no file.

mod classify;
mod client;
mod connect;
mod guard;
mod stream;
#[cfg(test)]
pub(in crate::webhooks) mod tests;
mod warm;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpInfo;
use tokio_rustls::rustls;
use url::Url;

use self::client::{Clients, IDLE};
use self::guard::Guard;
use self::warm::Warm;
use super::attempt::Outcome;
use super::egress::{Egress, Host, Judgement, UrlFault};
use super::resolve::{Begun, Resolver};
use super::response::{ErrorClass, KEPT, kept, retry_after};
use crate::kernel::clock::Clock;

/// Bytes of a body that are read, so that a connection whose answer has an ordinary body can be used again.
const READ: usize = 64 * 1024;

/// How much longer a body is waited for whose status is there. The status decides; whoever keeps the body back would hold
/// a slot, and a crash meanwhile would repeat what has arrived.
const BODY: Duration = Duration::from_secs(1);

/// How long somebody who writes an endpoint waits for name servers.
const LOOK_FIRST: Duration = Duration::from_secs(3);

/// How requests are made.
#[derive(Clone, Debug)]
pub(crate) struct TransportSettings {
    /// The longest that one request may take, all of it.
    pub(crate) timeout: Duration,
    /// Connections to one host that are kept while idle.
    pub(crate) idle_per_host: usize,
    /// A file of certificates, in PEM, that are trusted besides the usual ones.
    pub(crate) ca_file: Option<PathBuf>,
}

/// What keeps the transport from being made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TransportError {
    /// The certificates cannot be read.
    #[error("{path} cannot be read")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no certificates.
    #[error("{path} holds no certificate in PEM")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The client cannot be made of them.
    #[error("the HTTP client cannot be made")]
    Client(#[source] rustls::Error),
}

/// The client of webhooks; clones share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    clients: Arc<Clients>,
    egress: Egress,
    resolver: Resolver,
    /// The clock that `Retry-After` is read by.
    clock: Clock,
    warm: Arc<Warm>,
    timeout: Duration,
}

/// A judged address to send to. Kept between attempts, it knows where its connections lead.
#[derive(Debug)]
pub(crate) struct Target {
    uri: Uri,
    host: Host,
    /// The address that was last spoken to: a connection that is used again is not dialled again.
    last: Mutex<Option<IpAddr>>,
}

/// What becomes of a connection after its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Kept,
    Closed,
}

/// The headers of one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebhookHeaders<'a> {
    /// `webhook-id`.
    pub(crate) id: &'a str,
    /// `webhook-timestamp`: the seconds that were signed.
    pub(crate) at_s: i64,
    /// `webhook-signature`.
    pub(crate) signature: &'a str,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What is recorded of it.
    pub(crate) outcome: Outcome,
    headers: HeaderMap,
}

impl Target {
    /// The address that a judged URL names.
    pub(crate) fn new(url: Url) -> Result<Self, UrlFault> {
        let host = Host::of(&url).ok_or(UrlFault::Host)?;
        let uri = Uri::try_from(String::from(url)).map_err(|_| UrlFault::NotAUrl)?;
        Ok(Self { uri, host, last: Mutex::default() })
    }

    /// Host and port, as connections are kept by.
    fn authority(&self) -> &str {
        self.uri.authority().map_or_else(Default::default, |authority| authority.as_str())
    }

    fn last(&self) -> Option<IpAddr> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn was_at(&self, address: Option<IpAddr>) {
        if address.is_some() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = address;
        }
    }
}

impl Answer {
    /// What came of a request that the egress rules forbid.
    pub(crate) fn blocked() -> Self {
        Self::failed(ErrorClass::Blocked)
    }

    /// What came of a request that was never made.
    pub(crate) fn failed(error: ErrorClass) -> Self {
        Self::lost(error, Duration::ZERO, None)
    }

    fn lost(error: ErrorClass, duration: Duration, resolved_ip: Option<IpAddr>) -> Self {
        let (http_status, retry_after, response_body) = (None, None, None);
        let error = Some(error);
        let outcome = Outcome { duration, http_status, error, retry_after, response_body, resolved_ip };
        Self { outcome, headers: HeaderMap::new() }
    }

    /// The answer's headers; what is not text in them is shown as it can be.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, String)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    }
}

impl Transport {
    /// A client that keeps to these rules.
    ///
    /// # Errors
    /// The certificates, or what the client does not accept of them.
    pub(crate) fn new(
        settings: &TransportSettings,
        egress: Egress,
        resolver: Resolver,
        clock: Clock,
    ) -> Result<Self, TransportError> {
        let clients = Clients::new(settings, Guard::new(egress.clone(), resolver.clone()))?;
        let (clients, warm) = (Arc::new(clients), Arc::default());
        Ok(Self { clients, egress, resolver, clock, warm, timeout: settings.timeout })
    }

    /// The longest that one request takes.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The judge of where requests may go.
    pub(crate) fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Whether a webhook may go to that URL, as far as can be said before one does: for whoever writes an endpoint, who
    /// would hear of it with the first failure only. A name that leads nowhere, or not in time, may do so tomorrow.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) async fn check_url(&self, text: &str) -> Result<(), UrlFault> {
        let url = self.egress.check_url(text)?;
        if let Some(url::Host::Domain(name)) = url.host()
            && let Ok(Ok(found)) =
                tokio::time::timeout(LOOK_FIRST, self.resolver.resolve(name, &Begun::default())).await
            && found.iter().any(|address| self.egress.judge(*address) == Judgement::Refused)
        {
            return Err(UrlFault::NotPublic);
        }
        Ok(())
    }

    /// Sends `body` to `target`.
    pub(crate) async fn post(&self, target: &Target, headers: &WebhookHeaders<'_>, body: Vec<u8>) -> Answer {
        // The client asks no resolver about an address in figures.
        let dialled = match target.host {
            Host::Address(address) => match self.egress.judge(address) {
                Judgement::Permitted => Some(address),
                Judgement::Refused => return Answer::blocked(),
                Judgement::Untold => return Answer::failed(ErrorClass::Interrupted),
            },
            Host::Name => None,
        };
        let began = Instant::now();
        let deadline = tokio::time::Instant::now() + self.timeout;
        let held = self.warm.keep(target.authority(), self.timeout + IDLE);
        let connection = if held.is_some() { Connection::Kept } else { Connection::Closed };
        let request = async {
            let sent = self.request(target, headers, body, connection);
            let answer = tokio::time::timeout_at(deadline, sent).await;
            (answer, guard::dialled(), guard::is_in_line())
        };
        let (answer, asked, is_in_line) = guard::watching(request).await;
        let response = match answer {
            // Lookups of other names were in its way: the receiver has heard nothing of it.
            Err(_) | Ok(Err(ErrorClass::Timeout)) if is_in_line => {
                return Answer::lost(ErrorClass::Interrupted, began.elapsed(), None);
            }
            Ok(Ok(response)) => response,
            Ok(Err(class)) => {
                // What was refused, not found or not begun was not dialled.
                let is_dialled = !matches!(class, ErrorClass::Dns | ErrorClass::Blocked | ErrorClass::Interrupted);
                let at = dialled.or(asked).or_else(|| target.last()).filter(|_| is_dialled);
                return Answer::lost(class, began.elapsed(), at);
            }
            Err(_) => {
                let at = dialled.or(asked).or_else(|| target.last());
                return Answer::lost(ErrorClass::Timeout, began.elapsed(), at);
            }
        };
        let spoken_to = response.extensions().get::<HttpInfo>().map(|info| info.remote_addr().ip());
        let resolved_ip = spoken_to.or(dialled);
        target.was_at(resolved_ip);
        let deadline = deadline.min(tokio::time::Instant::now() + BODY);
        let (http_status, headers, body) = read(response, deadline).await;
        let wait = headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok());
        let outcome = Outcome {
            duration: began.elapsed(),
            http_status: Some(http_status),
            error: ErrorClass::of_status(http_status),
            retry_after: wait.and_then(|text| retry_after(http_status, text, self.clock.now())),
            response_body: Some(kept(&body)),
            resolved_ip,
        };
        drop(held);
        Answer { outcome, headers }
    }

    async fn request(
        &self,
        target: &Target,
        headers: &WebhookHeaders<'_>,
        body: Vec<u8>,
        connection: Connection,
    ) -> Result<Response<Incoming>, ErrorClass> {
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| ErrorClass::Protocol);
        let mut request = Request::new(Full::<Bytes>::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.uri.clone();
        let own = request.headers_mut();
        // These, and the host.
        own.reserve(8);
        own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        own.insert(HeaderName::from_static("webhook-id"), value(headers.id)?);
        own.insert(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(headers.at_s));
        own.insert(HeaderName::from_static("webhook-signature"), value(headers.signature)?);
        own.insert(USER_AGENT, HeaderValue::from_static(user_agent()));
        own.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if connection == Connection::Closed {
            own.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let answer = self.clients.current().request(request).await;
        answer.map_err(|error| classify::class_of(&error))
    }
}

/// Who we say that we are.
pub(crate) const fn user_agent() -> &'static str {
    concat!("pillarbox/", env!("CARGO_PKG_VERSION"))
}

/// Reads the beginning of the body, for as long as there is time.
async fn read(response: Response<Incoming>, deadline: tokio::time::Instant) -> (u16, HeaderMap, Vec<u8>) {
    let (head, mut coming) = response.into_parts();
    let mut body = Vec::new();
    let mut seen = 0;
    while seen < READ {
        let Ok(Some(Ok(frame))) = tokio::time::timeout_at(deadline, coming.frame()).await else { break };
        let Ok(chunk) = frame.into_data() else { continue };
        seen += chunk.len();
        // One more than is kept shows whether the last character goes on.
        body.extend_from_slice(&chunk[..chunk.len().min((KEPT + 4).saturating_sub(body.len()))]);
    }
    (head.status.as_u16(), head.headers, body)
}

//! The HTTP edge: the one home of axum. A handler decodes, makes one call of the domain, and encodes.
//!
//! **What.** [`router`] is the map of every address; [`serve()`] gives it a listener. `/bot/*` and `/auth/*` are the contract between a
//! backend and the bot (bearer secret); `/leads` takes what forms of allowed sites post (CORS); `/rest/v1/rpc/*` are the
//! functions of the leads' contract, for the service key, which also opens `/v1/leads/health`; the rest of `/v1/*` is the
//! tenants' (API keys); `/telegram/webhook` takes what Telegram brings (its secret token); `/livez`, `/readyz` and `/metrics` are for monitoring and tell nothing personal; `/openapi.json`
//! tells all of this to programs.
//!
//! **Guarantees.**
//! - Bad input is a 4xx `application/problem+json` that names the field, never a 500: `src/edge/http/tests/bad_input.rs`.
//! - `/rest` answers in PostgREST's shapes, errors too, and tells nothing to whoever may not call:
//!   `src/edge/http/tests/rest.rs`, `src/edge/http/tests/rest_rights.rs`.
//! - `/leads` answers in its own envelope, and an allowed page can read whatever it is answered, a fault or a time-out
//!   too: `src/edge/http/tests/leads.rs`.
//! - A body is read within a size and a time, a header within a time; a request ends within a time:
//!   `src/edge/http/tests/transport.rs`.
//! - Every answer carries `X-Request-Id`, every request leaves one access-log line (at `debug` for monitoring), and
//!   neither ever has a query string, a body or a secret in it:
//!   `src/edge/http/tests/monitoring.rs::a_request_leaves_one_line_that_tells_nothing_personal`.
//!
//! **Windows.** A caller that goes away may have had its write committed; every write of the contract can be repeated.
//!
//! **Not here.** What a request means (`backend`, `leads`, `outbox`, `webhooks`); TLS, which a reverse proxy ends.

mod auth;
mod bearer;
mod bot;
mod bot_bind;
mod bot_event_forms;
mod bot_events;
mod bot_lookups;
mod bot_notification;
mod chat_id;
mod client_ip;
mod decode;
mod error;
mod finish;
mod keys;
mod lead_envelope;
mod lead_form;
mod leads;
mod leads_health;
mod leftover;
mod metrics;
mod monitoring;
mod observe;
mod openapi;
mod rest;
mod serve;
mod telegram_webhook;
#[cfg(test)]
mod tests;
mod v1;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use axum::Router;
use axum::body::Bytes;
use axum::middleware::{from_fn, from_fn_with_state};
use ipnet::IpNet;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::Semaphore;
use url::Url;

pub(crate) use metrics::{install_metrics, keep_metrics_tidy};
pub(crate) use monitoring::ReadyCheck;
pub(crate) use serve::serve;
pub(crate) use v1::{DeliveryBody, EndpointBody, FIELDS as MEMBER_FIELDS, MemberForm, WebhookTools, read_member};

use super::telegram::WebhookDoor;
use crate::config::{BotConfig, EventSource, EventsConfig, HttpConfig, LeadsConfig};
use crate::kernel::secret::Secret;
use crate::kernel::store::Db;
use crate::leads::Hands;

/// What the handlers work with.
pub(crate) struct HttpState {
    pub(crate) db: Db,
    /// What `/bot` asks for; `None` keeps it closed.
    pub(crate) bot_secret: Option<Secret>,
    /// Where connect links lead; `None` if none are made.
    pub(crate) site_url: Option<Url>,
    /// Who consumes the bot events of this file.
    pub(crate) consumer: Consumer,
    pub(crate) limits: Limits,
    /// Whose `X-Forwarded-For` is believed.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Who may post leads and how often.
    pub(crate) leads: Arc<LeadsConfig>,
    /// The leads that this process is telling the broker of; the one who tells shares them.
    pub(crate) hands: Hands,
    /// Who may call `/rest` and `/v1/leads`.
    keys: keys::Keys,
    /// Whether tenants may post registered types only.
    pub(crate) strict_types: bool,
    /// What the addresses of endpoints work with.
    pub(crate) webhooks: WebhookTools,
    /// Those who may have something sent at once, and wait for what comes of it.
    test_seats: Arc<Semaphore>,
    /// Where Telegram brings updates; there in webhook mode only.
    pub(crate) door: Option<Arc<WebhookDoor>>,
    /// What `/metrics` shows.
    pub(crate) metrics: PrometheusHandle,
    /// What `/readyz` asks beside the store.
    pub(crate) checks: Vec<ReadyCheck>,
    store_probe: monitoring::StoreProbe,
    /// What `/openapi.json` shows; there as soon as there are routes.
    document: OnceLock<Bytes>,
}

/// Who consumes the bot events of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// This process; nobody may fetch them over HTTP.
    ThisProcess,
    /// Whoever fetches them.
    Fetching,
}

/// How much and how long is waited for. Times are real: transport does not follow a moved clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The largest body that is read, in bytes.
    pub(crate) body_bytes: usize,
    /// Until the headers are there; also how long a connection may stay idle.
    pub(crate) headers: Duration,
    /// Until the body is there.
    pub(crate) body: Duration,
    /// Until the answer is there; longer than another program may hold the write lock (10 s) with retries.
    pub(crate) request: Duration,
    /// Until a request that works in batches begins no further one: the last may have to wait for a busy store.
    pub(crate) batches: Duration,
    /// Until requests in flight are cut off at shutdown.
    pub(crate) shutdown: Duration,
    /// Connections at the same time; further ones wait in the system's backlog.
    pub(crate) connections: usize,
}

impl Limits {
    /// The limits of `config`, and those that nobody has needed to configure.
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            body_bytes: config.body_limit_bytes,
            headers: Duration::from_secs(10),
            body: Duration::from_secs(30),
            request: Duration::from_secs(60),
            batches: Duration::from_secs(15),
            shutdown: config.shutdown_timeout,
            // One descriptor each, well below the usual limit of 1024 for the whole process.
            connections: 512,
        }
    }
}

/// What of the configuration this edge works by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections<'a> {
    pub(crate) bot: &'a BotConfig,
    pub(crate) events: &'a EventsConfig,
    pub(crate) http: &'a HttpConfig,
    pub(crate) leads: &'a LeadsConfig,
}

impl HttpState {
    /// The state of these sections; `checks` may be filled afterwards.
    pub(crate) fn new(db: Db, sections: &Sections<'_>, webhooks: WebhookTools, metrics: PrometheusHandle) -> Self {
        let Sections { bot, events, http, leads } = *sections;
        let consumer = match bot.event_source {
            EventSource::Local => Consumer::ThisProcess,
            EventSource::Off | EventSource::Remote(_) => Consumer::Fetching,
        };
        Self {
            db,
            bot_secret: bot.backend_secret.clone(),
            site_url: bot.site_url.clone(),
            consumer,
            limits: Limits::new(http),
            trusted_proxies: http.trusted_proxies.clone(),
            leads: Arc::new(leads.clone()),
            keys: keys::Keys::new(leads.service_role_key.clone(), leads.anon_key.clone()),
            hands: Hands::default(),
            strict_types: events.strict_types,
            webhooks,
            test_seats: Arc::new(Semaphore::new(v1::MOST_TESTS)),
            door: None,
            metrics,
            checks: Vec::new(),
            store_probe: monitoring::StoreProbe::default(),
            document: OnceLock::new(),
        }
    }
}

/// Every address there is. `others` are routes that bring their own state, under the same observation.
pub(crate) fn router(state: HttpState, others: Router) -> Router {
    let state = Arc::new(state);
    let (routes, document) = openapi::begin()
        .merge(auth::routes(&state))
        .merge(bot::routes(&state))
        .merge(leads::routes())
        .merge(leads_health::routes())
        .merge(monitoring::routes())
        .merge(rest::routes(&state))
        .merge(telegram_webhook::routes())
        .merge(v1::routes(&state))
        .split_for_parts();
    state.document.get_or_init(|| openapi::write(&document));
    routes
        .with_state(Arc::clone(&state))
        .merge(others)
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn_with_state(state.limits, observe::observe))
        .layer(from_fn(leftover::linger))
}

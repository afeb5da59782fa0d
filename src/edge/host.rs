//! A running server: the store, the app, its jobs and its HTTP surface, begun and ended in order.
//!
//! **Start.** The listener is bound first, so that a taken port is an error before anything is opened; then the store,
//! the app (which recovers what an earlier process left in flight), the surface, the jobs, and last the intake of updates.
//!
//! **End.** One token stops intake and the taking of new work at the same moment. Requests and passes in hand then have
//! `http.shutdown_timeout` to end; what has not ended by then is found at the next start by its lease. The store closes
//! last.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::backend::RemoteBackend;
use super::http::{self, HttpState, ReadyCheck, WebhookTools};
use super::jobs::Driver;
use super::telegram::{Client, Intake, IntakeHealth, IntakeParts, TelegramSettings, UpdateReader};
use crate::app::{App, Parts, Webhooks};
use crate::chat::Messenger;
use crate::config::{Config, EventSource, TelegramConfig};
use crate::kernel::store::Db;
use crate::onboarding::Remote;

/// A consumer that has not ended a pass for this long does not work; it sweeps every ten seconds.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// What of the shutdown's time is kept for the store's own end.
const CLOSING: Duration = Duration::from_secs(3);

/// A chat that is wrong, or that the bot may not write in, shows itself only when the first lead comes.
const NOBODY_IS_TOLD: &str = "leads are stored and nobody is told of them: leads.chat_id or telegram.token is unset; see `pillarbox config check`";
const SMOKE_IS_DUE: &str = "no test message was sent to the chat of leads yet; run `pillarbox leads smoke`";

/// What a server is put together from.
pub(crate) struct HostParts {
    pub(crate) config: Config,
    pub(crate) db: Db,
    pub(crate) listener: TcpListener,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) stop: CancellationToken,
}

/// A server whose parts are ready and do nothing yet.
pub(crate) struct Host {
    config: Config,
    app: Arc<App>,
    driver: Arc<Driver>,
    intake: Option<Intake>,
    listener: TcpListener,
    metrics: PrometheusHandle,
    stop: CancellationToken,
}

impl Host {
    /// Puts the app together.
    ///
    /// # Errors
    /// When the configuration does not make a client, or the store fails.
    pub(crate) async fn build(parts: HostParts) -> anyhow::Result<Self> {
        let HostParts { config, db, listener, metrics, stop } = parts;
        let app = Arc::new(assemble(&config, db, stop.clone()).await?);
        let driver = Driver::new(Arc::clone(&app));
        let intake = open_intake(&config.telegram, &app)?;
        Ok(Self { config, app, driver, intake, listener, metrics, stop })
    }

    /// What whoever installed this should still do, besides what the configuration's warnings say.
    pub(crate) fn advice(&self) -> Vec<String> {
        let smoke = self.app.lead_smoke_is_due().then(|| SMOKE_IS_DUE.to_owned());
        [smoke, self.app.advice_on_webhooks()].into_iter().flatten().collect()
    }

    /// Where it will listen.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The jobs, for surfaces that run them.
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Serves until the stop token is cancelled, and ends in order.
    pub(crate) async fn run(self, others: http::Router) {
        let Self { config, app, driver, intake, listener, metrics, stop } = self;
        let Config { bot, events, http, leads, .. } = &config;
        let sections = http::Sections { bot, events, http, leads };
        let Webhooks { egress, vault, transport } = app.webhooks().clone();
        let webhooks = WebhookTools { egress, vault, transport };
        let mut state = HttpState::new(app.db().clone(), &sections, webhooks, metrics.clone());
        state.hands = app.lead_hands().clone();
        state.checks = checks(&app, intake.as_ref().map(Intake::health));
        state.door = intake.as_ref().and_then(Intake::door);
        let limits = state.limits;
        let surface = http::serve(listener, http::router(state, others), limits, stop.clone());
        let tidying = tokio::spawn(http::keep_metrics_tidy(metrics));
        let working = async {
            driver.run(stop.clone()).await;
            app.drain().await;
        };
        let hearing = async {
            if let Some(intake) = intake {
                intake.run(stop.clone()).await;
            }
        };
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(config.http.shutdown_timeout.saturating_sub(CLOSING)).await;
        };
        tokio::select! {
            _ = async { tokio::join!(surface, working, hearing) } => {}
            () = overdue => tracing::warn!("work in hand was cut off by the shutdown; the next start takes it up"),
        }
        tidying.abort();
        if tokio::time::timeout(CLOSING, app.db().close()).await.is_err() {
            tracing::warn!("the store did not close in time; nothing acknowledged is lost");
        }
        tracing::info!("stopped");
    }
}

/// Puts the app of this configuration together, with its clients.
///
/// # Errors
/// When a client cannot be made, or the store fails.
pub(crate) async fn assemble(config: &Config, db: Db, stop: CancellationToken) -> anyhow::Result<App> {
    let telegram = &config.telegram;
    let messenger = messenger_for(telegram, telegram.timeout, telegram.connect_timeout)?;
    let lead_messenger = lead_messenger(config)?;
    let remote = match &config.bot.event_source {
        EventSource::Remote(remote) => {
            let backend = RemoteBackend::new(db.clone(), remote).context("bot.remote_url")?;
            Some(Arc::new(backend) as Arc<dyn Remote>)
        }
        EventSource::Local | EventSource::Off => None,
    };
    Ok(App::build(config, Parts { db, messenger, lead_messenger, remote, reader: Some(Arc::new(UpdateReader)), stop })
        .await?)
}

/// Whoever delivers notifications of leads, with the patience that is meant for them; none without a token.
///
/// # Errors
/// When the client cannot be made.
pub(crate) fn lead_messenger(config: &Config) -> anyhow::Result<Option<Arc<dyn Messenger>>> {
    // A connection that takes as long as the whole call may would make a doubt of what certainly did not leave.
    let patience = config.leads.telegram_timeout;
    messenger_for(&config.telegram, patience, config.telegram.connect_timeout.min(patience / 2))
}

/// Whoever delivers to Telegram and waits so long for an answer and for a connection; none without a token.
fn messenger_for(
    telegram: &TelegramConfig,
    timeout: Duration,
    connect_timeout: Duration,
) -> anyhow::Result<Option<Arc<dyn Messenger>>> {
    let Some(token) = &telegram.token else { return Ok(None) };
    let settings =
        TelegramSettings { api_url: telegram.api_url.to_string(), token: token.clone(), timeout, connect_timeout };
    Ok(Some(Arc::new(Client::new(&settings).context("telegram")?)))
}

/// Whoever takes updates in; none when they are off. Without a conversation nobody would handle what comes.
fn open_intake(telegram: &TelegramConfig, app: &App) -> anyhow::Result<Option<Intake>> {
    let parts = IntakeParts { db: app.db(), telegram, access: Arc::clone(app.access()) };
    let intake = Intake::open(&parts).context("telegram")?;
    if intake.is_some() && !app.has_conversation() {
        tracing::warn!("telegram.updates is set and bot.event_source is off: updates are left at Telegram");
        return Ok(None);
    }
    Ok(intake)
}

fn checks(app: &Arc<App>, intake: Option<Arc<IntakeHealth>>) -> Vec<ReadyCheck> {
    let consumer = Arc::clone(app);
    let telegram = Arc::clone(app);
    let events = Arc::clone(app);
    let leads = Arc::clone(app);
    let webhooks = Arc::clone(app);
    let updates = Arc::clone(app);
    let disk = app.db().clone();
    vec![
        ReadyCheck::new("disk", move || match disk.is_low_on_disk() {
            true => Err("the disk is nearly full: new work is refused until space is freed".to_owned()),
            false => Ok(()),
        }),
        ReadyCheck::new("consumer", move || match consumer.consumer_silence() {
            Some(silence) if silence > LONGEST_SILENCE => {
                Err(format!("no pass has ended for {} s; see the log", silence.as_secs()))
            }
            _ => Ok(()),
        }),
        ReadyCheck::new("telegram", move || match telegram.is_telegram_authorized() {
            Some(false) => Err("Telegram does not accept the token; see telegram.token".to_owned()),
            _ => Ok(()),
        }),
        ReadyCheck::new("updates", move || match &intake {
            Some(intake) => intake.verdict(Instant::now()),
            None => Ok(()),
        }),
        ReadyCheck::advice("bot", move || updates.advice_on_updates()),
        ReadyCheck::advice("events", move || events.advice_on_events()),
        ReadyCheck::advice("leads", move || {
            let nobody = leads.leads_config().is_silent().then_some(NOBODY_IS_TOLD);
            nobody.or_else(|| leads.lead_smoke_is_due().then_some(SMOKE_IS_DUE)).map(str::to_owned)
        }),
        ReadyCheck::advice("webhooks", move || webhooks.advice_on_webhooks()),
    ]
}

/// The process's signals: the first SIGTERM or SIGINT stops in order, the second ends at once.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Listens from here on.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Cancels `stop` at the first signal; ends the process at the second.
    pub(crate) async fn obey(mut self, stop: CancellationToken) {
        self.next().await;
        tracing::info!("stopping: no new work is taken, what is in hand is finished; a second signal ends at once");
        stop.cancel();
        self.next().await;
        tracing::warn!("ended at once by a second signal");
        std::process::exit(130);
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Caught panics are logged by place only: their text may hold what no log may.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        tracing::error!(place, "a panic was caught; this is a fault of pillarbox");
    }));
}

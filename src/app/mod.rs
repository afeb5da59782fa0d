//! The assembled service: the one place that knows every subsystem, given to every edge.

mod addressees;
mod bulk;
mod dialog;
mod events;
mod local_backend;
#[cfg(test)]
mod local_backend_tests;
mod passes;
#[cfg(test)]
mod record_tests;
mod updates;
mod watch;
mod webhooks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::backend;
use crate::chat::{Access, Limiter, Limits, Messenger, Reader, Sender, SenderParts, SenderSettings};
use crate::config::{
    BotConfig, Config, ConfigErrors, EventSource, EventsConfig, JobsConfig, LeadsConfig, StoreConfig, TelegramConfig,
};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, OpenError, Role, Settings, StoreError, Synchronous};
use crate::leads::Hands;
use crate::leads::notify::{Post, Recipient, Worker};
use crate::onboarding::calls::Calls;
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::{self, Backend, Consumer, Remote};
use crate::outbox::Relay;
use crate::webhooks::{Deliverer, TransportError};
use addressees::Addressees;
use bulk::Bulk;
pub(crate) use events::check;
use local_backend::LocalBackend;
use passes::Beat;
pub(crate) use passes::{Again, Pass};
use watch::Watch;
pub(crate) use webhooks::Webhooks;

/// The service, without the ways the world reaches it.
pub(crate) struct App {
    db: Db,
    jobs: JobsConfig,
    consumer: Option<Consumer>,
    /// What a remote backend is called for; none if events come from this file.
    calls: Option<Calls>,
    sender: Option<Sender>,
    /// How long the number of a handled update is kept.
    updates_retention: Duration,
    /// Who handles updates; none if the bot is off.
    updates: Option<onboarding::updates::Worker>,
    /// What is sent to many; nothing if the bot is off.
    bulk: Option<Bulk>,
    relay: Relay,
    events: EventsConfig,
    watch: Watch,
    webhooks: Webhooks,
    deliverer: Deliverer,
    access: Arc<Access>,
    leads: LeadsConfig,
    notifier: Worker,
    /// Stops what takes long inside a pass.
    stop: CancellationToken,
    /// When the consumer last ended a pass without an error.
    polled: Beat,
}

/// What an app is put together from.
pub(crate) struct Parts {
    pub(crate) db: Db,
    /// Whoever can deliver a message; none without a token.
    pub(crate) messenger: Option<Arc<dyn Messenger>>,
    /// The same with the patience of the leads' notifications.
    pub(crate) lead_messenger: Option<Arc<dyn Messenger>>,
    /// The remote backend's client, if events come from one.
    pub(crate) remote: Option<Arc<dyn Remote>>,
    /// Whoever reads updates; none where none come in.
    pub(crate) reader: Option<Arc<dyn Reader>>,
    pub(crate) stop: CancellationToken,
}

/// Why an app could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A shipped text is not valid: a fault of this build.
    #[error(transparent)]
    Onboarding(#[from] onboarding::Error),
    /// A rule of communications cannot work.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The client of webhooks could not be made.
    #[error("webhooks: {0}")]
    Transport(#[from] TransportError),
    /// The send queue could not be recovered.
    #[error(transparent)]
    Chat(#[from] crate::chat::Error),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the data directory with everyone who records events.
///
/// # Errors
/// [`OpenError`], whose text says what to do.
pub(crate) fn open_store(store: &StoreConfig, role: Role, clock: Clock) -> Result<Db, OpenError> {
    let settings = Settings {
        synchronous: match store.synchronous {
            crate::config::Synchronous::Full => Synchronous::Full,
            crate::config::Synchronous::Normal => Synchronous::Normal,
        },
        readers: store.readers,
        queue: store.queue,
        busy_timeout: store.busy_timeout,
        cache: store.cache_bytes,
        min_free: store.min_free_bytes,
        ballast: store.ballast_bytes,
    };
    Db::open(&store.data_dir, role, &settings, clock, vec![crate::outbox::record, backend::record])
}

impl App {
    /// Puts the service together and recovers what an earlier process left in flight.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn build(config: &Config, parts: Parts) -> Result<Self, Error> {
        let Parts { db, messenger, lead_messenger, remote, reader, stop } = parts;
        let desk = Desk::open(&config.telegram, &db);
        let remote = remote.filter(|_| matches!(config.bot.event_source, EventSource::Remote(_)));
        let source: Option<Arc<dyn Backend>> = match &config.bot.event_source {
            EventSource::Local => Some(Arc::new(LocalBackend::new(db.clone(), config.bot.site_url.clone()))),
            EventSource::Remote(_) => remote.clone().map(|remote| remote as Arc<dyn Backend>),
            EventSource::Off => None,
        };
        let content = content_of(&config.bot)?;
        let dialog = source.as_ref().map(|backend| dialog::open(&config.bot, &content, backend));
        let calls = remote.map(|remote| Calls::new(db.clone(), remote, dialog.clone()));
        let updates = updates::open(&db, dialog.as_ref(), reader);
        let bulk = source.as_ref().map(|_| bulk::open(config, &content));
        let webhooks = Webhooks::open(&config.webhooks, &db)?;
        let deliverer = webhooks.open_deliverer(&config.webhooks, &db);
        let relay = events::open_relay(config, &db, &content)?;
        let sender = match messenger {
            Some(messenger) => Some(desk.open_sender(&config.telegram, &db, messenger, source.clone()).await?),
            None => None,
        };
        let consumer = source.map(|backend| Consumer::new(db.clone(), backend, content));
        let notifier = desk.open_notifier(&config.leads, &db, lead_messenger);
        Ok(Self {
            jobs: config.jobs.clone(),
            consumer,
            calls,
            sender,
            updates_retention: config.telegram.updates_retention,
            updates,
            bulk,
            relay,
            events: config.events.clone(),
            watch: Watch::default(),
            webhooks,
            deliverer,
            access: desk.access,
            leads: config.leads.clone(),
            notifier,
            stop,
            polled: Beat::now(),
            db,
        })
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Cancelled when the process is to end; what takes long looks at it between its steps.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn time_zone(&self) -> chrono_tz::Tz {
        self.jobs.time_zone
    }

    /// Whether the consumer has been heard of lately; `None` when events are not consumed here.
    pub(crate) fn consumer_silence(&self) -> Option<Duration> {
        self.consumer.as_ref().map(|_| self.polled.since(Instant::now()))
    }

    /// What endpoints are made and tried with.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// What a person should know of domain events that wait.
    pub(crate) fn advice_on_events(&self) -> Option<String> {
        self.watch.advice_on_events()
    }

    /// What a person should know of webhooks.
    pub(crate) fn advice_on_webhooks(&self) -> Option<String> {
        self.watch.advice_on_webhooks(&self.webhooks.vault)
    }

    /// The section of leads, for the surfaces that take, show and claim them.
    pub(crate) fn leads_config(&self) -> &LeadsConfig {
        &self.leads
    }

    /// Which leads this process is telling the broker of right now.
    pub(crate) fn lead_hands(&self) -> &Hands {
        self.notifier.hands()
    }

    /// Whether this process tells the broker's chat of leads although no test message has been seen to arrive in it.
    pub(crate) fn lead_smoke_is_due(&self) -> bool {
        self.notifier.recipient().is_some_and(|chat| {
            if chat.smoke_passed_at().is_none() {
                // The test is a command's, beside this process.
                chat.refresh();
            }
            chat.smoke_passed_at().is_none()
        })
    }

    /// What is known of the token, for whoever speaks with Telegram besides the sender.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Whether somebody handles updates here.
    pub(crate) fn has_conversation(&self) -> bool {
        self.updates.is_some()
    }

    /// How long the number of a handled update is kept.
    pub(crate) fn updates_retention(&self) -> Duration {
        self.updates_retention
    }

    /// What a person should know of updates.
    pub(crate) fn advice_on_updates(&self) -> Option<String> {
        self.watch.advice_on_updates()
    }

    /// Whether Telegram accepts the token; `None` without one.
    pub(crate) fn is_telegram_authorized(&self) -> Option<bool> {
        self.sender.as_ref().map(|_| self.access.is_granted())
    }
}

/// Whoever brings messages to the chat of leads, for a command beside the service; none without a chat.
pub(crate) fn open_lead_post(config: &Config, db: &Db, messenger: Arc<dyn Messenger>) -> Option<Post> {
    Desk::open(&config.telegram, db).open_post(&config.leads, db, messenger)
}

/// What everybody shares who sends to Telegram.
struct Desk {
    limiter: Arc<Limiter>,
    access: Arc<Access>,
}

impl Desk {
    fn open(telegram: &TelegramConfig, db: &Db) -> Self {
        let limits = Limits {
            per_second: telegram.per_second as usize,
            bulk_per_second: telegram.bulk_per_second as usize,
            chat_interval: telegram.chat_interval,
            group_per_minute: telegram.group_per_minute as usize,
            max_in_flight: telegram.max_in_flight,
        };
        Self { limiter: Limiter::new(limits, db.clock().clone()), access: Arc::default() }
    }

    async fn open_sender(
        &self,
        telegram: &TelegramConfig,
        db: &Db,
        messenger: Arc<dyn Messenger>,
        backend: Option<Arc<dyn Backend>>,
    ) -> Result<Sender, Error> {
        let settings = SenderSettings { give_up_after: telegram.give_up_after, timeout: telegram.timeout };
        Ok(Sender::open(SenderParts {
            db: db.clone(),
            messenger,
            addressee: Arc::new(Addressees { backend }),
            limiter: Arc::clone(&self.limiter),
            access: Arc::clone(&self.access),
            settings,
        })
        .await?)
    }

    /// None without a chat.
    fn open_post(&self, leads: &LeadsConfig, db: &Db, messenger: Arc<dyn Messenger>) -> Option<Post> {
        let recipient = Recipient::open(db.dir(), leads.chat_id.as_ref()?)?;
        Some(Post {
            messenger,
            recipient: Arc::new(recipient),
            limiter: Arc::clone(&self.limiter),
            access: Arc::clone(&self.access),
            clock: db.clock().clone(),
        })
    }

    fn open_notifier(&self, leads: &LeadsConfig, db: &Db, messenger: Option<Arc<dyn Messenger>>) -> Worker {
        let post = messenger.and_then(|messenger| self.open_post(leads, db, messenger));
        Worker::new(db.clone(), leads.delivery, Hands::default(), post)
    }
}

/// The texts, for people and chats that have not chosen a language.
fn content_of(bot: &BotConfig) -> Result<Arc<Content>, onboarding::Error> {
    let default_lang = match bot.default_lang {
        crate::config::Lang::Ru => Lang::Ru,
        crate::config::Lang::En => Lang::En,
    };
    Ok(Arc::new(Content::shipped(default_lang)?))
}

//! Updates as they come in: fetched by a long poll, or brought to a webhook.
//!
//! **What.** [`Intake`] is a task of the server's, not a job: it waits in transport. Whatever comes is stored in one
//! transaction with the offset, and only then acknowledged: by the next fetch, or by the webhook's 200. Its taps are
//! answered at once. What an update means is read when it is handled ([`UpdateReader`]).
//!
//! **States.** Polling: fetching, storing, or waiting after a failure ([`backoff`]). Webhook: registered, or on the way.
//!
//! **Guarantees.**
//! - Nothing is acknowledged before it is stored: `tests/it/updates.rs::what_is_fetched_is_stored_before_it_is_confirmed`.
//! - A webhook that is not ours is left alone: `tests/it/updates.rs::a_foreign_webhook_is_left_alone_and_told_of`.
//! - Another program that fetches, and a refused token, are failures of readiness:
//!   `tests/it/updates.rs::a_second_poller_is_a_failure_of_readiness`,
//!   `tests/it/updates.rs::a_refused_token_is_a_failure_of_readiness`.
//! - An update that nobody can read does not keep others from coming:
//!   `tests/it/updates.rs::an_update_that_cannot_be_read_is_dead_and_the_next_is_handled`.
//! - The webhook takes nothing from whoever does not know its secret: `tests/it/updates.rs::the_webhook_wants_its_secret`.
//!
//! **Windows.** Between the commit and the next fetch, or the 200: Telegram delivers again, and the numbers are known.
//! Between the commit and a tap's answer: the spinner ends by itself.
//!
//! **Not here.** Answers in the body of the webhook's 200: they would be sends that are no claimed rows. The webhook is
//! not taken away at the end: updates wait at Telegram for the next start.

mod backoff;
mod envelope;
mod health;
mod poll;
mod read;
mod store;
mod taps;
mod webhook;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use teloxide::types::AllowedUpdate;
use tokio_util::sync::CancellationToken;

pub(crate) use health::IntakeHealth;
pub(crate) use read::UpdateReader;
pub(crate) use webhook::{Unwelcome, WebhookDoor};

use super::client::ClientError;
use super::{Client, TelegramSettings};
use crate::chat::{Access, Class, FailureCode, Outcome};
use crate::config::{TelegramConfig, Updates};
use crate::kernel::secret::Secret;
use crate::kernel::store::Db;
use backoff::IntakeError;
use store::Store;
use taps::Taps;

/// What is asked for, with every call: Telegram keeps an old list until it is given a new one.
const WANTED: [AllowedUpdate; 3] = [AllowedUpdate::Message, AllowedUpdate::CallbackQuery, AllowedUpdate::MyChatMember];
/// How much longer than Telegram holds a call it may take.
const POLL_SLACK: Duration = Duration::from_secs(10);
/// What a client without a fault needs at the longest; some of it (name lookups) is outside its own time-out.
const WATCHDOG_SLACK: Duration = Duration::from_secs(30);
/// Between two looks at our webhook.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What an intake is put together from.
pub(crate) struct IntakeParts<'a> {
    pub(crate) db: &'a Db,
    pub(crate) telegram: &'a TelegramConfig,
    /// What is known of the token, shared with whoever sends.
    pub(crate) access: Arc<Access>,
}

/// Whoever takes updates in.
pub(crate) struct Intake {
    mode: Mode,
    link: Link,
}

enum Mode {
    Polling,
    Webhook { url: reqwest::Url, door: Arc<WebhookDoor> },
}

/// What both ways share.
struct Link {
    store: Store,
    /// For what is answered at once.
    quick: Arc<Client>,
    /// For what Telegram may hold.
    patient: Client,
    poll_timeout: Duration,
    health: Arc<IntakeHealth>,
    access: Arc<Access>,
}

impl Intake {
    /// The intake of this configuration; none without a token, or when updates are off.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) fn open(parts: &IntakeParts<'_>) -> Result<Option<Self>, ClientError> {
        let telegram = parts.telegram;
        let Some(token) = &telegram.token else { return Ok(None) };
        let client = |timeout| {
            let (api_url, token) = (telegram.api_url.to_string(), token.clone());
            Client::new(&TelegramSettings { api_url, token, timeout, connect_timeout: telegram.connect_timeout })
        };
        let quick = Arc::new(client(telegram.timeout)?);
        let store = Store { db: parts.db.clone(), bot_id: bot_id(token), taps: Taps::new(Arc::clone(&quick)) };
        let (mode, silence) = match &telegram.updates {
            Updates::Off => return Ok(None),
            Updates::Polling => (Mode::Polling, telegram.poll_timeout * 3 + Duration::from_secs(15)),
            Updates::Webhook { url, secret } => {
                let secret = secret.clone().unwrap_or_else(|| derived(token));
                let door = Arc::new(WebhookDoor::new(secret, store.clone()));
                (Mode::Webhook { url: url.clone(), door }, LOOK_EVERY * 3)
            }
        };
        let link = Link {
            store,
            quick,
            patient: client(telegram.poll_timeout + POLL_SLACK)?,
            poll_timeout: telegram.poll_timeout,
            health: Arc::new(IntakeHealth::new(silence, Instant::now())),
            access: Arc::clone(&parts.access),
        };
        Ok(Some(Self { mode, link }))
    }

    /// Whether updates come in.
    pub(crate) fn health(&self) -> Arc<IntakeHealth> {
        Arc::clone(&self.link.health)
    }

    /// Where Telegram brings updates to, in webhook mode.
    pub(crate) fn door(&self) -> Option<Arc<WebhookDoor>> {
        match &self.mode {
            Mode::Polling => None,
            Mode::Webhook { door, .. } => Some(Arc::clone(door)),
        }
    }

    /// Takes updates in until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        match self.mode {
            Mode::Polling => poll::run(&self.link, &stop).await,
            Mode::Webhook { url, door } => webhook::keep(&self.link, &url, door.secret(), &stop).await,
        }
    }
}

impl Link {
    /// Takes note of a failure and waits for as long as it asks for, or until `stop`.
    async fn wait_after(&self, error: &IntakeError, before: u32, stop: &CancellationToken) {
        let is_new = error.trouble().is_some_and(|trouble| self.health.met(trouble));
        match error {
            IntakeError::Unauthorized => {
                let (class, code) = (Class::Unauthorized, FailureCode::Unauthorized);
                self.access.learn(&Outcome::Refused { class, code });
            }
            // Another program has the bot: nothing comes until a person has decided.
            IntakeError::Conflict | IntakeError::ForeignWebhook { .. } if is_new => {
                tracing::error!(%error, "updates do not come in; /readyz says what to do");
            }
            _ if before == 0 => tracing::warn!(%error, "updates do not come in; it is tried again"),
            _ => tracing::debug!(%error, "updates do not come in"),
        }
        let _ = stop.run_until_cancelled(tokio::time::sleep(error.pause(before))).await;
    }

    /// Telegram answered as it should.
    fn heard(&self) {
        // Only what was refused here is taken back here: the sender has its own tries.
        if self.health.is_unauthorized() {
            self.access.learn(&Outcome::Delivered { message_id: None });
        }
        self.health.heard();
    }
}

/// The number before the token's colon, under which this bot's updates are kept; 0 for a token that has none.
fn bot_id(token: &Secret) -> i64 {
    token.expose().split_once(':').and_then(|(number, _)| number.parse().ok()).unwrap_or_default()
}

/// What Telegram is to bring with each update, when nobody chose it: nobody can guess it who does not know the token.
fn derived(token: &Secret) -> Secret {
    let digest = Sha256::digest(format!("pillarbox-webhook:{}", token.expose()));
    Secret::new(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_is_known_by_the_number_of_its_token() {
        for (token, number) in
            [("4242:AAx", 4242), ("no colon", 0), (":x", 0), ("x:y", 0), ("99999999999999999999:x", 0)]
        {
            assert_eq!(bot_id(&Secret::new(token)), number, "{token}");
        }
    }

    #[test]
    fn the_derived_secret_is_one_that_telegram_takes_and_does_not_show_the_token() {
        let secret = derived(&Secret::new("4242:AAx"));
        let text = secret.expose();
        assert_eq!(text.len(), 64);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()) && !text.contains("4242:AAx"));
        assert_ne!(text, derived(&Secret::new("4242:AAy")).expose());
    }
}

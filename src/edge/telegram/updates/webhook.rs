//! The webhook: set where it is ours to set, watched, and taken away only if it is ours. What it brings is stored, and
//! only then acknowledged.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use teloxide::payloads::{DeleteWebhook, GetWebhookInfo, SetWebhook};
use tokio_util::sync::CancellationToken;

use super::backoff::IntakeError;
use super::health::Trouble;
use super::store::{Store, count};
use super::{LOOK_EVERY, Link, WANTED, envelope};
use crate::kernel::secret::Secret;
use crate::kernel::store::StoreError;

/// Deliveries at the same time; Telegram's own default.
const MOST_CONNECTIONS: u8 = 40;
/// A failed delivery that is older than this is history.
const RECENT_S: i64 = 300;

/// What Telegram says of the webhook; of what it may leave out nothing is needed.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    url: String,
    #[serde(default)]
    pending_update_count: i64,
    last_error_date: Option<i64>,
}

/// Takes our webhook away, so that updates can be fetched; somebody else's is left alone.
///
/// # Errors
/// [`IntakeError::ForeignWebhook`], and whatever else stands in the way.
pub(super) async fn clear(link: &Link) -> Result<(), IntakeError> {
    let info = look(link).await?;
    if info.url.is_empty() {
        return Ok(());
    }
    if link.store.standing().await?.webhook_url.as_deref() != Some(info.url.as_str()) {
        return Err(foreign(&info.url));
    }
    link.quick.call::<_, serde_json::Value>(&DeleteWebhook { drop_pending_updates: Some(false) }).await?;
    link.store.note_webhook(None).await?;
    tracing::info!("our webhook was taken away: updates are fetched from here on");
    Ok(())
}

/// Sets our webhook and looks after it until `stop`.
pub(super) async fn keep(link: &Link, url: &reqwest::Url, secret: &Secret, stop: &CancellationToken) {
    let (mut failures, mut is_set) = (0, false);
    while !stop.is_cancelled() {
        let Some(looked) = stop.run_until_cancelled(visit(link, url, secret, is_set)).await else { return };
        match looked {
            Ok(()) => {
                (failures, is_set) = (0, true);
                let _ = stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
            }
            Err(error) => {
                link.wait_after(&error, failures, stop).await;
                failures += 1;
            }
        }
    }
}

/// Sees that the webhook is ours and works; sets it if it is nobody's, or was not set by this process.
async fn visit(link: &Link, url: &reqwest::Url, secret: &Secret, is_set: bool) -> Result<(), IntakeError> {
    let info = look(link).await?;
    let is_ours = info.url == url.as_str();
    if is_set && is_ours {
        let is_recent = info.last_error_date.is_some_and(|at| unix_now_s().saturating_sub(at) < RECENT_S);
        match is_recent && info.pending_update_count > 0 {
            true => {
                if link.health.met(Trouble::Undelivered) {
                    tracing::warn!("Telegram cannot bring updates to telegram.webhook_url");
                }
            }
            false => link.heard(),
        }
        return Ok(());
    }
    let noted = link.store.standing().await?.webhook_url;
    if !info.url.is_empty() && !is_ours && noted.as_deref() != Some(info.url.as_str()) {
        return Err(foreign(&info.url));
    }
    let mut payload = SetWebhook::new(url.clone());
    payload.secret_token = Some(secret.expose().to_owned());
    payload.allowed_updates = Some(WANTED.to_vec());
    payload.max_connections = Some(MOST_CONNECTIONS);
    link.quick.call::<_, serde_json::Value>(&payload).await?;
    // Noted when it is so: until then the one before is still known for ours.
    link.store.note_webhook(Some(url.to_string())).await?;
    link.heard();
    tracing::info!("the webhook is set: Telegram brings updates to telegram.webhook_url");
    Ok(())
}

async fn look(link: &Link) -> Result<Info, IntakeError> {
    Ok(link.quick.call(&GetWebhookInfo::new()).await?)
}

fn foreign(url: &str) -> IntakeError {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    IntakeError::ForeignWebhook { host: host.unwrap_or_else(|| "unknown".to_owned()) }
}

/// Telegram's time, which a moved clock is not.
fn unix_now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Where Telegram brings updates to.
pub(crate) struct WebhookDoor {
    secret: Secret,
    store: Store,
}

/// Why an update was not taken.
#[derive(Debug)]
pub(crate) enum Unwelcome {
    /// It is no update.
    Unreadable,
    /// It could not be stored, and is to be brought again.
    Store(StoreError),
}

impl WebhookDoor {
    pub(super) fn new(secret: Secret, store: Store) -> Self {
        Self { secret, store }
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Whether whoever brings this knows the secret; in constant time.
    pub(crate) fn knows(&self, said: &[u8]) -> bool {
        self.secret.matches(said)
    }

    /// Stores one update.
    ///
    /// # Errors
    /// [`Unwelcome`]: then it must not be acknowledged.
    pub(crate) async fn take(&self, body: &[u8]) -> Result<(), Unwelcome> {
        let raw: Option<Box<RawValue>> = serde_json::from_slice(body).ok();
        let Some(received) = raw.and_then(|raw| envelope::open(&raw)) else {
            tracing::warn!(bytes = body.len(), "the webhook was brought something that is no update");
            return Err(Unwelcome::Unreadable);
        };
        self.store.take(vec![received], None).await.map_err(|error| {
            count("other", "refused", 1);
            Unwelcome::Store(error)
        })
    }
}

//! The webhook: set, deleted and shown, and the task that posts queued updates to it, in order, until each has its 2xx.
//!
//! This file speaks HTTP outwards because Telegram does, and nobody else can call a webhook in its place. It calls this
//! machine only: a production URL pasted by accident must not receive made-up updates.

use std::sync::{Arc, Weak};
use std::time::Duration;

use reqwest::{Client, Url, header};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::params::Params;
use super::refusal::Refusal;
use super::world::{Entry, Webhook};
use super::{Fake, Inner};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::loopback::is_loopback;

/// As long as the real server waits for the bot's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const LONGEST_PAUSE_S: u64 = 60;
/// The real server honours the bot's `Retry-After` up to this.
const LONGEST_RETRY_AFTER_S: u64 = 3600;

/// Why the newest delivery failed, for `getWebhookInfo`; forgotten at a restart.
pub(super) struct LastError {
    at: UnixMs,
    message: String,
    pub(super) next_try_at: UnixMs,
}

/// The client that deliveries use. No proxy and no redirects: it is to reach exactly the URL that was set.
pub(super) fn client() -> reqwest::Result<Client> {
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(ANSWER_WITHIN).build()
}

impl Fake {
    pub(super) fn set_webhook(&self, params: &Params) -> Result<Value, Refusal> {
        let url = params.text("url").unwrap_or_default();
        if url.is_empty() {
            return self.delete_webhook(params);
        }
        check_url(&url)?;
        let secret = params.text("secret_token").filter(|secret| !secret.is_empty());
        secret.as_deref().map_or(Ok(()), check_secret)?;
        let max_connections = params.integer("max_connections").unwrap_or(40).clamp(1, 100);
        let allowed = params.texts("allowed_updates")?;
        self.replace_webhook(Some(Webhook { url, secret, max_connections }), allowed, params)
    }

    pub(super) fn delete_webhook(&self, params: &Params) -> Result<Value, Refusal> {
        self.replace_webhook(None, None, params)
    }

    fn replace_webhook(
        &self,
        webhook: Option<Webhook>,
        allowed: Option<Vec<String>>,
        params: &Params,
    ) -> Result<Value, Refusal> {
        let mut kept = self.kept();
        kept.subscribe(allowed)?;
        if params.flag("drop_pending_updates") {
            kept.accept(Entry::KeptLast { count: 0 })?;
        }
        if webhook.is_some() {
            // Whoever polls now is told.
            kept.newest_poll += 1;
        }
        kept.accept(Entry::Webhook { webhook })?;
        kept.webhook_error = None;
        drop(kept);
        self.wake();
        self.0.redirected.notify_waiters();
        Ok(true.into())
    }

    pub(super) fn webhook_info(&self) -> Value {
        let kept = self.kept();
        let pending = kept.world.queue.len();
        let mut info = json!({"url": "", "has_custom_certificate": false, "pending_update_count": pending});
        if !kept.world.allowed.is_empty() {
            info["allowed_updates"] = kept.world.allowed.clone().into();
        }
        if let Some(webhook) = &kept.world.webhook {
            info["url"] = webhook.url.clone().into();
            info["max_connections"] = webhook.max_connections.into();
        }
        if let Some(error) = &kept.webhook_error {
            info["last_error_date"] = error.at.div_euclid(1000).into();
            info["last_error_message"] = error.message.clone().into();
        }
        info
    }

    fn next_parcel(&self) -> Option<Parcel> {
        let kept = self.kept();
        let (webhook, queued) = (kept.world.webhook.as_ref()?, kept.world.queue.front()?);
        Some(Parcel { webhook: webhook.clone(), sequence: queued.sequence, update: queued.update.to_string() })
    }

    fn settle(&self, sequence: u64) {
        let mut kept = self.kept();
        kept.webhook_error = None;
        if let Err(error) = kept.commit(Entry::Delivered { sequence }) {
            tracing::error!(error = %error, "the fake Bot API could not write its log; the update goes out again");
        }
    }

    /// Returns when to try again, by the clock of `dev`.
    fn note_failure(&self, failure: NotTaken, failures: u32) -> UnixMs {
        let at = self.0.clock.now();
        let pause_s = failure.retry_after_s.unwrap_or_else(|| pause_s(failures));
        let next_try_at = at.saturating_add_unsigned(pause_s * 1000);
        let error = LastError { at, message: failure.message, next_try_at };
        tracing::debug!(next_try_at = error.next_try_at, "the webhook did not take an update");
        self.kept().webhook_error = Some(error);
        next_try_at
    }
}

fn check_url(url: &str) -> Result<(), Refusal> {
    let wrong = |why: &str| Refusal::bad_request(format!("bad webhook: {why}"));
    let url = Url::parse(url).map_err(|_| wrong("invalid URL specified"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong("An HTTPS URL must be provided for webhook"));
    }
    match url.host_str().is_some_and(is_loopback) {
        true => Ok(()),
        false => Err(wrong("the fake Bot API calls this machine only (127.0.0.1, [::1], localhost)")),
    }
}

fn check_secret(secret: &str) -> Result<(), Refusal> {
    if secret.len() > 256 {
        return Err(Refusal::bad_request("secret token is too long"));
    }
    match secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        true => Ok(()),
        false => Err(Refusal::bad_request("secret token contains unallowed characters")),
    }
}

/// One update on its way.
struct Parcel {
    webhook: Webhook,
    sequence: u64,
    update: String,
}

/// Why a parcel did not arrive, and how long the bot asked to be left alone.
struct NotTaken {
    message: String,
    retry_after_s: Option<u64>,
}

/// Starts the task that delivers. It holds the fake only while it works, so that dropping the fake lets go of its log.
pub(super) fn spawn_delivery(fake: &Fake, client: Client) {
    let deliveries = Deliveries {
        fake: Arc::downgrade(&fake.0),
        changed: Arc::clone(&fake.0.changed),
        redirected: Arc::clone(&fake.0.redirected),
        client,
    };
    let (clock, shutdown) = (fake.0.clock.clone(), fake.0.shutdown.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = deliveries.run(clock) => {}
        }
    });
}

struct Deliveries {
    fake: Weak<Inner>,
    changed: Arc<Notify>,
    redirected: Arc<Notify>,
    client: Client,
}

impl Deliveries {
    async fn run(self, clock: Clock) {
        let mut failures = 0;
        loop {
            let (changed, redirected) = (self.changed.notified(), self.redirected.notified());
            tokio::pin!(changed, redirected);
            changed.as_mut().enable();
            redirected.as_mut().enable();
            let Some(next) = self.fake().map(|fake| fake.next_parcel()) else { return };
            let Some(parcel) = next else {
                failures = 0;
                changed.await;
                continue;
            };
            let outcome = self.post(&parcel).await;
            let Some(fake) = self.fake() else { return };
            match outcome {
                Ok(()) => {
                    fake.settle(parcel.sequence);
                    failures = 0;
                }
                Err(failure) => {
                    let next_try_at = fake.note_failure(failure, failures);
                    drop(fake);
                    failures += 1;
                    tokio::select! {
                        () = clock.sleep_until(next_try_at) => {}
                        () = redirected => failures = 0,
                    }
                }
            }
        }
    }

    fn fake(&self) -> Option<Fake> {
        self.fake.upgrade().map(Fake)
    }

    async fn post(&self, parcel: &Parcel) -> Result<(), NotTaken> {
        let mut request = self.client.post(&parcel.webhook.url).header(header::CONTENT_TYPE, "application/json");
        if let Some(secret) = &parcel.webhook.secret {
            request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
        }
        let unreached = |error: reqwest::Error| NotTaken {
            message: if error.is_timeout() { "Read timeout expired".into() } else { "Connection refused".into() },
            retry_after_s: None,
        };
        let response = request.body(parcel.update.clone()).send().await.map_err(unreached)?;
        if response.status().is_success() {
            return Ok(());
        }
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Err(NotTaken {
            message: format!("Wrong response from the webhook: {}", response.status()),
            retry_after_s: retry_after.map(|seconds: u64| seconds.min(LONGEST_RETRY_AFTER_S)),
        })
    }
}

/// As the real server: at once, then 2, 4, 8 … seconds, at most a minute.
fn pause_s(failures: u32) -> u64 {
    match failures {
        0 => 0,
        _ => 2_u64.saturating_pow(failures).min(LONGEST_PAUSE_S),
    }
}

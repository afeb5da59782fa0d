//! How long work has waited, as it was last measured. Probes are asked by anybody, so they look here and not into the file.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::chat::inbox::{Stats, stats};
use crate::kernel::store::{Db, Tx};
use crate::outbox::health::{Health as Relayed, health as relayed};
use crate::webhooks::health::{Health as Delivered, health as delivered};
use crate::webhooks::{Error, Vault};

/// Between two measurements, in real time. Three jobs that sweep as often measure, so that none that hangs hides it.
const EVERY: Duration = Duration::from_secs(5);
/// What has waited this long is not merely behind: somebody should look.
const LONG: Duration = Duration::from_secs(300);

/// The last measurement of one process.
#[derive(Default)]
pub(super) struct Watch(Mutex<Option<(Instant, Seen)>>);

#[derive(Clone, Default)]
struct Seen {
    events: Relayed,
    webhooks: Delivered,
    updates: Stats,
}

impl Watch {
    /// Measures, unless that was done a moment ago. A store that cannot be read leaves what is known.
    pub(super) async fn look(&self, db: &Db) {
        let is_fresh = |(at, _): &(Instant, Seen)| at.elapsed() < EVERY;
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_fresh) {
            return;
        }
        let look =
            |tx: &Tx<'_>| Ok::<_, Error>(Seen { events: relayed(tx)?, webhooks: delivered(tx)?, updates: stats(tx)? });
        match db.read(look).await {
            Ok(seen) => *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), seen)),
            Err(error) => tracing::debug!(%error, "what waits to be relayed and sent could not be counted"),
        }
    }

    fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, seen)| seen.clone()).unwrap_or_default()
    }

    /// What a person should know of domain events.
    pub(super) fn advice_on_events(&self) -> Option<String> {
        let events = self.seen().events;
        if let Some(minutes) = long(events.oldest_pending_age_ms) {
            return Some(format!(
                "an event has waited {minutes} minutes for a consumer; see `pillarbox events list --status pending`"
            ));
        }
        (events.failed > 0).then(|| GIVEN_UP.to_owned())
    }

    /// What a person should know of updates.
    pub(super) fn advice_on_updates(&self) -> Option<String> {
        let dead = self.seen().updates.dead;
        let are = if dead == 1 { "update is" } else { "updates are" };
        (dead > 0).then(|| format!("{dead} {are} dead; see `pillarbox updates list --state dead`"))
    }

    /// What a person should know of webhooks.
    pub(super) fn advice_on_webhooks(&self, vault: &Vault) -> Option<String> {
        let webhooks = self.seen().webhooks;
        let has_endpoints = webhooks.active + webhooks.paused + webhooks.disabled > 0;
        match vault.has_key() {
            Err(_) => return Some(UNREADABLE.to_owned()),
            Ok(false) if has_endpoints => return Some(MISSING.to_owned()),
            Ok(_) => {}
        }
        long(webhooks.overdue_ms).map(|minutes| {
            format!(
                "a webhook that may go has waited {minutes} minutes; see the log and `pillarbox webhooks deliveries`"
            )
        })
    }
}

const GIVEN_UP: &str =
    "the relay has given events up; see `pillarbox events list --status failed` and `pillarbox events retry`";
const UNREADABLE: &str = "webhooks.key cannot be used, so webhooks are held back; the log says why when one is due";
const MISSING: &str =
    "webhooks.key is missing, so webhooks are held back: the secrets of endpoints are sealed with it; put it back";

/// The minutes of an age that is long.
fn long(age_ms: Option<i64>) -> Option<u64> {
    let age = Duration::from_millis(age_ms?.unsigned_abs());
    (age >= LONG).then_some(age.as_secs() / 60)
}

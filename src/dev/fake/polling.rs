//! `getUpdates`: the long poll, the offset that confirms, and the rule that only the newest poller is served.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::params::Params;
use super::refusal::Refusal;
use super::world::Entry;
use super::{Fake, Kept};

pub(super) const OTHER_POLLER: &str =
    "terminated by other getUpdates request; make sure that only one bot instance is running";
const WEBHOOK_SET: &str = "terminated by setWebhook request";
const WEBHOOK_ACTIVE: &str =
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";

/// The server's cap of `timeout`.
const LONGEST_POLL_S: i64 = 50;
const MOST_UPDATES: i64 = 100;

impl Fake {
    /// Real time: a long poll is a transport wait, and moving the clock must not end it.
    pub(super) async fn get_updates(&self, params: &Params) -> Result<Value, Refusal> {
        let limit = match params.integer("limit") {
            Some(limit @ 1..=MOST_UPDATES) => usize::try_from(limit).expect("is at most 100"),
            _ => 100,
        };
        let timeout = params.integer("timeout").unwrap_or(0).clamp(0, LONGEST_POLL_S).unsigned_abs();
        let deadline = Instant::now() + Duration::from_secs(timeout);
        let mine = self.begin_poll(params)?;
        loop {
            // Listen before looking: an update between the two would otherwise be missed.
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = self.kept().poll(mine, limit)?;
            if !found.is_empty() || timeout == 0 {
                return Ok(found.into());
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(deadline) => return Ok(Vec::<Value>::new().into()),
                () = self.0.shutdown.cancelled() => return Ok(Vec::<Value>::new().into()),
            }
        }
    }

    /// Ends every earlier poll and returns this one's number.
    fn begin_poll(&self, params: &Params) -> Result<u64, Refusal> {
        let allowed = params.texts("allowed_updates")?;
        let offset = params.integer("offset").unwrap_or(0);
        let mut kept = self.kept();
        if kept.world.webhook.is_some() {
            return Err(Refusal::conflict(WEBHOOK_ACTIVE));
        }
        kept.subscribe(allowed)?;
        kept.confirm(offset)?;
        kept.newest_poll += 1;
        self.wake();
        Ok(kept.newest_poll)
    }
}

impl Kept {
    /// Takes the new list, if one was given and differs: the old one is sticky.
    pub(super) fn subscribe(&mut self, allowed: Option<Vec<String>>) -> Result<(), Refusal> {
        match allowed {
            Some(allowed) if allowed != self.world.allowed => self.accept(Entry::Subscribed { allowed }),
            _ => Ok(()),
        }
    }

    fn confirm(&mut self, offset: i64) -> Result<(), Refusal> {
        let queue = &self.world.queue;
        if offset < 0 {
            let count = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
            return if queue.len() > count { self.accept(Entry::KeptLast { count }) } else { Ok(()) };
        }
        let update_id = offset.unsigned_abs();
        match queue.iter().any(|queued| queued.update_id < update_id) {
            true => self.accept(Entry::ConfirmedBelow { update_id }),
            false => Ok(()),
        }
    }

    fn poll(&self, mine: u64, limit: usize) -> Result<Vec<Value>, Refusal> {
        if self.newest_poll != mine {
            let by = if self.world.webhook.is_some() { WEBHOOK_SET } else { OTHER_POLLER };
            return Err(Refusal::conflict(by));
        }
        Ok(self.world.queue.iter().take(limit).map(|queued| queued.update.clone()).collect())
    }
}

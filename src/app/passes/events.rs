//! The passes of events, of both kinds, and of whoever is told of them: the bot, a backend elsewhere, the broker, webhooks.

use std::time::Duration;

use serde_json::json;

use super::{Again, Pass};
use crate::app::App;
use crate::backend::members;
use crate::onboarding::prune;
use crate::outbox;
use crate::webhooks;

impl App {
    /// Makes the calls that a remote backend is owed.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn call_backend(&self) -> anyhow::Result<Pass> {
        let Some(calls) = &self.calls else { return Ok(Pass::off()) };
        let report = calls.run_once(&self.stop).await?;
        let counts = json!({ "done": report.done, "again": report.again, "failed": report.failed });
        Ok(Pass { counts, again: report.next.map_or(Again::Later, Again::At) })
    }

    /// Tells of what members have reached that other programs wrote, and hands due bot events to the bot.
    ///
    /// # Errors
    /// The backend's or the store's.
    pub(crate) async fn poll_bot_outbox(&self) -> anyhow::Result<Pass> {
        let announced = members::announce_all(&self.db, &self.stop).await?;
        let Some(consumer) = &self.consumer else {
            return Ok(if announced == 0 { Pass::off() } else { Pass::later(json!({ "announced": announced })) });
        };
        let report = consumer.run_once(|| self.polled.beat()).await?;
        let again = if report.more { Again::Now } else { Again::Later };
        let mut counts = json!({ "processed": report.processed, "failed": report.failed });
        if announced > 0 {
            counts["announced"] = json!(announced);
        }
        Ok(Pass { counts, again })
    }

    /// Announces leads that other programs stored, and tells the broker's chat of those that it has not been told of.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn notify_leads(&self) -> anyhow::Result<Pass> {
        let report = self.notifier.run_once(&self.stop).await?;
        let again = match report.next {
            _ if report.more => Again::Now,
            Some(at) => Again::At(at),
            None => Again::Later,
        };
        let counts = json!({
            "announced": report.announced, "sent": report.sent, "failed": report.failed,
            "givenUp": report.given_up, "overtaken": report.overtaken,
        });
        Ok(Pass { counts, again })
    }

    /// Deletes ledger marks that can no longer be needed.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn prune_ledger(&self) -> anyhow::Result<Pass> {
        let report = prune::run_once(&self.db, self.jobs.ledger_retention, &self.stop).await?;
        Ok(Pass { counts: serde_json::to_value(report)?, again: Again::Later })
    }

    /// Hands domain events to their consumers.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn relay_events(&self) -> anyhow::Result<Pass> {
        let report = self.relay.run_once(&self.stop).await?;
        self.watch.look(&self.db).await;
        let again = match report.next {
            _ if report.more => Again::Now,
            Some(at) => Again::At(at),
            None => Again::Later,
        };
        Ok(Pass { counts: serde_json::to_value(report)?, again })
    }

    /// Deletes events that were published long ago, and idempotency keys that are over.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn prune_outbox(&self) -> anyhow::Result<Pass> {
        let keep = Duration::from_secs(u64::from(self.events.retention_days) * 86_400);
        let report = outbox::prune::run_once(&self.db, keep, webhooks::is_unfinished, &self.stop).await?;
        Ok(Pass { counts: serde_json::to_value(report)?, again: Again::Later })
    }

    /// Sends the webhooks that may go.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn deliver_webhooks(&self) -> anyhow::Result<Pass> {
        let report = self.deliverer.run_once(&self.stop).await?;
        self.watch.look(&self.db).await;
        let counts = json!({
            "delivered": report.delivered, "again": report.again, "failed": report.failed,
            "returned": report.returned, "overtaken": report.overtaken, "interrupted": report.interrupted,
        });
        Ok(Pass { counts, again: report.next.map_or(Again::Later, Again::At) })
    }

    /// Closes what waits for endpoints that were disabled, and removes what is left of deleted ones.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn sweep_webhooks(&self) -> anyhow::Result<Pass> {
        let swept = webhooks::sweep::run_once(&self.db, &self.stop).await?;
        self.watch.look(&self.db).await;
        Ok(Pass { counts: serde_json::to_value(swept)?, again: Again::Later })
    }
}

//! The passes that speak with Telegram: updates in, messages out.

use serde_json::json;

use super::{Again, Pass};
use crate::app::App;

impl App {
    /// Handles the updates that are due, each chat in its order.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn handle_updates(&self) -> anyhow::Result<Pass> {
        let Some(updates) = &self.updates else { return Ok(Pass::off()) };
        let report = updates.run_once(&self.stop).await?;
        let counts = json!({ "handled": report.handled, "again": report.again, "dead": report.dead });
        Ok(Pass { counts, again: report.next.map_or(Again::Later, Again::At) })
    }

    /// Sends what may be sent now.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_telegram(&self) -> anyhow::Result<Pass> {
        let Some(sender) = &self.sender else { return Ok(Pass::off()) };
        let report = sender.run_once(&self.stop).await?;
        let again = report.next.map_or(Again::Later, Again::At);
        let counts = json!({
            "sent": report.sent, "again": report.again, "undeliverable": report.undeliverable,
            "unknown": report.unknown, "skipped": report.skipped,
        });
        Ok(Pass { counts, again })
    }

    /// Waits for updates that are being handled, and for messages and webhooks that are being sent, no longer than each
    /// may take.
    pub(crate) async fn drain(&self) {
        let updates = async {
            if let Some(updates) = &self.updates {
                updates.drain().await;
            }
        };
        let messages = async {
            if let Some(sender) = &self.sender {
                sender.drain().await;
            }
        };
        tokio::join!(updates, messages, self.deliverer.drain());
    }
}

//! The passes that send to many.

use super::{Again, Pass};
use crate::app::App;
use crate::onboarding::{broadcast, digest, reminders};

impl App {
    /// Freezes the recipients of broadcasts, feeds them to the send queue, and ends what is over.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run_broadcasts(&self) -> anyhow::Result<Pass> {
        let Some(bulk) = &self.bulk else { return Ok(Pass::off()) };
        let report = broadcast::sweep::run_once(&self.db, bulk.default_lang, &self.stop).await?;
        let again = report.next.map_or(Again::Later, Again::At);
        Ok(Pass { counts: serde_json::to_value(report)?, again })
    }

    /// Sends leaders their day's numbers.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_digests(&self) -> anyhow::Result<Pass> {
        let Some(bulk) = &self.bulk else { return Ok(Pass::off()) };
        let report = digest::run_once(&self.db, &bulk.content, self.jobs.time_zone, &self.stop).await?;
        let again = report.next.map_or(Again::Later, Again::At);
        Ok(Pass { counts: serde_json::to_value(report)?, again })
    }

    /// Reminds whoever has been silent at their stage.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_reminders(&self) -> anyhow::Result<Pass> {
        let Some(bulk) = &self.bulk else { return Ok(Pass::off()) };
        let report = reminders::run_once(&self.db, &bulk.content, &bulk.reminders, &self.stop).await?;
        Ok(Pass { counts: serde_json::to_value(report)?, again: Again::Later })
    }
}

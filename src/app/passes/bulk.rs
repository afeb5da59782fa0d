//! The passes that send to many.

use super::Pass;
use crate::app::App;

impl App {
    /// Freezes the recipients of broadcasts, feeds them to the send queue, and ends what is over.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run_broadcasts(&self) -> anyhow::Result<Pass> {
        self.no_bulk()
    }

    /// Sends leaders their day's numbers.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_digests(&self) -> anyhow::Result<Pass> {
        self.no_bulk()
    }

    /// Reminds whoever has been silent at their stage.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_reminders(&self) -> anyhow::Result<Pass> {
        self.no_bulk()
    }

    fn no_bulk(&self) -> anyhow::Result<Pass> {
        match &self.bulk {
            None => Ok(Pass::off()),
            Some(bulk) => match *bulk {},
        }
    }
}

//! The relay: hands every event to every consumer until each has accepted it.

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::consumer::Consumer;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError};

/// The one relay of a process. One pass runs at a time: the job's single flight.
pub(crate) struct Relay {
    db: Db,
    consumers: Vec<Box<dyn Consumer>>,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// Events that every consumer has accepted now.
    pub(crate) published: u64,
    /// Events that a consumer refused, and that are handed over again later.
    pub(crate) retried: u64,
    /// Events that were given up.
    pub(crate) failed: u64,
    /// More are due already.
    #[serde(skip)]
    pub(crate) more: bool,
    /// When the next one is due, if one waits for that.
    #[serde(skip)]
    pub(crate) next: Option<UnixMs>,
}

impl Relay {
    /// A relay to these consumers, whose names differ.
    pub(crate) fn new(db: Db, consumers: Vec<Box<dyn Consumer>>) -> Self {
        Self { db, consumers }
    }

    /// Hands over what is due, page after page.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let _ = (&self.db, &self.consumers, stop);
        Ok(Report::default())
    }
}

//! The relay: hands every event to every consumer until each has accepted it.
//!
//! **What.** [`Relay::run_once`] is a pass over what is due, page by page: the outside consumers are asked for the page,
//! then transactions of a few milliseconds settle its events, each in a savepoint: the inside consumers' work, the
//! acceptances, the event's fate. If somebody outside takes his time, the inside consumers' work is committed before.
//!
//! **States.** Due (never refused, or refused and due again) → published; or put off, 30 s doubling up to an hour; or, at the
//! tenth refusal, failed.
//!
//! **Guarantees and windows** are `src/outbox/mod.rs`'s.
//!
//! **Not here.** What consumers do with an event, and a second relay: the job runs one pass at a time.

mod acceptances;
mod candidate;
mod outside;
mod pass;
mod settle;
mod walk;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub(crate) use self::acceptances::Acceptances;
pub(crate) use self::candidate::{Candidate, Columns};
pub(crate) use self::walk::Basket;

use self::outside::Patience;
use self::pass::Pass;
use super::consumer::{Consumer, Shape};
use super::sql;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError};

/// A pass ends after so long (real time, as the work is); then it lets others look at its report and begins anew.
const LONGEST_PASS: Duration = Duration::from_secs(5);
/// For so long an event is left alone whose row cannot be changed, as another program's trigger may have it.
const STUCK_MS: i64 = 5 * 60 * 1000;
/// And one for which a consumer's store was busy.
const BUSY_MS: i64 = 1_000;

/// The one relay of a process. One pass runs at a time: the job's single flight.
pub(crate) struct Relay {
    db: Db,
    consumers: Arc<Vec<Box<dyn Consumer>>>,
    patience: Patience,
    /// Rows that stay due although they were handed over, each until when it is left alone.
    aside: Mutex<HashMap<i64, UnixMs>>,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// Events that every consumer has accepted now.
    pub(crate) published: u64,
    /// Events that a consumer refused or was not asked for, and that are handed over again later.
    pub(crate) retried: u64,
    /// Events that were given up.
    pub(crate) failed: u64,
    /// Events of which nothing could be written.
    pub(crate) stuck: u64,
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
        Self { db, consumers: Arc::new(consumers), patience: Patience::default(), aside: Mutex::default() }
    }

    /// The same with another patience for outside consumers.
    #[cfg(test)]
    pub(super) fn with_patience(self, longest: Duration) -> Self {
        Self { patience: Patience::of(longest), ..self }
    }

    /// Hands over what is due, page after page.
    ///
    /// # Errors
    /// The store's; what was committed before stays, and the rest is due still.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let end = Instant::now() + LONGEST_PASS;
        let mut pass = Pass::begin(self, stop);
        let mut more = false;
        let ended = loop {
            if stop.is_cancelled() {
                break Ok(());
            }
            if Instant::now() >= end {
                more = true;
                break Ok(());
            }
            match pass.page().await {
                Ok(true) => break Ok(()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        // What was committed is told also when the store fails after it.
        let mut report = pass.tell();
        ended?;
        report.more = more;
        report.next = self.next_due().await?;
        Ok(report)
    }

    async fn next_due(&self) -> Result<Option<UnixMs>, StoreError> {
        let due = self.db.read(sql::relay::next_due).await?;
        let aside = self.aside().values().min().copied();
        Ok(due.into_iter().chain(aside).min())
    }

    fn has_outside(&self) -> bool {
        self.consumers.iter().any(|consumer| matches!(consumer.shape(), Shape::Outside(_)))
    }

    /// The rows that are left alone now. A clock that is set back does not make it longer.
    fn left_alone(&self) -> Arc<HashSet<i64>> {
        let now = self.db.clock().now();
        let mut aside = self.aside();
        aside.retain(|_, until| (1..=STUCK_MS).contains(&until.saturating_sub(now)));
        Arc::new(aside.keys().copied().collect())
    }

    fn leave_alone(&self, row: i64, for_ms: i64) {
        let until = self.db.clock().now().saturating_add(for_ms);
        self.aside().insert(row, until);
    }

    fn aside(&self) -> MutexGuard<'_, HashMap<i64, UnixMs>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

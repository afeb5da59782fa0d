//! The consumer: pages of events in, effects and marks out, one transaction a page.
//!
//! One consumer runs at a time in a process (the job's single flight), so a page in hand is never claimed twice, and
//! within the transaction each event is checked again to be the first open one of its subject.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::content::Content;
use super::port::{Backend, BackendError, Fate, Finished, PageEvent};
use super::{Error, reactions, sql};
use crate::kernel::store::{Db, StoreError, Tx};

/// Events of a page (contract: `BATCH_LIMIT`).
const PAGE: i64 = 100;
/// How often a page in hand is held on to, in real time; a third of its lease.
const HOLD_EVERY: Duration = Duration::from_secs(8);
/// Pages of one pass. A pass that found work to the end is followed by another at once.
const PAGES: usize = 50;

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    pub(crate) processed: u64,
    pub(crate) failed: u64,
    /// Whether more may be due already.
    pub(crate) more: bool,
}

/// Applies one event's effects. A field rather than a call, so that tests can put a failing one in its place.
type React = fn(&Tx<'_>, &Context, &PageEvent) -> Result<(), Error>;

/// What reactions need besides the transaction.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) content: Arc<Content>,
}

/// Takes events from one backend.
#[derive(Clone)]
pub(crate) struct Consumer {
    db: Db,
    context: Context,
    react: React,
}

impl Consumer {
    pub(crate) fn new(db: Db, backend: Arc<dyn Backend>, content: Arc<Content>) -> Self {
        Self { db, context: Context { backend, content }, react: reactions::react }
    }

    /// Handles what is due, page after page, with a sign of life after each.
    ///
    /// # Errors
    /// The backend's or the store's; what was committed before stays, and the rest is taken again.
    pub(crate) async fn run_once(&self, alive: impl Fn()) -> Result<Report, BackendError> {
        let mut report = Report::default();
        for _ in 0..PAGES {
            let page = self.context.backend.next_page(PAGE).await?;
            alive();
            if page.is_empty() {
                return Ok(report);
            }
            let finished = self.apply_held(page).await?;
            count(&finished, &mut report);
            self.context.backend.finish(&finished).await?;
            // A page that brought nothing new may come again at once: a backend that takes acknowledgements without
            // closing anything would be asked without a pause.
            if finished.processed.len() == finished.repeats && finished.failed.is_empty() {
                return Ok(report);
            }
        }
        report.more = true;
        Ok(report)
    }

    /// Applies a page, holding on to it for as long as that takes.
    async fn apply_held(&self, page: Vec<PageEvent>) -> Result<Finished, BackendError> {
        let ids: Vec<i64> = page.iter().map(|entry| entry.event.id).collect();
        let applying = self.apply(Arc::new(page));
        tokio::pin!(applying);
        loop {
            match tokio::time::timeout(HOLD_EVERY, &mut applying).await {
                Ok(done) => return Ok(done?),
                Err(_) => self.context.backend.hold(&ids).await?,
            }
        }
    }

    async fn apply(&self, page: Arc<Vec<PageEvent>>) -> Result<Finished, StoreError> {
        let context = self.context.clone();
        let react = self.react;
        self.db.settle(move |tx| apply_page(tx, &context, react, &page)).await
    }
}

/// Applies a page: each event in a savepoint of its own, a subject up to its first failure.
fn apply_page(tx: &Tx<'_>, context: &Context, react: React, page: &[PageEvent]) -> Result<Finished, StoreError> {
    let mut finished = Finished::default();
    let mut stopped: HashSet<&str> = HashSet::new();
    for entry in page {
        let id = entry.event.id;
        if stopped.contains(entry.subject.as_str()) || !context.backend.may_apply(tx, id)? {
            stopped.insert(&entry.subject);
            finished.left.push(id);
            continue;
        }
        let done = tx.attempt(|| Error::Panicked, || apply_one(tx, context, react, entry))?;
        match done {
            Ok(applied) => {
                finished.processed.push(id);
                finished.repeats += usize::from(applied == Applied::Before);
            }
            Err(error) => {
                if matches!(error, Error::IdReused) {
                    finished.reused.push(id);
                }
                let error = error.to_string();
                let fate = context.backend.put_off(tx, id, &error)?;
                finished.failed.push((id, error, fate));
                // A given-up event does not hold its subject; one that waits does.
                if matches!(fate, Fate::Waits | Fate::Theirs) {
                    stopped.insert(&entry.subject);
                }
            }
        }
    }
    Ok(finished)
}

/// Whether an event's effects are of this transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Applied {
    Now,
    Before,
}

/// The ledger mark, the effects and the closing of one event: together or not at all.
fn apply_one(tx: &Tx<'_>, context: &Context, react: React, entry: &PageEvent) -> Result<Applied, Error> {
    let event = &entry.event;
    let source = context.backend.source();
    let applied = match sql::find_mark(tx, source, event.id)? {
        Some(created_at) if created_at != event.created_at => return Err(Error::IdReused),
        Some(_) => Applied::Before,
        None => {
            sql::mark(tx, source, event, context.backend.closes_at_once())?;
            react(tx, context, entry)?;
            Applied::Now
        }
    };
    context.backend.close(tx, event.id)?;
    Ok(applied)
}

/// Counts a committed page, and says once what failed in it.
fn count(finished: &Finished, report: &mut Report) {
    report.processed += finished.processed.len() as u64;
    report.failed += finished.failed.len() as u64;
    metrics::counter!("pillarbox_bot_events_processed_total").increment(finished.processed.len() as u64);
    metrics::counter!("pillarbox_bot_events_failed_total").increment(finished.failed.len() as u64);
    for id in &finished.reused {
        tracing::error!(
            event.id = id,
            "the ledger has another event of this id: a backend that was replaced needs a new bot.remote_source"
        );
    }
    for (id, error, fate) in &finished.failed {
        if matches!(fate, Fate::Waits | Fate::Theirs) {
            tracing::warn!(event.id = id, error, "an event failed and its subject waits for the retry");
        }
    }
}

#[cfg(test)]
#[path = "consumer_tests.rs"]
mod tests;

//! What the relay hands events to. A consumer is one file; adding one touches that file and the list in `app`.

use futures_util::future::BoxFuture;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// A row of `outbox_events`, as consumers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    /// The row; never used twice.
    pub(crate) row: i64,
    /// Whose it is.
    pub(crate) tenant: TenantId,
    /// Its id: what consumers are idempotent by.
    pub(crate) event_id: String,
    /// The dotted type.
    pub(crate) event_type: String,
    /// The version of its fields.
    pub(crate) version: i64,
    /// What it is about: the kind.
    pub(crate) aggregate_type: String,
    /// What it is about: the id.
    pub(crate) aggregate_id: String,
    /// When it happened.
    pub(crate) occurred_at: UnixMs,
    /// The JSON text as it came; nobody re-serialises it.
    pub(crate) payload: String,
    /// Hand-overs that have failed.
    pub(crate) attempts: i64,
}

/// Why a consumer did not take an event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    /// A short code for `last_error`; never a text of the event.
    #[error("{0}")]
    Code(&'static str),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whoever every event is handed to, at least once.
pub(crate) trait Consumer: Send + Sync {
    /// Its name in `acceptances` and `last_error`.
    fn name(&self) -> &'static str;

    /// Where it does its work.
    fn shape(&self) -> Shape<'_>;
}

/// The two ways of accepting.
pub(crate) enum Shape<'a> {
    /// In the relay's transaction: what it writes and the acceptance commit together.
    Inside(&'a dyn Inside),
    /// Outside any transaction; the acceptance is recorded afterwards, so a crash in between repeats it.
    Outside(&'a dyn Outside),
}

/// Accepts within the relay's transaction.
pub(crate) trait Inside: Send + Sync {
    /// Takes the event. Runs in a savepoint of its own: an error takes back what it wrote.
    ///
    /// # Errors
    /// [`Refusal`].
    fn accept(&self, tx: &Tx<'_>, event: &StoredEvent) -> Result<(), Refusal>;
}

/// Accepts outside.
pub(crate) trait Outside: Send + Sync {
    /// Takes the events, in their order; one result for each.
    fn accept<'a>(&'a self, events: &'a [StoredEvent]) -> BoxFuture<'a, Vec<Result<(), Refusal>>>;
}

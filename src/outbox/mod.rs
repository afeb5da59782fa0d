//! Domain events: everything that happened, recorded by the transaction in which it happened.
//!
//! **What.** `tx.publish` hands each event to [`record`], which writes a row of `outbox_events`: ids and amounts only.
//!
//! **States.** Recorded. The relay that publishes to consumers is not here yet.
//!
//! **Guarantees.** An event is in the table if and only if its change is:
//! `src/app/record_tests.rs`.
//!
//! **Windows.** None: recording is part of the publisher's transaction.
//!
//! **Not here.** Relay, webhooks, and what the bot is told (`backend`).

mod analytics;
pub(crate) mod consumer;
mod error;
pub(crate) mod health;
pub(crate) mod inspect;
mod post;
pub(crate) mod prune;
mod registry;
mod relay;
mod retry;
mod sql;

pub(crate) use analytics::Analytics;
pub(crate) use error::Error;
pub(crate) use post::{IdempotencyKey, MOST_EVENTS, NewEvent, Posted, post};
pub(crate) use registry::{RegisteredType, register_type, types, unregister_type};
pub(crate) use relay::{Relay, Report};
pub(crate) use retry::{Batch, FailedOnes, Retried, retry, retry_failed};

use crate::kernel::events::Event;
use crate::kernel::id;
use crate::kernel::store::{StoreError, Tx, Wake};

/// Domain events have been committed.
pub(crate) const OUTBOX_EVENTS: Wake = Wake("outbox-events");

/// Records a published event.
///
/// # Errors
/// The store's.
pub(crate) fn record(tx: &Tx<'_>, event: &Event) -> Result<(), StoreError> {
    sql::record::insert(tx, &id::uuid_v7(tx.now()), event)?;
    tx.wake(OUTBOX_EVENTS);
    Ok(())
}

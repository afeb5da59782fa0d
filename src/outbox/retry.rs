//! What a person may do about events: have them handed over again.

use super::inspect::{Cursor, EventFilter, EventStatus, Gathering, Page, id_after};
use super::{Error, OUTBOX_EVENTS, sql};
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;

/// What a request for a retry did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retried {
    /// It was given up, and is due now, with all its attempts before it.
    Reopened,
    /// It waits for its next attempt, which is due now; its attempts count on.
    Hastened,
}

/// Has an event handed over now to the consumers that have not accepted it.
///
/// # Errors
/// [`Error::NotFound`], [`Error::AlreadyPublished`], the store's.
pub(crate) fn retry(tx: &Tx<'_>, tenant: &TenantId, event_id: &str) -> Result<Retried, Error> {
    let (row, status) = sql::lists::find_status(tx, tenant, event_id)?.ok_or(Error::NotFound)?;
    let retried = match status {
        EventStatus::Published => return Err(Error::AlreadyPublished),
        EventStatus::Failed => {
            sql::retry::reopen(tx, row)?;
            Retried::Reopened
        }
        EventStatus::Pending => {
            sql::retry::hasten(tx, row)?;
            Retried::Hastened
        }
    };
    tx.wake(OUTBOX_EVENTS);
    Ok(retried)
}

/// Which failed events, a batch at a time.
#[derive(Clone, Debug)]
pub(crate) struct FailedOnes {
    /// Only those of exactly this type.
    pub(crate) event_type: Option<String>,
    /// Behind this one; where the batch before ended.
    pub(crate) after: Option<Cursor>,
    /// How many are opened again at once, 1 to 200.
    pub(crate) limit: i64,
}

/// What a batch of retries did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// How many events were opened again.
    pub(crate) retried: usize,
    /// Where the next batch begins; `None` at the end.
    pub(crate) next: Option<Cursor>,
}

/// Retries a tenant's failed events, a batch at a time.
///
/// # Errors
/// [`Error::Invalid`] for a cursor of another list; the store's.
pub(crate) fn retry_failed(tx: &Tx<'_>, tenant: &TenantId, which: &FailedOnes) -> Result<Batch, Error> {
    let filter = EventFilter { status: Some(EventStatus::Failed), event_type: which.event_type.clone() };
    let mut gathering = Gathering::new(tenant, &filter, which.limit);
    sql::lists::gather_failed(tx, tenant, id_after(which.after.as_ref())?, &mut gathering)?;
    let Page { items, next } = gathering.end();
    let mut retried = 0;
    for (row, _) in &items {
        retried += usize::from(sql::retry::reopen(tx, *row)?);
    }
    if retried > 0 {
        tx.wake(OUTBOX_EVENTS);
    }
    Ok(Batch { retried, next })
}

//! Pages of events that may be handled now: read for a remote bot, claimed for the one in this process.
//!
//! A page takes subjects in the order of their heads' due times, skips a subject whose head is in back-off or leased,
//! and takes each one's events upward by id until it is full.

use super::{LEASE, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::contract::{BotEvent, Payload};
use crate::kernel::store::{StoreError, Tx};

/// One event of a page, with the subject whose order it is in.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) subject: String,
    /// The event without its payload.
    pub(super) event: BotEvent,
    /// The payload as it is stored. Taking it apart is not the writer's work: it waits for [`Served::into_event`].
    pub(super) payload: Option<String>,
    /// When it may be handled; later than now only behind a head that is due.
    pub(super) due_at: UnixMs,
}

impl Served {
    /// The event's id.
    pub(crate) fn id(&self) -> i64 {
        self.event.id
    }

    /// The event whole; to be called outside any transaction.
    pub(crate) fn into_event(self) -> BotEvent {
        BotEvent { payload: Payload::read(self.payload), ..self.event }
    }
}

/// The next page, without taking it: twice gives the same.
///
/// # Errors
/// The store's.
pub(crate) fn pending(tx: &Tx<'_>, limit: i64) -> Result<Vec<Served>, StoreError> {
    let mut page = sql::due_page(tx, limit)?;
    // Behind a due head there may be an event that waits by itself: its subject's page ends before it.
    let mut stopped: Option<String> = None;
    page.retain(|served| {
        if stopped.as_ref() == Some(&served.subject) {
            return false;
        }
        let due = served.due_at <= tx.now();
        if !due {
            stopped = Some(served.subject.clone());
        }
        due
    });
    Ok(page)
}

/// Takes the next page for this process, for [`LEASE`].
///
/// # Errors
/// The store's.
pub(crate) fn claim(tx: &Tx<'_>, limit: i64) -> Result<Vec<Served>, StoreError> {
    let page = pending(tx, limit)?;
    sql::lease(tx, &ids(&page), lease_end(tx))?;
    Ok(page)
}

/// Holds on to what is still leased of `ids` for another [`LEASE`].
///
/// # Errors
/// The store's.
pub(crate) fn renew(tx: &Tx<'_>, ids: &[i64]) -> Result<(), StoreError> {
    sql::renew_lease(tx, ids, lease_end(tx))
}

/// Gives back what is still leased of `ids`.
///
/// # Errors
/// The store's.
pub(crate) fn release(tx: &Tx<'_>, ids: &[i64]) -> Result<(), StoreError> {
    sql::release_lease(tx, ids)
}

fn ids(page: &[Served]) -> Vec<i64> {
    page.iter().map(Served::id).collect()
}

fn lease_end(tx: &Tx<'_>) -> UnixMs {
    tx.now() + i64::try_from(LEASE.as_millis()).unwrap_or(0)
}

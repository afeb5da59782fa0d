//! What a person may ask for: one delivery once more, those of an endpoint that failed, and those that it did not get
//! while it was disabled. Each is written down before it is acknowledged.
//!
//! Many are queued in batches, each a write of its own, so that nobody waits for all of them. Asking again goes on where
//! it was cut off: what was queued is no longer among what is looked for.

use super::delivery::DeliveryStatus;
use super::endpoint::{EndpointStatus, find_endpoint};
use super::{DELIVERIES, Error, id, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;

/// Deliveries of one write.
const BATCH: usize = 500;
/// Rows that are looked at for one: of a long history only some may be of the time asked for.
const LOOKED_AT: usize = 2_000;

/// Which deliveries are queued again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Failed and cancelled ones.
    Undelivered,
    /// Those of while the endpoint was disabled.
    Skipped,
}

impl Lost {
    fn statuses(self) -> &'static [DeliveryStatus] {
        match self {
            Self::Undelivered => &[DeliveryStatus::Failed, DeliveryStatus::Cancelled],
            Self::Skipped => &[DeliveryStatus::Skipped],
        }
    }
}

/// When the deliveries were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Then or later.
    pub(crate) since: UnixMs,
    /// Before then.
    pub(crate) until: UnixMs,
}

/// Where a batch begins; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The place of the status among those that are looked for.
    status: usize,
    /// The row after which it goes on.
    row: i64,
}

/// What a batch queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// How many.
    pub(crate) queued: usize,
    /// Where the next batch begins; `None` if this was the last.
    pub(crate) next: Option<Cursor>,
}

/// Failed and cancelled deliveries of an endpoint wait again, with the whole schedule before them; a batch of them.
///
/// # Errors
/// [`Error::NotFound`], [`Error::EndpointDisabled`], the store's.
pub(crate) fn recover(
    tx: &Tx<'_>,
    tenant: &TenantId,
    endpoint_id: &str,
    window: Window,
    from: Cursor,
) -> Result<Batch, Error> {
    Request { lost: Lost::Undelivered, window, from }.run(tx, tenant, endpoint_id)
}

/// Deliveries that were skipped while the endpoint was disabled wait now; a batch of them.
///
/// # Errors
/// [`Error::NotFound`], [`Error::EndpointDisabled`], the store's.
pub(crate) fn replay_skipped(
    tx: &Tx<'_>,
    tenant: &TenantId,
    endpoint_id: &str,
    window: Window,
    from: Cursor,
) -> Result<Batch, Error> {
    Request { lost: Lost::Skipped, window, from }.run(tx, tenant, endpoint_id)
}

struct Request {
    lost: Lost,
    window: Window,
    from: Cursor,
}

impl Request {
    fn run(&self, tx: &Tx<'_>, tenant: &TenantId, endpoint_id: &str) -> Result<Batch, Error> {
        let endpoint = find_endpoint(tx, tenant, endpoint_id)?;
        if endpoint.status == EndpointStatus::Disabled {
            return Err(Error::EndpointDisabled);
        }
        let Some(&status) = self.lost.statuses().get(self.from.status) else {
            return Ok(Batch { queued: 0, next: None });
        };
        let seen = sql::recover::lost(tx, endpoint.row, status, self.from.row, LOOKED_AT)?;
        let is_asked_for = |made_at: UnixMs| (self.window.since..self.window.until).contains(&made_at);
        let wanted = seen.iter().filter(|(_, made_at)| is_asked_for(*made_at)).map(|(row, _)| *row);
        let rows: Vec<i64> = wanted.take(BATCH).collect();
        let queued = sql::recover::queue(tx, &rows, status)?;
        if queued > 0 {
            tx.wake(DELIVERIES);
        }
        Ok(Batch { queued, next: self.next(&rows, &seen) })
    }

    /// Behind the last row that was queued if the batch is full, behind the last that was looked at if there may be
    /// more, and else with the next status.
    fn next(&self, queued: &[i64], seen: &[(i64, UnixMs)]) -> Option<Cursor> {
        let full = queued.last().filter(|_| queued.len() == BATCH);
        let more = seen.last().map(|(row, _)| row).filter(|_| seen.len() == LOOKED_AT);
        let next = match full.or(more) {
            Some(&row) => Cursor { row, ..self.from },
            None => Cursor { status: self.from.status + 1, row: 0 },
        };
        (next.status < self.lost.statuses().len()).then_some(next)
    }
}

/// One more attempt of a delivery, whatever became of it, beside its schedule. Each accepted request is followed by an
/// attempt that begins after it; several before that are one.
///
/// # Errors
/// [`Error::NotFound`], [`Error::EndpointDisabled`], the store's.
pub(crate) fn resend(tx: &Tx<'_>, tenant: &TenantId, delivery_id: &str) -> Result<(), Error> {
    let (row, made_at) = id::parse_delivery_id(delivery_id).ok_or(Error::NotFound)?;
    let found = sql::recover::find(tx, tenant, row)?.filter(|found| id::is_made_at(found.created_at, made_at));
    if found.ok_or(Error::NotFound)?.endpoint_status == EndpointStatus::Disabled {
        return Err(Error::EndpointDisabled);
    }
    sql::recover::request_resend(tx, row)?;
    tx.wake(DELIVERIES);
    Ok(())
}

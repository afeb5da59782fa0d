//! How long leads are kept: deleting one by hand, and the old ones by a policy. Personal data goes with the row; what
//! the domain outbox has of it is ids.

use super::{NotificationStatus, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// What became of a request to delete a lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// It is gone; where its notification stood.
    Gone(NotificationStatus),
    /// It is being sent right now: what becomes of that would be recorded nowhere.
    Sending,
    /// There is no such lead.
    Missing,
}

/// Deletes a lead with its events, unless it was claimed within the last 15 minutes and not completed.
///
/// # Errors
/// The store's.
pub(crate) fn delete(tx: &Tx<'_>, lead_id: &str) -> Result<Deleted, StoreError> {
    let Some(standing) = sql::claim::find(tx, lead_id)? else { return Ok(Deleted::Missing) };
    if standing.status == NotificationStatus::Sending && !standing.is_claimable(tx.now()) {
        return Ok(Deleted::Sending);
    }
    sql::keep::delete(tx, standing.row)?;
    Ok(Deleted::Gone(standing.status))
}

/// Deletes up to `limit` leads that came before `before`, the oldest first; how many. Never one of which somebody is
/// still to be told.
///
/// # Errors
/// The store's.
pub(crate) fn delete_older_than(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::keep::delete_older(tx, before, limit)
}

//! Deleting leads; their events go with them.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The lead in that row is gone, with its events.
pub(crate) fn delete(tx: &Tx<'_>, row: i64) -> Result<usize, StoreError> {
    tx.execute("DELETE FROM broker_leads WHERE rowid = :row", named_params! { ":row": row })
}

pub(super) const DELETE_OLDER: &str = "
    DELETE FROM broker_leads WHERE rowid IN (
        SELECT rowid FROM broker_leads INDEXED BY broker_leads_by_age
        WHERE created_at < :before AND notification_status NOT IN ('pending', 'sending')
        ORDER BY created_at, id LIMIT :limit)";

/// Leads that came before that and of which nobody is about to be told are gone, the oldest first; how many.
pub(crate) fn delete_older(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_OLDER, named_params! { ":before": before, ":limit": limit })
}

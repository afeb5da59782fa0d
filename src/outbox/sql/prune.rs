//! Statements that find and delete what is over.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

pub(super) const PAGE: &str = "
    SELECT id, created_at, published_at, failed_at FROM outbox_events WHERE id > :row ORDER BY id LIMIT :limit";
pub(super) const DELETE_KEYS: &str = "
    DELETE FROM idempotency_keys WHERE (tenant_id, key) IN (
      SELECT tenant_id, key FROM idempotency_keys INDEXED BY idempotency_keys_created_at
      WHERE created_at <= :until ORDER BY created_at LIMIT :limit)";

/// What deciding about a row takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    pub(crate) row: i64,
    pub(crate) created_at: UnixMs,
    pub(crate) published_at: Option<UnixMs>,
    pub(crate) is_failed: bool,
}

/// The next rows behind one, whatever their state.
pub(crate) fn ages(tx: &Tx<'_>, row: i64, limit: i64) -> Result<Vec<Age>, StoreError> {
    tx.query_all(PAGE, named_params! { ":row": row, ":limit": limit }, |row| {
        Ok(Age {
            row: row.get("id")?,
            created_at: row.get("created_at")?,
            published_at: row.get("published_at")?,
            is_failed: row.get::<_, Option<UnixMs>>("failed_at")?.is_some(),
        })
    })
}

/// Deletes an event that is published; whether it was there.
pub(crate) fn delete_published(tx: &Tx<'_>, row: i64) -> Result<bool, StoreError> {
    let deleted = tx.execute(
        "DELETE FROM outbox_events WHERE id = :row AND published_at IS NOT NULL AND failed_at IS NULL",
        named_params! { ":row": row },
    )?;
    Ok(deleted == 1)
}

/// Deletes up to so many idempotency keys of that time or before.
pub(crate) fn delete_keys(tx: &Tx<'_>, until: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_KEYS, named_params! { ":until": until, ":limit": limit })
}

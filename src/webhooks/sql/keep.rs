//! Deleting deliveries with their journal, bodies without a delivery, and test attempts.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// A delivery, as far as its age matters.
pub(crate) struct Old {
    pub(crate) delivery: i64,
    pub(crate) created_at: UnixMs,
    pub(crate) is_finished: bool,
}

pub(super) const OLDEST: &str = "
    SELECT id, created_at,
           status IN ('delivered', 'failed', 'cancelled', 'skipped') AND resend_requested_at IS NULL AS is_finished
    FROM webhook_deliveries WHERE id > :after ORDER BY id LIMIT :limit";

pub(super) const FINISHED_OF: &str = "
    SELECT id FROM webhook_deliveries
    WHERE id IN (SELECT value FROM json_each(:rows))
      AND status IN ('delivered', 'failed', 'cancelled', 'skipped') AND resend_requested_at IS NULL";

pub(super) const DELETE_DELIVERIES: &str = "
    DELETE FROM webhook_deliveries WHERE id IN (SELECT value FROM json_each(:rows)) RETURNING message";

pub(super) const DELETE_MESSAGES: &str = "
    DELETE FROM webhook_messages
    WHERE id IN (SELECT value FROM json_each(:rows))
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE message = webhook_messages.id)";

pub(super) const DELETE_TESTS: &str = "
    DELETE FROM webhook_tests WHERE id IN (
        SELECT id FROM webhook_tests INDEXED BY webhook_tests_by_age
        WHERE started_at < :before ORDER BY started_at LIMIT :limit)";

/// Deliveries behind that row, in the order in which they were made.
pub(crate) fn oldest_deliveries(tx: &Tx<'_>, after: i64, limit: usize) -> Result<Vec<Old>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query_all(OLDEST, named_params! { ":after": after, ":limit": limit }, |row| {
        let (delivery, created_at) = (row.get("id")?, row.get("created_at")?);
        Ok(Old { delivery, created_at, is_finished: row.get("is_finished")? })
    })
}

/// Those of these deliveries that are finished and that nobody has asked for.
pub(crate) fn finished_of(tx: &Tx<'_>, rows: &[i64]) -> Result<Vec<i64>, StoreError> {
    tx.query_all(FINISHED_OF, named_params! { ":rows": super::listed(rows) }, |row| row.get("id"))
}

/// These deliveries are gone with their journal; the bodies that they had, one for each.
pub(crate) fn delete_deliveries(tx: &Tx<'_>, rows: &[i64]) -> Result<Vec<i64>, StoreError> {
    tx.query_all(DELETE_DELIVERIES, named_params! { ":rows": super::listed(rows) }, |row| row.get("message"))
}

/// Those of these bodies that no delivery has are gone.
pub(crate) fn delete_messages(tx: &Tx<'_>, rows: &[i64]) -> Result<usize, StoreError> {
    tx.execute(DELETE_MESSAGES, named_params! { ":rows": super::listed(rows) })
}

/// Test attempts that were made before then are gone, up to `limit` of them; how many.
pub(crate) fn delete_tests(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_TESTS, named_params! { ":before": before, ":limit": limit })
}

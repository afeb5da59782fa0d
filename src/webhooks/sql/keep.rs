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

pub(super) const DELETE_FINISHED: &str = "
    DELETE FROM webhook_deliveries
    WHERE id = :delivery AND status IN ('delivered', 'failed', 'cancelled', 'skipped') AND resend_requested_at IS NULL
    RETURNING message";

pub(super) const DELETE_AT_REST: &str = "
    DELETE FROM webhook_deliveries WHERE id = :delivery AND status <> 'sending' RETURNING message";

pub(super) const DELETE_MESSAGE: &str = "
    DELETE FROM webhook_messages
    WHERE id = :message AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE message = webhook_messages.id)";

pub(super) const DELETE_TESTS: &str = "
    DELETE FROM webhook_tests WHERE id IN (
        SELECT id FROM webhook_tests INDEXED BY webhook_tests_by_age
        WHERE started_at < :before ORDER BY started_at LIMIT :limit)";

pub(super) const DELETE_TESTS_OF: &str = "
    DELETE FROM webhook_tests WHERE id IN (
        SELECT id FROM webhook_tests INDEXED BY webhook_tests_of_endpoint WHERE endpoint = :endpoint LIMIT :limit)";

/// Deliveries behind that row, in the order in which they were made.
pub(crate) fn oldest_deliveries(tx: &Tx<'_>, after: i64, limit: usize) -> Result<Vec<Old>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query_all(OLDEST, named_params! { ":after": after, ":limit": limit }, |row| {
        let (delivery, created_at) = (row.get("id")?, row.get("created_at")?);
        Ok(Old { delivery, created_at, is_finished: row.get("is_finished")? })
    })
}

/// The delivery is gone with its journal, if it is finished and nobody has asked for it; the body that it had.
pub(crate) fn delete_finished(tx: &Tx<'_>, delivery: i64) -> Result<Option<i64>, StoreError> {
    tx.query_opt(DELETE_FINISHED, named_params! { ":delivery": delivery }, |row| row.get("message"))
}

/// The delivery is gone with its journal, if it is not being sent; the body that it had.
pub(crate) fn delete_at_rest(tx: &Tx<'_>, delivery: i64) -> Result<Option<i64>, StoreError> {
    tx.query_opt(DELETE_AT_REST, named_params! { ":delivery": delivery }, |row| row.get("message"))
}

/// The body is gone, if no delivery has it.
pub(crate) fn delete_message(tx: &Tx<'_>, message: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_MESSAGE, named_params! { ":message": message })
}

/// Test attempts of an endpoint are gone, up to `limit` of them; how many.
pub(crate) fn delete_tests_of(tx: &Tx<'_>, endpoint: i64, limit: usize) -> Result<usize, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.execute(DELETE_TESTS_OF, named_params! { ":endpoint": endpoint, ":limit": limit })
}

/// Test attempts that were made before then are gone, up to `limit` of them; how many.
pub(crate) fn delete_tests(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_TESTS, named_params! { ":before": before, ":limit": limit })
}

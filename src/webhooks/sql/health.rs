//! Webhooks in numbers.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::health::Health;

pub(super) const PENDING: &str = "
    SELECT count(*) AS count FROM (
        SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_pending WHERE status = 'pending' LIMIT :cap)";

pub(super) const SENDING: &str = "
    SELECT count(*) AS count FROM (
        SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_sending WHERE status = 'sending' LIMIT :cap)";

/// How many deliveries wait; no more than `cap` are counted.
pub(crate) fn pending(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    tx.query_one(PENDING, named_params! { ":cap": cap }, |row| row.get("count"))
}

/// How many deliveries are being sent; no more than `cap` are counted.
pub(crate) fn sending(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    tx.query_one(SENDING, named_params! { ":cap": cap }, |row| row.get("count"))
}

/// Endpoints by how they are.
pub(crate) fn endpoints(tx: &Tx<'_>) -> Result<Health, StoreError> {
    let sql = "
        SELECT COALESCE(sum(status = 'active'), 0) AS active, COALESCE(sum(status = 'paused'), 0) AS paused,
               COALESCE(sum(status = 'disabled'), 0) AS disabled,
               COALESCE(sum(status <> 'disabled' AND failing_since IS NOT NULL), 0) AS failing
        FROM webhook_endpoints WHERE deleted_at IS NULL";
    tx.query_one(sql, [], |row| {
        Ok(Health {
            active: row.get("active")?,
            paused: row.get("paused")?,
            disabled: row.get("disabled")?,
            failing: row.get("failing")?,
            ..Health::default()
        })
    })
}

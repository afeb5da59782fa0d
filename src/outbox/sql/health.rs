//! The numbers of the relay, from the partial indexes of what is not published.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

pub(super) const PENDING: &str = "
    SELECT count(*) AS n FROM (
      SELECT 1 FROM outbox_events INDEXED BY outbox_events_due WHERE published_at IS NULL AND failed_at IS NULL LIMIT :cap)";
pub(super) const REFUSED: &str = "
    SELECT count(*) AS n FROM (
      SELECT 1 FROM outbox_events INDEXED BY outbox_events_due
      WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at >= :least LIMIT :cap)";
pub(super) const FAILED: &str = "
    SELECT count(*) AS n FROM (
      SELECT 1 FROM outbox_events INDEXED BY outbox_events_failed WHERE failed_at IS NOT NULL LIMIT :cap)";
pub(super) const OLDEST: &str = "
    SELECT min(created_at) AS since FROM (
      SELECT created_at FROM (
        SELECT created_at FROM outbox_events INDEXED BY outbox_events_due
        WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at IS NULL ORDER BY id LIMIT :looked_at)
      UNION ALL
      SELECT created_at FROM (
        SELECT created_at FROM outbox_events INDEXED BY outbox_events_due
        WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at >= :least
        ORDER BY next_attempt_at, id LIMIT :looked_at))";

/// How many events are pending, how many of them have been refused, and how many have failed; each no more than `cap`.
pub(crate) fn counts(tx: &Tx<'_>, cap: i64) -> Result<(i64, i64, i64), StoreError> {
    let pending = pending(tx, cap)?;
    let refused = tx.query_one(REFUSED, named_params! { ":cap": cap, ":least": i64::MIN }, |row| row.get("n"))?;
    let failed = tx.query_one(FAILED, named_params! { ":cap": cap }, |row| row.get("n"))?;
    Ok((pending, refused, failed))
}

/// How many events of all tenants are pending, no more than `cap`.
pub(crate) fn pending(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    tx.query_one(PENDING, named_params! { ":cap": cap }, |row| row.get("n"))
}

/// When the oldest of the first pending events was stored.
pub(crate) fn oldest_pending(tx: &Tx<'_>, looked_at: i64) -> Result<Option<UnixMs>, StoreError> {
    tx.query_one(OLDEST, named_params! { ":looked_at": looked_at, ":least": i64::MIN }, |row| row.get("since"))
}

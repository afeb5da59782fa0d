//! What follows from an endpoint's end: its deliveries are skipped, cancelled or gone.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// A disabled endpoint of which something still waits.
pub(crate) struct DisabledOne {
    pub(crate) endpoint: i64,
    pub(crate) is_gone: bool,
}

pub(super) const DISABLED_WITH_WORK: &str = "
    SELECT id, disabled_reason = 'gone' AS is_gone FROM webhook_endpoints INDEXED BY webhook_endpoints_disabled
    WHERE status = 'disabled' AND deleted_at IS NULL
      AND (EXISTS (SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                   WHERE status = 'pending' AND endpoint = webhook_endpoints.id)
           OR EXISTS (SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
                      WHERE resend_requested_at IS NOT NULL AND status <> 'sending' AND endpoint = webhook_endpoints.id))
    ORDER BY id LIMIT :limit";

pub(super) const CANCEL: &str = "
    UPDATE webhook_deliveries SET status = 'cancelled', next_attempt_at = NULL
    WHERE id IN (SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                 WHERE status = 'pending' AND endpoint = :endpoint LIMIT :limit)";

pub(super) const SKIP: &str = "
    UPDATE webhook_deliveries SET status = 'skipped', next_attempt_at = NULL
    WHERE id IN (SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                 WHERE status = 'pending' AND endpoint = :endpoint LIMIT :limit)";

pub(super) const DROP_REQUESTS: &str = "
    UPDATE webhook_deliveries SET resend_requested_at = NULL
    WHERE id IN (SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
                 WHERE resend_requested_at IS NOT NULL AND status <> 'sending' AND endpoint = :endpoint LIMIT :limit)";

pub(super) const DELETED: &str = "
    SELECT id FROM webhook_endpoints INDEXED BY webhook_endpoints_deleted
    WHERE deleted_at IS NOT NULL ORDER BY id LIMIT :limit";

pub(super) const AT_REST: &str = "
    SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_of_endpoint
    WHERE endpoint = :endpoint AND status <> 'sending' ORDER BY id LIMIT :limit";

pub(super) const DELETE_ENDPOINT: &str = "
    DELETE FROM webhook_endpoints
    WHERE id = :endpoint AND deleted_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_of_endpoint
                      WHERE endpoint = :endpoint)";

pub(super) const IS_ANY_SECRET_EXPIRED: &str = "
    SELECT EXISTS (SELECT 1 FROM webhook_secrets INDEXED BY webhook_secrets_expiring
                   WHERE valid_until IS NOT NULL AND valid_until <= :now) AS is_any";

// One step from each endpoint to the next that has any, as for what may go.
pub(super) const DUE_TOO_LATE: &str = "
    WITH RECURSIVE e (id) AS (
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                WHERE status = 'pending' ORDER BY endpoint LIMIT 1)
        UNION ALL
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                WHERE status = 'pending' AND endpoint > e.id ORDER BY endpoint LIMIT 1)
        FROM e WHERE e.id IS NOT NULL
    )
    SELECT e.id FROM e
    WHERE EXISTS (SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                  WHERE status = 'pending' AND endpoint = e.id AND next_attempt_at > :latest)
    LIMIT :limit";

pub(super) const PULL_IN: &str = "
    UPDATE webhook_deliveries SET next_attempt_at = :now
    WHERE id IN (SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                 WHERE status = 'pending' AND endpoint = :endpoint AND next_attempt_at > :latest LIMIT :limit)";

fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Disabled endpoints of which deliveries wait, or which a person has asked for.
pub(crate) fn disabled_with_work(tx: &Tx<'_>, limit: usize) -> Result<Vec<DisabledOne>, StoreError> {
    tx.query_all(DISABLED_WITH_WORK, named_params! { ":limit": bound(limit) }, |row| {
        Ok(DisabledOne { endpoint: row.get("id")?, is_gone: row.get("is_gone")? })
    })
}

/// What waits for an endpoint is cancelled; how many.
pub(crate) fn cancel(tx: &Tx<'_>, endpoint: i64, limit: usize) -> Result<usize, StoreError> {
    tx.execute(CANCEL, named_params! { ":endpoint": endpoint, ":limit": bound(limit) })
}

/// What waits for an endpoint is skipped; how many.
pub(crate) fn skip(tx: &Tx<'_>, endpoint: i64, limit: usize) -> Result<usize, StoreError> {
    tx.execute(SKIP, named_params! { ":endpoint": endpoint, ":limit": bound(limit) })
}

/// What a person asked for of an endpoint is not done any more; how many.
pub(crate) fn drop_requests(tx: &Tx<'_>, endpoint: i64, limit: usize) -> Result<usize, StoreError> {
    tx.execute(DROP_REQUESTS, named_params! { ":endpoint": endpoint, ":limit": bound(limit) })
}

/// Whether an endpoint was deleted and is still there.
pub(crate) fn is_any_deleted(tx: &Tx<'_>) -> Result<bool, StoreError> {
    deleted(tx, 1).map(|found| !found.is_empty())
}

/// Endpoints that were deleted.
pub(crate) fn deleted(tx: &Tx<'_>, limit: usize) -> Result<Vec<i64>, StoreError> {
    tx.query_all(DELETED, named_params! { ":limit": bound(limit) }, |row| row.get("id"))
}

/// Deliveries of an endpoint that are not being sent.
pub(crate) fn deliveries_at_rest(tx: &Tx<'_>, endpoint: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
    let params = named_params! { ":endpoint": endpoint, ":limit": bound(limit) };
    tx.query_all(AT_REST, params, |row| row.get("id"))
}

/// A deleted endpoint is gone, if it has no delivery any more.
pub(crate) fn delete_endpoint(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_ENDPOINT, named_params! { ":endpoint": endpoint })
}

/// Whether a secret is there that signs no more.
pub(crate) fn is_any_secret_expired(tx: &Tx<'_>) -> Result<bool, StoreError> {
    tx.query_one(IS_ANY_SECRET_EXPIRED, named_params! { ":now": tx.now() }, |row| row.get("is_any"))
}

/// Endpoints of which something waits for a time after `latest`.
pub(crate) fn due_too_late(tx: &Tx<'_>, latest: UnixMs, limit: usize) -> Result<Vec<i64>, StoreError> {
    tx.query_all(DUE_TOO_LATE, named_params! { ":latest": latest, ":limit": bound(limit) }, |row| row.get("id"))
}

/// What waits for a time after `latest` is due now; how many.
pub(crate) fn pull_in(tx: &Tx<'_>, endpoint: i64, latest: UnixMs, limit: usize) -> Result<usize, StoreError> {
    let params = named_params! { ":now": tx.now(), ":endpoint": endpoint, ":latest": latest, ":limit": bound(limit) };
    tx.execute(PULL_IN, params)
}

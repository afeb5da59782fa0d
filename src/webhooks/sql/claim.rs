//! Which endpoints have something to send, and claiming it.

use rusqlite::{Row, named_params};

use super::parsed;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::{ClaimedRow, Found, Message, Pick, Waiting};

/// An endpoint that has something to send.
pub(crate) struct WaitingRow {
    pub(crate) waiting: Waiting,
    pub(crate) due_at: UnixMs,
    pub(crate) held_until: Option<UnixMs>,
}

// One step from each endpoint to the next that has any: what is between is not looked at.
pub(super) const SCHEDULED: &str = "
    WITH RECURSIVE e (id) AS (
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                WHERE status = 'pending' ORDER BY endpoint LIMIT 1)
        UNION ALL
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
                WHERE status = 'pending' AND endpoint > e.id ORDER BY endpoint LIMIT 1)
        FROM e WHERE e.id IS NOT NULL
    )
    SELECT w.id, w.held_until, w.rate_per_second, w.failing_since IS NOT NULL AS is_failing, w.tenant_id,
           (SELECT next_attempt_at FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
            WHERE status = 'pending' AND endpoint = w.id ORDER BY next_attempt_at LIMIT 1) AS due_at
    FROM e CROSS JOIN webhook_endpoints AS w ON w.id = e.id
    WHERE w.status = 'active' AND w.deleted_at IS NULL";

// What a person asked for is due at once, whatever the clock was when they did.
pub(super) const ASKED_FOR: &str = "
    WITH RECURSIVE e (id) AS (
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
                WHERE resend_requested_at IS NOT NULL AND status <> 'sending' ORDER BY endpoint LIMIT 1)
        UNION ALL
        SELECT (SELECT endpoint FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
                WHERE resend_requested_at IS NOT NULL AND status <> 'sending' AND endpoint > e.id
                ORDER BY endpoint LIMIT 1)
        FROM e WHERE e.id IS NOT NULL
    )
    SELECT w.id, w.held_until, w.rate_per_second, w.failing_since IS NOT NULL AS is_failing, w.tenant_id, :now AS due_at
    FROM e CROSS JOIN webhook_endpoints AS w ON w.id = e.id
    WHERE w.status = 'active' AND w.deleted_at IS NULL";

// The first and the last of an index: two steps, however many endpoints there are.
pub(super) const HAS_SEVERAL_TENANTS: &str = "
    SELECT (SELECT tenant_id FROM webhook_endpoints INDEXED BY webhook_endpoints_of_tenant
            WHERE deleted_at IS NULL ORDER BY tenant_id LIMIT 1)
        <> (SELECT tenant_id FROM webhook_endpoints INDEXED BY webhook_endpoints_of_tenant
            WHERE deleted_at IS NULL ORDER BY tenant_id DESC LIMIT 1) AS are_several";

pub(super) const FIND_ACTIVE: &str = "
    SELECT endpoint_id, url, held_until,
           EXISTS (SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
                   WHERE resend_requested_at IS NOT NULL AND status <> 'sending' AND endpoint = :endpoint) AS is_asked_for
    FROM webhook_endpoints
    WHERE id = :endpoint AND status = 'active' AND deleted_at IS NULL";

pub(super) const CLAIM_DUE: &str = "
    UPDATE webhook_deliveries
    SET status = 'sending', attempts = attempts + 1, claimed_at = :now, locked_until = :until, lease_boot = :boot
    WHERE id IN (
        SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
        WHERE status = 'pending' AND endpoint = :endpoint AND next_attempt_at <= :now
        ORDER BY next_attempt_at, id LIMIT :most)
    RETURNING id, message, attempts, created_at";

// The request is taken: one that comes while this attempt is under way is another.
pub(super) const CLAIM_ASKED_FOR: &str = "
    UPDATE webhook_deliveries
    SET resumes = status, status = 'sending', attempts = attempts + 1, claimed_at = :now, locked_until = :until,
        lease_boot = :boot, resend_requested_at = NULL
    WHERE id IN (
        SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_resend
        WHERE resend_requested_at IS NOT NULL AND status <> 'sending' AND endpoint = :endpoint
        ORDER BY resend_requested_at, id LIMIT :most)
    RETURNING id, message, attempts, created_at";

pub(super) const MESSAGE: &str = "SELECT event_id, type, body FROM webhook_messages WHERE id = :message";

/// Active endpoints of which deliveries wait, each with when the first is due.
pub(crate) fn scheduled(tx: &Tx<'_>) -> Result<Vec<WaitingRow>, StoreError> {
    tx.query_all(SCHEDULED, [], waiting)
}

/// Active endpoints of which a person has asked for a delivery.
pub(crate) fn asked_for(tx: &Tx<'_>) -> Result<Vec<WaitingRow>, StoreError> {
    tx.query_all(ASKED_FOR, named_params! { ":now": tx.now() }, waiting)
}

fn waiting(row: &Row<'_>) -> rusqlite::Result<WaitingRow> {
    let (due_at, held_until) = (row.get("due_at")?, row.get("held_until")?);
    let waiting = Waiting {
        endpoint: row.get("id")?,
        due_at,
        rate_per_second: row.get("rate_per_second")?,
        is_failing: row.get("is_failing")?,
        tenant: parsed(row, "tenant_id", TenantId::parse)?,
    };
    Ok(WaitingRow { waiting, due_at, held_until })
}

/// Whether endpoints are of more than one tenant.
pub(crate) fn has_several_tenants(tx: &Tx<'_>) -> Result<bool, StoreError> {
    // Without an endpoint it is unknown, which is no.
    tx.query_one(HAS_SEVERAL_TENANTS, [], |row| Ok(row.get::<_, Option<bool>>("are_several")?.unwrap_or(false)))
}

/// The endpoint in that row, if it is active.
pub(crate) fn find_active(tx: &Tx<'_>, endpoint: i64) -> Result<Option<Found>, StoreError> {
    tx.query_opt(FIND_ACTIVE, named_params! { ":endpoint": endpoint }, |row| {
        Ok(Found {
            endpoint_id: row.get("endpoint_id")?,
            url: row.get("url")?,
            held_until: row.get("held_until")?,
            is_asked_for: row.get("is_asked_for")?,
        })
    })
}

/// What is due of an endpoint is being sent now, the longest due first.
pub(crate) fn claim_due(tx: &Tx<'_>, pick: &Pick, until: UnixMs) -> Result<Vec<ClaimedRow>, StoreError> {
    mark_sending(tx, CLAIM_DUE, pick, until)
}

/// What a person asked for of an endpoint is being sent now.
pub(crate) fn claim_asked_for(tx: &Tx<'_>, pick: &Pick, until: UnixMs) -> Result<Vec<ClaimedRow>, StoreError> {
    mark_sending(tx, CLAIM_ASKED_FOR, pick, until)
}

fn mark_sending(tx: &Tx<'_>, sql: &str, pick: &Pick, until: UnixMs) -> Result<Vec<ClaimedRow>, StoreError> {
    let most = i64::try_from(pick.most).unwrap_or(i64::MAX);
    let params = named_params! {
        ":now": tx.now(), ":until": until, ":boot": tx.boot(), ":endpoint": pick.endpoint, ":most": most,
    };
    tx.query_all(sql, params, |row| {
        Ok(ClaimedRow {
            delivery: row.get("id")?,
            message: row.get("message")?,
            number: row.get("attempts")?,
            created_at: row.get("created_at")?,
        })
    })
}

/// What is sent.
pub(crate) fn message(tx: &Tx<'_>, message: i64) -> Result<Message, StoreError> {
    tx.query_one(MESSAGE, named_params! { ":message": message }, |row| {
        Ok(Message { event_id: row.get("event_id")?, event_type: row.get("type")?, body: row.get("body")? })
    })
}

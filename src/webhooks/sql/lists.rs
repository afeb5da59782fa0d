//! Statements that only look: deliveries, their journal, test attempts.

use rusqlite::{Row, named_params};

use super::{parsed, parsed_opt};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::webhooks::attempt::Trigger;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::id::delivery_id;
use crate::webhooks::inspect::{Attempt, Delivery, Seen, TestAttempt};
use crate::webhooks::response::ErrorClass;

/// A delivery's columns, of the rows that `$which` names among deliveries `d`.
macro_rules! delivery {
    ($from:literal, $which:literal) => {
        concat!(
            "SELECT d.id, d.status, d.attempts, d.next_attempt_at, d.resend_requested_at, d.last_error, d.delivered_at,
                    d.created_at, m.event_id, m.type, w.endpoint_id
             FROM ",
            $from,
            " CROSS JOIN webhook_messages AS m ON m.id = d.message
             CROSS JOIN webhook_endpoints AS w ON w.id = d.endpoint
             WHERE ",
            $which
        )
    };
}

pub(super) const OF_ENDPOINT: &str = delivery!(
    "webhook_deliveries AS d INDEXED BY webhook_deliveries_of_endpoint",
    "d.endpoint = :endpoint AND d.id < :before ORDER BY d.id DESC LIMIT :limit"
);
// The second condition says nothing new to a reader; it is how the planner knows that the partial index has these rows.
pub(super) const UNDELIVERED: &str = delivery!(
    "webhook_deliveries AS d INDEXED BY webhook_deliveries_undelivered",
    "d.endpoint = :endpoint AND d.status = :status AND (d.status = 'failed' OR d.status = 'cancelled' OR d.status = 'skipped')
       AND d.id < :before ORDER BY d.id DESC LIMIT :limit"
);
// Few are being sent at any time; they are sorted.
pub(super) const SENDING: &str = delivery!(
    "webhook_deliveries AS d INDEXED BY webhook_deliveries_sending",
    "d.status = 'sending' AND d.endpoint = :endpoint AND d.id < :before ORDER BY d.id DESC LIMIT :limit"
);
// Only asked where few wait; they are sorted.
pub(super) const FEW_PENDING: &str = delivery!(
    "webhook_deliveries AS d INDEXED BY webhook_deliveries_pending",
    "d.status = 'pending' AND d.endpoint = :endpoint AND d.id < :before ORDER BY d.id DESC LIMIT :limit"
);
pub(super) const FIND: &str =
    delivery!("webhook_deliveries AS d", "d.id = :delivery AND w.tenant_id = :tenant AND w.deleted_at IS NULL");

pub(super) const ARE_FEW_PENDING: &str = "
    SELECT count(*) < :few AS are_few FROM (
        SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_pending
        WHERE status = 'pending' AND endpoint = :endpoint LIMIT :few)";

pub(super) const ENDPOINTS_OF: &str = "
    SELECT id FROM webhook_endpoints INDEXED BY webhook_endpoints_of_tenant
    WHERE tenant_id = :tenant AND deleted_at IS NULL ORDER BY id";

pub(super) const ATTEMPTS: &str = "
    SELECT number, trigger, started_at, duration_ms, http_status, error, response_body, resolved_ip
    FROM webhook_attempts WHERE delivery = :delivery AND number > :after ORDER BY number LIMIT :limit";

pub(super) const TESTS: &str = "
    SELECT id, message_id, started_at, duration_ms, http_status, error, response_body, resolved_ip
    FROM webhook_tests INDEXED BY webhook_tests_of_endpoint
    WHERE endpoint = :endpoint AND id < :before ORDER BY id DESC LIMIT :limit";

/// So many can be sorted for a page; of more, the newest rows hold some.
const FEW: i64 = 2_000;

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let (id, created_at): (i64, UnixMs) = (row.get("id")?, row.get("created_at")?);
    let status = parsed(row, "status", |text| DeliveryStatus::parse(text).ok())?;
    let next_attempt_at: Option<UnixMs> = row.get("next_attempt_at")?;
    Ok(Delivery {
        row: id,
        id: delivery_id(id, created_at),
        event_id: row.get("event_id")?,
        event_type: row.get("type")?,
        endpoint_id: row.get("endpoint_id")?,
        status,
        attempts: row.get("attempts")?,
        next_attempt_at: next_attempt_at.filter(|_| status == DeliveryStatus::Pending),
        resend_requested_at: row.get("resend_requested_at")?,
        last_error: row.get("last_error")?,
        delivered_at: row.get("delivered_at")?,
        created_at,
    })
}

/// Deliveries of an endpoint before that row, newest first. Where an index serves the status, those of that status only;
/// else all, for the caller to choose from.
pub(crate) fn of_endpoint(
    tx: &Tx<'_>,
    endpoint: i64,
    status: Option<DeliveryStatus>,
    before: i64,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = match status {
        Some(status @ (DeliveryStatus::Failed | DeliveryStatus::Cancelled | DeliveryStatus::Skipped)) => {
            let params = named_params! {
                ":endpoint": endpoint, ":status": status.as_str(), ":before": before, ":limit": limit,
            };
            return tx.query_all(UNDELIVERED, params, delivery);
        }
        Some(DeliveryStatus::Sending) => SENDING,
        Some(DeliveryStatus::Pending) if are_few_pending(tx, endpoint)? => FEW_PENDING,
        Some(DeliveryStatus::Pending | DeliveryStatus::Delivered) | None => OF_ENDPOINT,
    };
    tx.query_all(sql, named_params! { ":endpoint": endpoint, ":before": before, ":limit": limit }, delivery)
}

/// Whether so few deliveries of an endpoint wait that they can be sorted.
fn are_few_pending(tx: &Tx<'_>, endpoint: i64) -> Result<bool, StoreError> {
    tx.query_one(ARE_FEW_PENDING, named_params! { ":endpoint": endpoint, ":few": FEW }, |row| row.get("are_few"))
}

/// The tenant's delivery in that row.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, delivery_row: i64) -> Result<Option<Delivery>, StoreError> {
    tx.query_opt(FIND, named_params! { ":delivery": delivery_row, ":tenant": tenant.as_str() }, delivery)
}

/// The rows of a tenant's endpoints.
pub(crate) fn endpoints_of(tx: &Tx<'_>, tenant: &TenantId) -> Result<Vec<i64>, StoreError> {
    tx.query_all(ENDPOINTS_OF, named_params! { ":tenant": tenant.as_str() }, |row| row.get("id"))
}

/// A delivery's attempts behind that number.
pub(crate) fn attempts(tx: &Tx<'_>, delivery: i64, after: i64, limit: usize) -> Result<Vec<Attempt>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query_all(ATTEMPTS, named_params! { ":delivery": delivery, ":after": after, ":limit": limit }, |row| {
        let trigger = parsed(row, "trigger", Trigger::parse)?;
        Ok(Attempt { number: row.get("number")?, trigger, seen: seen(row)? })
    })
}

/// An endpoint's test attempts before that row, newest first.
pub(crate) fn tests(tx: &Tx<'_>, endpoint: i64, before: i64, limit: usize) -> Result<Vec<TestAttempt>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query_all(TESTS, named_params! { ":endpoint": endpoint, ":before": before, ":limit": limit }, |row| {
        Ok(TestAttempt { row: row.get("id")?, message_id: row.get("message_id")?, seen: seen(row)? })
    })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Seen> {
    Ok(Seen {
        started_at: row.get("started_at")?,
        duration_ms: row.get("duration_ms")?,
        http_status: row.get("http_status")?,
        error: parsed_opt(row, "error", ErrorClass::parse)?,
        response_body: row.get("response_body")?,
        resolved_ip: row.get("resolved_ip")?,
    })
}

//! What a person asked for: a delivery once more, and many that wait again.

use rusqlite::named_params;

use super::parsed;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::endpoint::EndpointStatus;

// The second condition says nothing new to a reader; it is how the planner knows that the partial index has these rows.
pub(super) const LOST: &str = "
    SELECT id, created_at FROM webhook_deliveries INDEXED BY webhook_deliveries_undelivered
    WHERE endpoint = :endpoint AND status = :status AND (status = 'failed' OR status = 'cancelled' OR status = 'skipped')
      AND id > :after ORDER BY id LIMIT :limit";

pub(super) const QUEUE: &str = "
    UPDATE webhook_deliveries SET status = 'pending', step = 0, interruptions = 0, next_attempt_at = :now
    WHERE id IN (SELECT value FROM json_each(:rows)) AND status = :status";

pub(super) const FIND: &str = "
    SELECT d.created_at, w.status FROM webhook_deliveries AS d CROSS JOIN webhook_endpoints AS w ON w.id = d.endpoint
    WHERE d.id = :delivery AND w.tenant_id = :tenant AND w.deleted_at IS NULL";

/// A delivery that somebody names.
pub(crate) struct Named {
    pub(crate) created_at: UnixMs,
    pub(crate) endpoint_status: EndpointStatus,
}

/// Deliveries of an endpoint that failed, were cancelled or skipped, as `status` says, behind that row, each with when it was made.
pub(crate) fn lost(
    tx: &Tx<'_>,
    endpoint: i64,
    status: DeliveryStatus,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, UnixMs)>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let params = named_params! { ":endpoint": endpoint, ":status": status.as_str(), ":after": after, ":limit": limit };
    tx.query_all(LOST, params, |row| Ok((row.get("id")?, row.get("created_at")?)))
}

/// These deliveries wait again, with the whole schedule before them; how many.
pub(crate) fn queue(tx: &Tx<'_>, rows: &[i64], status: DeliveryStatus) -> Result<usize, StoreError> {
    let rows = super::listed(rows);
    tx.execute(QUEUE, named_params! { ":now": tx.now(), ":rows": rows, ":status": status.as_str() })
}

/// The tenant's delivery in that row.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, delivery: i64) -> Result<Option<Named>, StoreError> {
    tx.query_opt(FIND, named_params! { ":delivery": delivery, ":tenant": tenant.as_str() }, |row| {
        let endpoint_status = parsed(row, "status", |text| EndpointStatus::parse(text).ok())?;
        Ok(Named { created_at: row.get("created_at")?, endpoint_status })
    })
}

/// A person wants it sent once more.
pub(crate) fn request_resend(tx: &Tx<'_>, delivery: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_deliveries SET resend_requested_at = :now WHERE id = :delivery";
    tx.execute(sql, named_params! { ":now": tx.now(), ":delivery": delivery })
}

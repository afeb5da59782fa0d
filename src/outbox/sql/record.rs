//! Statements that record events; nobody else inserts into `outbox_events`.

use rusqlite::named_params;

use crate::kernel::events::Event;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::outbox::post::Checked;

/// Inserts an event of the installation's own tenant.
pub(crate) fn insert(tx: &Tx<'_>, event_id: &str, event: &Event) -> Result<(), StoreError> {
    let entry = event.entry();
    tx.execute(
        "INSERT INTO outbox_events (event_id, type, schema_version, aggregate_type, aggregate_id, occurred_at, payload, created_at)
         VALUES (:event_id, :type, :version, :aggregate_type, :aggregate_id, :now, :payload, :now)",
        named_params! {
            ":event_id": event_id,
            ":type": entry.name,
            ":version": entry.version,
            ":aggregate_type": entry.aggregate,
            ":aggregate_id": event.aggregate_id(),
            ":now": tx.now(),
            ":payload": event.payload().to_string(),
        },
    )?;
    Ok(())
}

/// Inserts an event that a tenant posts; not one whose id the tenant has used. Whether it was inserted.
pub(crate) fn insert_posted(
    tx: &Tx<'_>,
    tenant: &TenantId,
    event_id: &str,
    posted: &Checked<'_>,
) -> Result<bool, StoreError> {
    let event = posted.event;
    let inserted = tx.execute(
        "INSERT INTO outbox_events (tenant_id, event_id, type, schema_version, aggregate_type, aggregate_id, occurred_at,
                                    payload, created_at)
         VALUES (:tenant, :event_id, :type, :version, :aggregate_type, :aggregate_id, :occurred_at, :payload, :now)
         ON CONFLICT (tenant_id, event_id) DO NOTHING",
        named_params! {
            ":tenant": tenant.as_str(),
            ":event_id": event_id,
            ":type": event.event_type,
            ":version": event.version,
            ":aggregate_type": event.aggregate_type,
            ":aggregate_id": event.aggregate_id,
            ":occurred_at": event.occurred_at.unwrap_or(tx.now()),
            ":payload": posted.payload,
            ":now": tx.now(),
        },
    )?;
    Ok(inserted == 1)
}

/// Whether the event of that id is the same. One that is posted without saying when it happened is, whenever that was.
pub(crate) fn is_same(
    tx: &Tx<'_>,
    tenant: &TenantId,
    event_id: &str,
    posted: &Checked<'_>,
) -> Result<bool, StoreError> {
    let event = posted.event;
    tx.query_one(
        "SELECT EXISTS (
           SELECT 1 FROM outbox_events
           WHERE tenant_id = :tenant AND event_id = :event_id AND type = :type AND schema_version = :version
             AND aggregate_type = :aggregate_type AND aggregate_id = :aggregate_id AND payload = :payload
             AND (:occurred_at IS NULL OR occurred_at = :occurred_at)) AS is_same",
        named_params! {
            ":tenant": tenant.as_str(),
            ":event_id": event_id,
            ":type": event.event_type,
            ":version": event.version,
            ":aggregate_type": event.aggregate_type,
            ":aggregate_id": event.aggregate_id,
            ":occurred_at": event.occurred_at,
            ":payload": posted.payload,
        },
        |row| row.get("is_same"),
    )
}

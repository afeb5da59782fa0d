//! What the fan-out writes: the body once, and a delivery for each endpoint. What is there already stays as it is: that
//! is what makes an event that is handed over again harmless.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx};
use crate::outbox::consumer::StoredEvent;

pub(super) const IS_UNFINISHED: &str = "
    SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE message = :event AND status IN ('pending', 'sending'))
        AS is_unfinished";

/// Freezes the body of an event.
pub(crate) fn insert_message(tx: &Tx<'_>, event: &StoredEvent, body: &str) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO webhook_messages (id, tenant_id, event_id, type, body, created_at)
        VALUES (:id, :tenant, :event_id, :type, :body, :now)
        ON CONFLICT (id) DO NOTHING";
    let params = named_params! {
        ":id": event.row,
        ":tenant": event.tenant.as_str(),
        ":event_id": event.event_id,
        ":type": event.event_type,
        ":body": body.as_bytes(),
        ":now": tx.now(),
    };
    tx.execute(sql, params).map(|_| ())
}

/// An event waits to be sent to an endpoint, and may be at once.
pub(crate) fn insert_pending(tx: &Tx<'_>, message: i64, endpoint: i64) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO webhook_deliveries (message, endpoint, status, next_attempt_at, created_at)
        VALUES (:message, :endpoint, 'pending', :now, :now)
        ON CONFLICT (message, endpoint) DO NOTHING";
    tx.execute(sql, named_params! { ":message": message, ":endpoint": endpoint, ":now": tx.now() }).map(|_| ())
}

/// An event is noted as one that an endpoint did not get.
pub(crate) fn insert_skipped(tx: &Tx<'_>, message: i64, endpoint: i64) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO webhook_deliveries (message, endpoint, status, created_at)
        VALUES (:message, :endpoint, 'skipped', :now)
        ON CONFLICT (message, endpoint) DO NOTHING";
    tx.execute(sql, named_params! { ":message": message, ":endpoint": endpoint, ":now": tx.now() }).map(|_| ())
}

/// Whether a delivery of the event in that row of the outbox waits or is being sent.
pub(crate) fn is_unfinished(tx: &Tx<'_>, event: i64) -> Result<bool, StoreError> {
    tx.query_one(IS_UNFINISHED, named_params! { ":event": event }, |row| row.get("is_unfinished"))
}

//! Every statement on `outbox_events`; nobody else inserts there.

use rusqlite::named_params;

use crate::kernel::events::Event;
use crate::kernel::store::{StoreError, Tx};

/// Inserts an event of the installation's own tenant.
pub(super) fn insert(tx: &Tx<'_>, event_id: &str, event: &Event) -> Result<(), StoreError> {
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

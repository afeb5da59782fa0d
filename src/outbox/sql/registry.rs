//! Statements on the types that tenants have registered.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::kernel::tenant::TenantId;
use crate::outbox::registry::RegisteredType;

/// Registers a type; whether it was not before.
pub(crate) fn insert(tx: &Tx<'_>, tenant: &TenantId, event_type: &str) -> Result<bool, StoreError> {
    let inserted = tx.execute(
        "INSERT INTO event_types (tenant_id, type, registered_at) VALUES (:tenant, :type, :now)
         ON CONFLICT (tenant_id, type) DO NOTHING",
        named_params! { ":tenant": tenant.as_str(), ":type": event_type, ":now": tx.now() },
    )?;
    Ok(inserted == 1)
}

/// Forgets a type; whether it was registered.
pub(crate) fn delete(tx: &Tx<'_>, tenant: &TenantId, event_type: &str) -> Result<bool, StoreError> {
    let deleted = tx.execute(
        "DELETE FROM event_types WHERE tenant_id = :tenant AND type = :type",
        named_params! { ":tenant": tenant.as_str(), ":type": event_type },
    )?;
    Ok(deleted == 1)
}

/// Whether a type is registered.
pub(crate) fn is_registered(tx: &Tx<'_>, tenant: &TenantId, event_type: &str) -> Result<bool, StoreError> {
    tx.query_one(
        "SELECT EXISTS (SELECT 1 FROM event_types WHERE tenant_id = :tenant AND type = :type) AS is_registered",
        named_params! { ":tenant": tenant.as_str(), ":type": event_type },
        |row| row.get("is_registered"),
    )
}

/// A page of a tenant's types, by name.
pub(crate) fn list(tx: &Tx<'_>, tenant: &TenantId, after: &str, limit: i64) -> Result<Vec<RegisteredType>, StoreError> {
    tx.query_all(
        "SELECT type, registered_at FROM event_types WHERE tenant_id = :tenant AND type > :after ORDER BY type LIMIT :limit",
        named_params! { ":tenant": tenant.as_str(), ":after": after, ":limit": limit },
        |row| {
            Ok(RegisteredType {
                event_type: lossy_text(row, "type")?.unwrap_or_default(),
                registered_at: row.get("registered_at")?,
            })
        },
    )
}

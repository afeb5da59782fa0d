//! Statements on idempotency keys.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::kernel::tenant::TenantId;
use crate::outbox::post::IdempotencyKey;

/// What is known of a key.
pub(crate) struct Known {
    pub(crate) body_hash: Vec<u8>,
    pub(crate) event_ids: String,
    pub(crate) created_at: UnixMs,
}

/// What was answered under a key.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, key: &str) -> Result<Option<Known>, StoreError> {
    tx.query_opt(
        "SELECT body_hash, event_ids, created_at FROM idempotency_keys WHERE tenant_id = :tenant AND key = :key",
        named_params! { ":tenant": tenant.as_str(), ":key": key },
        |row| {
            Ok(Known {
                body_hash: row.get("body_hash")?,
                event_ids: lossy_text(row, "event_ids")?.unwrap_or_default(),
                created_at: row.get("created_at")?,
            })
        },
    )
}

/// Remembers what is answered under a key, in place of what was.
pub(crate) fn remember(
    tx: &Tx<'_>,
    tenant: &TenantId,
    key: &IdempotencyKey,
    event_ids: &str,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO idempotency_keys (tenant_id, key, body_hash, event_ids, created_at)
         VALUES (:tenant, :key, :body_hash, :event_ids, :now)
         ON CONFLICT (tenant_id, key) DO UPDATE
         SET body_hash = excluded.body_hash, event_ids = excluded.event_ids, created_at = excluded.created_at",
        named_params! {
            ":tenant": tenant.as_str(),
            ":key": key.key,
            ":body_hash": key.body_hash.as_slice(),
            ":event_ids": event_ids,
            ":now": tx.now(),
        },
    )?;
    Ok(())
}

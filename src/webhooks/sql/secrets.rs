//! Secrets of endpoints, as they are sealed.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::delivery::SealedSecret;

pub(super) const SIGNING: &str = "
    SELECT id, sealed FROM webhook_secrets INDEXED BY webhook_secrets_of_endpoint
    WHERE endpoint = :endpoint AND (valid_until IS NULL OR valid_until > :now)
    ORDER BY id DESC LIMIT 10";

pub(super) const DELETE_EXPIRED: &str = "
    DELETE FROM webhook_secrets WHERE id IN (
        SELECT id FROM webhook_secrets INDEXED BY webhook_secrets_expiring
        WHERE valid_until IS NOT NULL AND valid_until <= :now LIMIT :limit)";

/// The secrets that sign for an endpoint now, the newest first.
pub(crate) fn signing(tx: &Tx<'_>, endpoint: i64) -> Result<Vec<SealedSecret>, StoreError> {
    tx.query_all(SIGNING, named_params! { ":endpoint": endpoint, ":now": tx.now() }, |row| {
        Ok(SealedSecret { row: row.get("id")?, sealed: row.get("sealed")? })
    })
}

/// Whether there is any secret at all.
pub(crate) fn is_any(tx: &Tx<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM webhook_secrets) AS is_any";
    tx.query_one(sql, [], |row| row.get("is_any"))
}

/// A new secret, the current one.
pub(crate) fn insert(tx: &Tx<'_>, endpoint: i64, sealed: &[u8], last_four: &str) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO webhook_secrets (endpoint, sealed, last_four, created_at)
        VALUES (:endpoint, :sealed, :last_four, :now)";
    let params = named_params! { ":endpoint": endpoint, ":sealed": sealed, ":last_four": last_four, ":now": tx.now() };
    tx.execute(sql, params)
}

/// The current secret signs until then.
pub(crate) fn retire_current(tx: &Tx<'_>, endpoint: i64, until: UnixMs) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_secrets SET valid_until = :until WHERE endpoint = :endpoint AND valid_until IS NULL";
    tx.execute(sql, named_params! { ":until": until, ":endpoint": endpoint })
}

/// Secrets of an endpoint that sign no more are gone.
pub(crate) fn delete_expired_of(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "DELETE FROM webhook_secrets WHERE endpoint = :endpoint AND valid_until <= :now";
    tx.execute(sql, named_params! { ":endpoint": endpoint, ":now": tx.now() })
}

/// Secrets that sign no more are gone, up to `limit` of them; how many.
pub(crate) fn delete_expired(tx: &Tx<'_>, limit: usize) -> Result<usize, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.execute(DELETE_EXPIRED, named_params! { ":now": tx.now(), ":limit": limit })
}

/// All secrets of an endpoint but the newest are gone.
pub(crate) fn delete_all_but_newest(tx: &Tx<'_>, endpoint: i64, kept: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM webhook_secrets WHERE endpoint = :endpoint AND id NOT IN (
            SELECT id FROM webhook_secrets WHERE endpoint = :endpoint ORDER BY id DESC LIMIT :kept)";
    tx.execute(sql, named_params! { ":endpoint": endpoint, ":kept": kept })
}

/// All secrets of an endpoint are gone.
pub(crate) fn delete_of(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    tx.execute("DELETE FROM webhook_secrets WHERE endpoint = :endpoint", named_params! { ":endpoint": endpoint })
}

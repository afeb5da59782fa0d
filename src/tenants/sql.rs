//! Every statement on `tenants` and `api_keys`.

use rusqlite::types::FromSqlError;
use rusqlite::{Row, named_params};

use super::key::Hash;
use super::{Caller, Key, Role, Tenant};
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// Asked by every request.
pub(super) const CALLER: &str = "
    SELECT tenant_id, role FROM api_keys WHERE hash = :hash AND revoked_at IS NULL";
pub(super) const KEYS: &str = "
    SELECT id, role, description, last_four, created_at, revoked_at FROM api_keys
    WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit";

/// The repeated statements, each with the index that it relies on; a test looks at their plans.
#[cfg(test)]
pub(super) fn plans() -> [(&'static str, &'static str); 2] {
    [(CALLER, "sqlite_autoindex_api_keys_2 (hash=?)"), (KEYS, "api_keys_of_tenant (tenant_id=? AND id>?)")]
}

/// A text that the schema does not let into its column.
fn unreadable(column: &'static str) -> rusqlite::Error {
    FromSqlError::Other(format!("no such {column}").into()).into()
}

fn tenant_id(row: &Row<'_>, column: &'static str) -> rusqlite::Result<TenantId> {
    TenantId::parse(&row.get::<_, String>(column)?).ok_or_else(|| unreadable(column))
}

fn role(row: &Row<'_>) -> rusqlite::Result<Role> {
    Role::parse(&row.get::<_, String>("role")?).ok_or_else(|| unreadable("role"))
}

/// Inserts a tenant unless there is one of that name.
pub(super) fn insert_tenant(tx: &Tx<'_>, id: &TenantId) -> Result<usize, StoreError> {
    let sql = "INSERT INTO tenants (id, created_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING";
    tx.execute(sql, named_params! { ":id": id.as_str(), ":now": tx.now() })
}

/// Whether there is a tenant of that name.
pub(super) fn has_tenant(tx: &Tx<'_>, id: &TenantId) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = :id) AS found";
    tx.query_one(sql, named_params! { ":id": id.as_str() }, |row| row.get("found"))
}

/// Tenants by name.
pub(super) fn tenants(tx: &Tx<'_>, after: &str, limit: i64) -> Result<Vec<Tenant>, StoreError> {
    let sql = "SELECT id, created_at FROM tenants WHERE id > :after ORDER BY id LIMIT :limit";
    tx.query_all(sql, named_params! { ":after": after, ":limit": limit }, |row| {
        Ok(Tenant { id: tenant_id(row, "id")?, created_at: row.get("created_at")? })
    })
}

/// Whom a valid key of that hash speaks for.
pub(super) fn caller(tx: &Tx<'_>, hash: Hash) -> Result<Option<Caller>, StoreError> {
    tx.query_opt(CALLER, named_params! { ":hash": hash.0.as_slice() }, |row| {
        Ok(Caller { tenant: tenant_id(row, "tenant_id")?, role: role(row)? })
    })
}

/// Whether there is a key of that hash, revoked or not.
pub(super) fn has_hash(tx: &Tx<'_>, hash: Hash) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM api_keys WHERE hash = :hash) AS found";
    tx.query_one(sql, named_params! { ":hash": hash.0.as_slice() }, |row| row.get("found"))
}

/// Inserts a key.
pub(super) fn insert_key(tx: &Tx<'_>, tenant: &TenantId, key: &Key, hash: Hash) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO api_keys (id, tenant_id, role, description, hash, last_four, created_at)
         VALUES (:id, :tenant, :role, :description, :hash, :last_four, :created_at)",
        named_params! {
            ":id": key.id,
            ":tenant": tenant.as_str(),
            ":role": key.role.as_str(),
            ":description": key.description,
            ":hash": hash.0.as_slice(),
            ":last_four": key.last_four,
            ":created_at": key.created_at,
        },
    )?;
    Ok(())
}

/// A tenant's keys in the order of their making.
pub(super) fn keys(tx: &Tx<'_>, tenant: &TenantId, after: &str, limit: i64) -> Result<Vec<Key>, StoreError> {
    let params = named_params! { ":tenant": tenant.as_str(), ":after": after, ":limit": limit };
    tx.query_all(KEYS, params, |row| {
        Ok(Key {
            id: row.get("id")?,
            role: role(row)?,
            description: row.get("description")?,
            last_four: row.get("last_four")?,
            created_at: row.get("created_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    })
}

/// Ends a key, once; since when it is void.
pub(super) fn revoke_key(tx: &Tx<'_>, tenant: &TenantId, key_id: &str) -> Result<Option<i64>, StoreError> {
    let sql = "
        UPDATE api_keys SET revoked_at = COALESCE(revoked_at, :now) WHERE id = :id AND tenant_id = :tenant
        RETURNING revoked_at";
    let params = named_params! { ":id": key_id, ":tenant": tenant.as_str(), ":now": tx.now() };
    tx.query_opt(sql, params, |row| row.get("revoked_at"))
}

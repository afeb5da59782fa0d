//! Endpoints: their rows, and what is changed in them by a person or by what happens there.

use rusqlite::types::FromSqlError;
use rusqlite::{Row, named_params};
use serde_json::Value;

use super::{parsed, parsed_opt};
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::kernel::tenant::TenantId;
use crate::webhooks::endpoint::{DisabledReason, Endpoint, EndpointStatus, Subscription, disabled_reason};
use crate::webhooks::fanout::Listener;

/// An endpoint's columns, of the rows that `$which` names.
macro_rules! endpoint {
    ($which:literal) => {
        concat!(
            "SELECT id, endpoint_id, url, description, event_types, rate_per_second, status, disabled_reason,
                    held_until, failing_since, created_at, updated_at,
                    (SELECT last_four FROM webhook_secrets
                     WHERE endpoint = webhook_endpoints.id AND valid_until IS NULL) AS last_four
             FROM webhook_endpoints ",
            $which
        )
    };
}

pub(super) const FIND: &str =
    endpoint!("WHERE endpoint_id = :endpoint_id AND tenant_id = :tenant AND deleted_at IS NULL");
pub(super) const LIST: &str = endpoint!(
    "INDEXED BY webhook_endpoints_of_tenant WHERE tenant_id = :tenant AND deleted_at IS NULL AND id > :after
     ORDER BY id LIMIT :limit"
);

fn endpoint(row: &Row<'_>) -> rusqlite::Result<Endpoint> {
    Ok(Endpoint {
        row: row.get("id")?,
        id: row.get("endpoint_id")?,
        url: lossy_text(row, "url")?.unwrap_or_default(),
        description: lossy_text(row, "description")?.unwrap_or_default(),
        event_types: shown_event_types(row)?,
        rate_per_second: row.get("rate_per_second")?,
        status: parsed(row, "status", |text| EndpointStatus::parse(text).ok())?,
        disabled_reason: parsed_opt(row, "disabled_reason", disabled_reason)?,
        held_until: row.get("held_until")?,
        failing_since: row.get("failing_since")?,
        secret_last_four: row.get::<_, Option<String>>("last_four")?.unwrap_or_default(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// The types that an endpoint wants, as they are shown: what another program has written among them that is no text is
/// shown as the JSON that it is.
fn shown_event_types(row: &Row<'_>) -> rusqlite::Result<Option<Vec<String>>> {
    let Some(text) = lossy_text(row, "event_types")? else { return Ok(None) };
    let shown = |entry: Value| if let Value::String(text) = entry { text } else { entry.to_string() };
    let entries = serde_json::from_str::<Vec<Value>>(&text).map(|entries| entries.into_iter().map(shown).collect());
    Ok(Some(entries.unwrap_or_else(|_| vec![text])))
}

/// The types that an endpoint wants.
fn event_types(row: &Row<'_>) -> rusqlite::Result<Option<Vec<String>>> {
    let Some(text) = row.get::<_, Option<String>>("event_types")? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| FromSqlError::Other(Box::new(error)).into())
}

fn written(event_types: Option<&Vec<String>>) -> Option<String> {
    event_types.map(|entries| Value::from(entries.as_slice()).to_string())
}

/// The tenant's endpoint of that id.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, endpoint_id: &str) -> Result<Option<Endpoint>, StoreError> {
    tx.query_opt(FIND, named_params! { ":endpoint_id": endpoint_id, ":tenant": tenant.as_str() }, endpoint)
}

/// The tenant's endpoints behind that row.
pub(crate) fn list(tx: &Tx<'_>, tenant: &TenantId, after: i64, limit: usize) -> Result<Vec<Endpoint>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query_all(LIST, named_params! { ":tenant": tenant.as_str(), ":after": after, ":limit": limit }, endpoint)
}

/// How many endpoints the tenant has.
pub(crate) fn count(tx: &Tx<'_>, tenant: &TenantId) -> Result<i64, StoreError> {
    let sql = "
        SELECT count(*) AS count FROM webhook_endpoints INDEXED BY webhook_endpoints_of_tenant
        WHERE tenant_id = :tenant AND deleted_at IS NULL";
    tx.query_one(sql, named_params! { ":tenant": tenant.as_str() }, |row| row.get("count"))
}

/// A new endpoint; its row.
pub(crate) fn insert(tx: &Tx<'_>, tenant: &TenantId, endpoint: &Endpoint) -> Result<i64, StoreError> {
    let sql = "
        INSERT INTO webhook_endpoints (endpoint_id, tenant_id, url, description, event_types, rate_per_second, status,
                                       created_at, updated_at)
        VALUES (:endpoint_id, :tenant, :url, :description, :event_types, :rate, :status, :now, :now)
        RETURNING id";
    let params = named_params! {
        ":endpoint_id": endpoint.id,
        ":tenant": tenant.as_str(),
        ":url": endpoint.url,
        ":description": endpoint.description,
        ":event_types": written(endpoint.event_types.as_ref()),
        ":rate": endpoint.rate_per_second,
        ":status": endpoint.status.as_str(),
        ":now": tx.now(),
    };
    tx.query_one(sql, params, |row| row.get("id"))
}

/// What a person can change of an endpoint.
pub(crate) fn update(tx: &Tx<'_>, endpoint: &Endpoint) -> Result<usize, StoreError> {
    let sql = "
        UPDATE webhook_endpoints
        SET url = :url, description = :description, event_types = :event_types, rate_per_second = :rate,
            status = :status, disabled_reason = :reason, updated_at = :now
        WHERE id = :endpoint";
    let params = named_params! {
        ":endpoint": endpoint.row,
        ":url": endpoint.url,
        ":description": endpoint.description,
        ":event_types": written(endpoint.event_types.as_ref()),
        ":rate": endpoint.rate_per_second,
        ":status": endpoint.status.as_str(),
        ":reason": endpoint.disabled_reason.map(|reason| reason.as_str()),
        ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// Nothing of what happened is held against an endpoint any more.
pub(crate) fn forget_trouble(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE webhook_endpoints SET held_until = NULL, failing_since = NULL, warned_at = NULL WHERE id = :endpoint";
    tx.execute(sql, named_params! { ":endpoint": endpoint })
}

/// Nothing more is sent there.
pub(crate) fn disable(tx: &Tx<'_>, endpoint: i64, reason: DisabledReason) -> Result<usize, StoreError> {
    let sql = "
        UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = :reason, updated_at = :now
        WHERE id = :endpoint AND status <> 'disabled'";
    tx.execute(sql, named_params! { ":reason": reason.as_str(), ":now": tx.now(), ":endpoint": endpoint })
}

/// Nobody sees it any more.
pub(crate) fn mark_deleted(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_endpoints SET deleted_at = :now WHERE id = :endpoint AND deleted_at IS NULL";
    tx.execute(sql, named_params! { ":now": tx.now(), ":endpoint": endpoint })
}

/// Which endpoints get something changes with this: another value at every change, and never one that there was before.
pub(crate) fn audience_version(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one("SELECT version FROM webhook_audience WHERE id = 1", [], |row| row.get("version"))
}

pub(super) const AUDIENCE: &str = "
    SELECT id, status, event_types FROM webhook_endpoints INDEXED BY webhook_endpoints_of_tenant
    WHERE tenant_id = :tenant AND deleted_at IS NULL ORDER BY id";

/// A tenant's endpoints, as far as the fan-out needs them; of one that cannot be read, its row.
pub(crate) fn audience(tx: &Tx<'_>, tenant: &TenantId) -> Result<Vec<Result<Listener, i64>>, StoreError> {
    tx.query_all(AUDIENCE, named_params! { ":tenant": tenant.as_str() }, |row| {
        let endpoint = row.get("id")?;
        Ok(listener(row, endpoint).map_err(|_| endpoint))
    })
}

fn listener(row: &Row<'_>, endpoint: i64) -> rusqlite::Result<Listener> {
    Ok(Listener {
        endpoint,
        status: parsed(row, "status", |text| EndpointStatus::parse(text).ok())?,
        subscription: Subscription::stored(event_types(row)?),
    })
}

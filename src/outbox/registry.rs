//! Types that a tenant has registered. They count while `events.strict_types` is on, so that a misspelt one is refused
//! where it is posted and not found by a receiver that waits.

use serde::Serialize;

use super::post::is_type_name;
use super::{Error, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::events::is_reserved;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// A type that a tenant may post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RegisteredType {
    /// The dotted type.
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    /// Since when.
    #[serde(serialize_with = "super::inspect::instant")]
    pub(crate) registered_at: UnixMs,
}

/// Registers a type; whether it was not before.
///
/// # Errors
/// [`Error::Invalid`] for what is no name, [`Error::ReservedType`] for our own, [`Error::UnknownTenant`].
pub(crate) fn register_type(tx: &Tx<'_>, tenant: &TenantId, event_type: &str) -> Result<bool, Error> {
    if !is_type_name(event_type) {
        let what = "must be words of a-z, 0-9 and _ with dots between them, at most 128 characters";
        return Err(Error::invalid_request("type", what));
    }
    if is_reserved(event_type) {
        return Err(Error::ReservedType { index: 0, event_type: event_type.to_owned() });
    }
    match sql::registry::insert(tx, tenant, event_type) {
        Err(StoreError::Constraint(_)) => Err(Error::UnknownTenant),
        registered => Ok(registered?),
    }
}

/// Forgets a type. Events that were posted stay.
///
/// # Errors
/// [`Error::NotFound`] when it is not registered.
pub(crate) fn unregister_type(tx: &Tx<'_>, tenant: &TenantId, event_type: &str) -> Result<(), Error> {
    if sql::registry::delete(tx, tenant, event_type)? { Ok(()) } else { Err(Error::NotFound) }
}

/// The tenant's types by name, those behind `after`.
///
/// # Errors
/// The store's.
pub(crate) fn types(
    tx: &Tx<'_>,
    tenant: &TenantId,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<RegisteredType>, StoreError> {
    sql::registry::list(tx, tenant, after.unwrap_or_default(), limit)
}

//! The tenants themselves: a name, and since when. They are few, and listed in pages all the same.

use super::{Error, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// The longest page of a list.
const LONGEST_PAGE: i64 = 200;

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    /// Its name.
    pub(crate) id: TenantId,
    /// Since when it exists.
    pub(crate) created_at: UnixMs,
}

/// A new tenant.
///
/// # Errors
/// [`Error::TenantExists`]; else the store's.
pub(crate) fn create_tenant(tx: &Tx<'_>, id: &TenantId) -> Result<Tenant, Error> {
    match sql::insert_tenant(tx, id)? {
        1 => Ok(Tenant { id: id.clone(), created_at: tx.now() }),
        _ => Err(Error::TenantExists),
    }
}

/// Whether there is such a tenant.
///
/// # Errors
/// The store's.
pub(crate) fn exists(tx: &Tx<'_>, id: &TenantId) -> Result<bool, StoreError> {
    sql::has_tenant(tx, id)
}

/// A page of tenants by name, those behind `after`; at most `limit`, and never more than 200.
///
/// # Errors
/// The store's.
pub(crate) fn tenants(tx: &Tx<'_>, after: Option<&TenantId>, limit: i64) -> Result<Vec<Tenant>, StoreError> {
    sql::tenants(tx, after.map_or("", TenantId::as_str), limit.clamp(1, LONGEST_PAGE))
}

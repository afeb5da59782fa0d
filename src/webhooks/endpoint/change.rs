//! What a tenant does with its endpoints. Another tenant's is not found, exactly as one that there never was.

use super::secret::{self, Written};
use super::subscription;
use super::{DisabledReason, Endpoint, EndpointChanges, EndpointStatus, NewEndpoint};
use crate::kernel::events::{EndpointTrouble, Event};
use crate::kernel::id::uuid_v7;
use crate::kernel::secret::Secret;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::Destination;
use crate::webhooks::egress::Egress;
use crate::webhooks::page::{Page, page};
use crate::webhooks::vault::Vault;
use crate::webhooks::{DELIVERIES, Error, MOST_ENDPOINTS, sql};

/// The most characters of a description.
const LONGEST_DESCRIPTION: usize = 500;
/// Limits of requests a second: more than the highest is no limit.
const FIT_RATES: std::ops::RangeInclusive<i64> = 1..=1000;

/// Makes an active endpoint, with its secret: that is shown now and never again.
///
/// # Errors
/// [`Error::Url`], [`Error::Invalid`], [`Error::TooManyEndpoints`], the vault's, the store's.
pub(crate) fn create(
    tx: &Tx<'_>,
    tenant: &TenantId,
    new: &NewEndpoint,
    vault: &Vault,
    egress: &Egress,
) -> Result<(Endpoint, Secret), Error> {
    let url = egress.check_url(&new.url)?;
    let description = new.description.clone().unwrap_or_default();
    check_description(&description)?;
    check_rate(new.rate_per_second)?;
    subscription::check(new.event_types.as_deref())?;
    let written = Written::new(new.secret.as_ref())?;
    if sql::endpoints::count(tx, tenant)? >= MOST_ENDPOINTS {
        return Err(Error::TooManyEndpoints);
    }
    let endpoint = Endpoint {
        row: 0,
        id: format!("ep_{}", uuid_v7(tx.now())),
        url: url.into(),
        description,
        event_types: new.event_types.clone(),
        rate_per_second: new.rate_per_second,
        status: EndpointStatus::Active,
        disabled_reason: None,
        held_until: None,
        failing_since: None,
        secret_last_four: String::new(),
        created_at: tx.now(),
        updated_at: tx.now(),
    };
    let row = sql::endpoints::insert(tx, tenant, &endpoint)?;
    secret::store(tx, row, &endpoint.id, &written, vault)?;
    Ok((find_endpoint(tx, tenant, &endpoint.id)?, written.secret()))
}

fn check_description(description: &str) -> Result<(), Error> {
    let is_fit = description.chars().count() <= LONGEST_DESCRIPTION && !description.contains('\0');
    let what = "must have at most 500 characters, none of them NUL";
    if is_fit { Ok(()) } else { Err(Error::Invalid { field: "description", what }) }
}

fn check_rate(rate: Option<i64>) -> Result<(), Error> {
    let is_fit = rate.is_none_or(|rate| FIT_RATES.contains(&rate));
    if is_fit { Ok(()) } else { Err(Error::Invalid { field: "rate_per_second", what: "must be 1 to 1000" }) }
}

/// The endpoint of that id.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn find_endpoint(tx: &Tx<'_>, tenant: &TenantId, id: &str) -> Result<Endpoint, Error> {
    sql::endpoints::find(tx, tenant, id)?.ok_or(Error::NotFound)
}

/// The row of the endpoint of that id.
pub(in crate::webhooks) fn find_row(tx: &Tx<'_>, tenant: &TenantId, id: &str) -> Result<i64, Error> {
    find_endpoint(tx, tenant, id).map(|endpoint| endpoint.row)
}

/// A page of a tenant's endpoints, in the order in which they were made.
///
/// # Errors
/// The store's.
pub(crate) fn endpoints(
    tx: &Tx<'_>,
    tenant: &TenantId,
    after: Option<i64>,
    limit: usize,
) -> Result<Page<Endpoint>, Error> {
    let found = sql::endpoints::list(tx, tenant, after.unwrap_or(0), limit.saturating_add(1))?;
    Ok(page(found, limit, |endpoint| endpoint.row))
}

/// Where a request to that endpoint goes, whatever its status is: for the test button.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn destination(tx: &Tx<'_>, tenant: &TenantId, id: &str) -> Result<Destination, Error> {
    let Endpoint { row: endpoint, id: endpoint_id, url, .. } = find_endpoint(tx, tenant, id)?;
    let secrets = sql::secrets::signing(tx, endpoint)?;
    Ok(Destination { endpoint, endpoint_id, url, secrets })
}

/// Changes an endpoint. One that was disabled and is made active or paused begins anew; and so does one that gets
/// another address, since what is held against it was the old one's.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Url`], [`Error::Invalid`], the store's.
pub(crate) fn update(
    tx: &Tx<'_>,
    tenant: &TenantId,
    id: &str,
    changes: &EndpointChanges,
    egress: &Egress,
) -> Result<Endpoint, Error> {
    let mut endpoint = find_endpoint(tx, tenant, id)?;
    let mut begins_anew = false;
    if let Some(url) = &changes.url {
        let url = String::from(egress.check_url(url)?);
        begins_anew |= url != endpoint.url;
        endpoint.url = url;
    }
    if let Some(description) = &changes.description {
        endpoint.description = description.clone().unwrap_or_default();
        check_description(&endpoint.description)?;
    }
    if let Some(event_types) = &changes.event_types {
        subscription::check(event_types.as_deref())?;
        endpoint.event_types.clone_from(event_types);
    }
    if let Some(rate) = changes.rate_per_second {
        check_rate(rate)?;
        endpoint.rate_per_second = rate;
    }
    match changes.status {
        Some(EndpointStatus::Disabled) => {
            return Err(Error::Invalid { field: "status", what: "must be active or paused" });
        }
        Some(status) => {
            begins_anew |= endpoint.status == EndpointStatus::Disabled;
            (endpoint.status, endpoint.disabled_reason) = (status, None);
        }
        None => {}
    }
    sql::endpoints::update(tx, &endpoint)?;
    if begins_anew {
        sql::endpoints::forget_trouble(tx, endpoint.row)?;
    }
    tx.wake(DELIVERIES);
    find_endpoint(tx, tenant, id)
}

/// Nothing more is sent to an endpoint until it is made active again; what waits is skipped, to be replayed. One that is
/// disabled already keeps its reason.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn disable(tx: &Tx<'_>, tenant: &TenantId, id: &str) -> Result<Endpoint, Error> {
    let endpoint = find_endpoint(tx, tenant, id)?;
    if endpoint.status != EndpointStatus::Disabled {
        let reason = DisabledReason::Manual;
        sql::endpoints::disable(tx, endpoint.row, reason)?;
        let Endpoint { id: endpoint_id, failing_since, .. } = endpoint;
        let tenant = tenant.clone();
        tx.publish(&Event::EndpointDisabled(EndpointTrouble { endpoint_id, tenant, reason, failing_since }))?;
        tx.wake(DELIVERIES);
    }
    find_endpoint(tx, tenant, id)
}

/// An endpoint is gone from now on, with its secrets. Its deliveries go in batches, by [`crate::webhooks::sweep`].
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn delete(tx: &Tx<'_>, tenant: &TenantId, id: &str) -> Result<(), Error> {
    let endpoint = find_row(tx, tenant, id)?;
    sql::endpoints::mark_deleted(tx, endpoint)?;
    sql::secrets::delete_of(tx, endpoint)?;
    tx.wake(DELIVERIES);
    Ok(())
}

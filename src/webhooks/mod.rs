//! Webhooks: every event goes to the endpoints that its tenant has subscribed, signed, and is repeated until it is taken.

mod attempt;
mod deliver;
pub(crate) mod delivery;
pub(crate) mod egress;
mod endpoint;
mod fanout;
pub(crate) mod health;
mod id;
pub(crate) mod inspect;
mod page;
pub(crate) mod probe;
pub(crate) mod prune;
pub(crate) mod recover;
mod resolve;
mod response;
pub(crate) mod signature;
mod sql;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
mod transport;
mod vault;

pub(crate) use attempt::{Outcome, Trigger};
pub(crate) use deliver::{DeliverSettings, Deliverer, DelivererParts};
pub(crate) use egress::{Egress, EgressPolicy, UrlFault};
pub(crate) use endpoint::{
    DisabledReason, Endpoint, EndpointChanges, EndpointStatus, NewEndpoint, Rotated, Rotation, create, delete, disable,
    endpoints, find_endpoint, rotate_secret, update,
};
pub(crate) use fanout::{Fanout, is_unfinished};
pub(crate) use page::Page;
pub(crate) use recover::resend;
pub(crate) use resolve::Resolver;
pub(crate) use response::ErrorClass;
pub(crate) use transport::{Transport, TransportError, TransportSettings};
pub(crate) use vault::{Vault, VaultError};

use crate::kernel::store::{StoreError, Wake};

/// Something may be delivered, or an endpoint has changed.
pub(crate) const DELIVERIES: Wake = Wake("webhook-deliveries");

/// What can be wrong with a request to the webhooks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// There is no such thing, or it is another tenant's.
    #[error("there is no such thing")]
    NotFound,
    /// The tenant has as many endpoints as it may have.
    #[error("a tenant has at most {MOST_ENDPOINTS} endpoints")]
    TooManyEndpoints,
    /// A value is not one that its field may have.
    #[error("{field} {what}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What it must be.
        what: &'static str,
    },
    /// A webhook may not go there.
    #[error(transparent)]
    Url(#[from] UrlFault),
    /// Nothing is sent to a disabled endpoint: it must be made active first.
    #[error("the endpoint is disabled; make it active first")]
    EndpointDisabled,
    /// A text in the file names none of the values that it may have.
    #[error("no such {column}")]
    UnknownText {
        /// What it was to name.
        column: &'static str,
    },
    /// Secrets cannot be sealed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Endpoints of a tenant: every event may be one row for each.
pub(crate) const MOST_ENDPOINTS: i64 = 50;

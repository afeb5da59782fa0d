//! To be written on its branch.

pub(crate) mod egress;
mod resolve;
mod response;
pub(crate) mod signature;
mod transport;

pub(crate) use egress::{Egress, EgressPolicy, UrlFault};
pub(crate) use resolve::Resolver;
pub(crate) use response::ErrorClass;
pub(crate) use transport::{Attempted, Target, Transport, TransportError, TransportSettings, WebhookHeaders};

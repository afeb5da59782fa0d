//! What can be wrong with a request to the domain events, in the terms a caller can act on.

use crate::kernel::store::StoreError;

/// Why something was not done. Nothing of it is in the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A type of our own, which nobody may post.
    #[error("{event_type} is a type of Pillarbox's own events; nobody else publishes it")]
    ReservedType {
        /// Which event of the request, from zero.
        index: usize,
        /// The type.
        event_type: String,
    },
    /// A type that the tenant has not registered, while `events.strict_types` is on.
    #[error("the type {event_type} is not registered")]
    UnregisteredType {
        /// Which event of the request, from zero.
        index: usize,
        /// The type.
        event_type: String,
    },
    /// An event of this id is there, with another content.
    #[error("there is another event of the id {event_id}")]
    EventIdConflict {
        /// Which event of the request, from zero.
        index: usize,
        /// The id.
        event_id: String,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyConflict,
    /// A value that cannot be.
    #[error("{field} {what}")]
    Invalid {
        /// Which event of the request, from zero; `None` when it is about the request as a whole.
        index: Option<usize>,
        /// The field, by its name on the wire.
        field: &'static str,
        /// What it must be, as the end of a sentence that begins with the field.
        what: &'static str,
    },
    /// No such tenant.
    #[error("there is no such tenant")]
    UnknownTenant,
    /// The tenant has no such event, or has not registered such a type.
    #[error("not found")]
    NotFound,
    /// The event was published: every consumer has accepted it, and nothing is left to be retried.
    #[error("the event is published; every consumer has accepted it")]
    AlreadyPublished,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// An event's value that cannot be.
    pub(super) fn invalid(index: usize, field: &'static str, what: &'static str) -> Self {
        Self::Invalid { index: Some(index), field, what }
    }

    /// A value of the request as a whole that cannot be.
    pub(super) fn invalid_request(field: &'static str, what: &'static str) -> Self {
        Self::Invalid { index: None, field, what }
    }
}

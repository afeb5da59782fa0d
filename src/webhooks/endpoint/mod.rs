//! Endpoints: where a tenant wants its events, which of them, and whether it gets any.

mod change;
mod secret;
mod subscription;

pub(crate) use change::{create, delete, destination, disable, endpoints, find_endpoint, update};
pub(crate) use secret::{Rotated, Rotation, rotate_secret};
pub(in crate::webhooks) use subscription::Subscription;

use super::Error;
use crate::kernel::clock::UnixMs;
pub(crate) use crate::kernel::events::EndpointReason as DisabledReason;
use crate::kernel::secret::Secret;

/// Whether an endpoint gets anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EndpointStatus {
    /// It does.
    Active,
    /// Deliveries wait.
    Paused,
    /// Events are noted as skipped, to be replayed.
    Disabled,
}

impl EndpointStatus {
    /// Every status.
    pub(crate) const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Disabled];

    /// Its word, in the file and in answers.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }

    /// The status of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or(Error::UnknownText { column: "status" })
    }
}

/// Every reason that an endpoint may be disabled for.
const REASONS: [DisabledReason; 3] = [DisabledReason::Gone, DisabledReason::Failing, DisabledReason::Manual];

/// The reason of that name.
pub(in crate::webhooks) fn disabled_reason(text: &str) -> Option<DisabledReason> {
    REASONS.into_iter().find(|reason| reason.as_str() == text)
}

/// An endpoint as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Its row: where a page of a list ends.
    pub(crate) row: i64,
    /// Its id, `ep_…`.
    pub(crate) id: String,
    /// Where events go, in the form that was judged.
    pub(crate) url: String,
    /// What its owner calls it; may be empty.
    pub(crate) description: String,
    /// Which events; `None` is all.
    pub(crate) event_types: Option<Vec<String>>,
    /// How many requests a second it takes, if that is limited.
    pub(crate) rate_per_second: Option<i64>,
    /// Whether it gets anything.
    pub(crate) status: EndpointStatus,
    /// Why it is disabled, if it is.
    pub(crate) disabled_reason: Option<DisabledReason>,
    /// Until when its receiver wants to be left alone.
    pub(crate) held_until: Option<UnixMs>,
    /// Since when every attempt has failed, if the last one has.
    pub(crate) failing_since: Option<UnixMs>,
    /// The last four characters of the secret that signs.
    pub(crate) secret_last_four: String,
    /// When it was made.
    pub(crate) created_at: UnixMs,
    /// When a person last changed it, or it was disabled.
    pub(crate) updated_at: UnixMs,
}

/// An endpoint that somebody wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewEndpoint {
    /// Where events should go.
    pub(crate) url: String,
    /// What to call it.
    pub(crate) description: Option<String>,
    /// Which events; `None` is all.
    pub(crate) event_types: Option<Vec<String>>,
    /// How many requests a second it takes.
    pub(crate) rate_per_second: Option<i64>,
    /// A secret of the owner's; `None`: one is made.
    pub(crate) secret: Option<Secret>,
}

/// What to change of an endpoint: the outer `None` leaves a field as it is, the inner one clears it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointChanges {
    /// Where events should go.
    pub(crate) url: Option<String>,
    /// What to call it.
    pub(crate) description: Option<Option<String>>,
    /// Which events.
    pub(crate) event_types: Option<Option<Vec<String>>>,
    /// How many requests a second it takes.
    pub(crate) rate_per_second: Option<Option<i64>>,
    /// `active` or `paused`.
    pub(crate) status: Option<EndpointStatus>,
}

impl EndpointChanges {
    /// Whether it only has the endpoint get less, so that it takes no room.
    pub(crate) fn is_relief(&self) -> bool {
        let Self { url, description, event_types, rate_per_second, status } = self;
        let is_alone = url.is_none() && description.is_none() && event_types.is_none() && rate_per_second.is_none();
        is_alone && *status == Some(EndpointStatus::Paused)
    }
}

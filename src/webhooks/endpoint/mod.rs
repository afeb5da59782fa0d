//! Endpoints: where a tenant wants its events, which of them, and whether it gets any.

use super::Error;

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

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DisabledReason {
    /// Its receiver answered that it is gone for good (410).
    Gone,
    /// Nothing has arrived there for long.
    Failing,
    /// A person did it.
    Manual,
}

impl DisabledReason {
    /// Every reason.
    pub(crate) const ALL: [Self; 3] = [Self::Gone, Self::Failing, Self::Manual];

    /// Its word, in the file and in answers.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Manual => "manual",
        }
    }

    /// The reason of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|reason| reason.as_str() == text);
        found.ok_or(Error::UnknownText { column: "disabled_reason" })
    }
}

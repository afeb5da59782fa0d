//! What a lead is called and where its notification stands: the words that every part of the subsystem shares.

use super::Error;

/// Where a lead's notification stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NotificationStatus {
    /// Nobody is told, until a person asks for it.
    Disabled,
    /// It waits to be claimed.
    Pending,
    /// Somebody has claimed it and not said yet how it ended.
    Sending,
    /// The broker's chat has it.
    Sent,
    /// The attempt failed; only a person repeats it.
    Failed,
}

impl NotificationStatus {
    /// Every status, in the order in which lists show them.
    pub(crate) const ALL: [Self; 5] = [Self::Pending, Self::Sending, Self::Sent, Self::Failed, Self::Disabled];

    /// The contract's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    /// The status of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or(Error::UnknownText { column: "notification_status" })
    }
}

/// Where the people who work on leads have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrmStatus(&'static str);

impl CrmStatus {
    /// Every status, by its name in the file.
    pub(crate) const ALL: [&'static str; 6] = ["new", "in_progress", "closed", "lost", "archived", "cancelled"];

    /// The status's name.
    pub(crate) const fn as_str(self) -> &'static str {
        self.0
    }

    /// The status of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| *status == text);
        found.map(Self).ok_or(Error::UnknownText { column: "status" })
    }
}

#[cfg(test)]
mod tests {
    use super::{CrmStatus, NotificationStatus};

    #[test]
    fn every_status_is_found_by_its_name() {
        for status in NotificationStatus::ALL {
            assert_eq!(NotificationStatus::parse(status.as_str()).unwrap(), status);
        }
        assert!(NotificationStatus::parse("lost").is_err());
        assert_eq!(CrmStatus::parse("lost").unwrap().as_str(), "lost");
        assert!(CrmStatus::parse("sent").is_err());
    }
}

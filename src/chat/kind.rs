//! What kinds of messages there are: the lane each travels in and what a doubtful send of it means.
//!
//! This is the only table of that; whoever adds a kind decides both here.

use super::Error;

/// The cause of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The answer to what a person just did.
    Reply,
    /// The question whether a site account belongs to this chat.
    BindPrompt,
    /// A direct message about an outbox event.
    Event,
    /// A leader is told that a partner asked for help.
    Help,
    /// A message that one of the operator's rules sends on a domain event.
    Communication,
    /// Something is wrong with the installation, told to its operator.
    Alert,
    /// A nudge for a person who is stuck at a stage.
    Reminder,
    /// A leader's numbers of the day.
    Digest,
    /// One recipient's copy of a broadcast.
    Broadcast,
    /// A broadcast as its author sees it before the start.
    BroadcastTest,
}

/// The three lanes, in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// A person waits for it.
    Interactive,
    /// Caused by one event for one person.
    Transactional,
    /// Caused by a schedule for many; goes only when nothing else can.
    Bulk,
}

/// What follows when it is not known whether a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnUnknown {
    /// Sent again: a second copy is better than none.
    Repeat,
    /// Closed as `unknown`: none is better than a second copy.
    Close,
}

impl Kind {
    /// Every kind, for parsing and for tests.
    pub(crate) const ALL: [Self; 10] = [
        Self::Reply,
        Self::BindPrompt,
        Self::Event,
        Self::Help,
        Self::Communication,
        Self::Alert,
        Self::Reminder,
        Self::Digest,
        Self::Broadcast,
        Self::BroadcastTest,
    ];

    /// The row of the table: name in the file, lane, and what a doubtful send means.
    const fn row(self) -> (&'static str, Lane, OnUnknown) {
        match self {
            Self::Reply => ("reply", Lane::Interactive, OnUnknown::Repeat),
            Self::BindPrompt => ("bind_prompt", Lane::Interactive, OnUnknown::Repeat),
            Self::Event => ("event", Lane::Transactional, OnUnknown::Repeat),
            Self::Help => ("help", Lane::Transactional, OnUnknown::Repeat),
            Self::Communication => ("communication", Lane::Transactional, OnUnknown::Repeat),
            Self::Alert => ("alert", Lane::Transactional, OnUnknown::Repeat),
            Self::Reminder => ("reminder", Lane::Bulk, OnUnknown::Close),
            Self::Digest => ("digest", Lane::Bulk, OnUnknown::Close),
            Self::Broadcast => ("broadcast", Lane::Bulk, OnUnknown::Close),
            Self::BroadcastTest => ("broadcast_test", Lane::Bulk, OnUnknown::Close),
        }
    }

    /// The kind's name in the file, in metrics and on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The lane this kind travels in.
    pub(crate) const fn lane(self) -> Lane {
        self.row().1
    }

    /// What a doubtful send of this kind means.
    pub(crate) const fn on_unknown(self) -> OnUnknown {
        self.row().2
    }

    /// The kind of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(Error::UnknownText { column: "kind" })
    }
}

impl Lane {
    /// Every lane, first the one that is served first.
    pub(crate) const ALL: [Self; 3] = [Self::Interactive, Self::Transactional, Self::Bulk];

    /// The lane's name in the file and in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Transactional => "transactional",
            Self::Bulk => "bulk",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()).expect("its own name"), kind);
        }
        assert!(Kind::parse("sms").is_err());
    }

    #[test]
    fn only_bulk_kinds_are_sent_at_most_once() {
        for kind in Kind::ALL {
            assert_eq!(kind.lane() == Lane::Bulk, kind.on_unknown() == OnUnknown::Close, "{kind:?}");
        }
    }
}

//! What the queue has to know of the people it writes to, and what it has to tell: their tables belong to others.

use super::kind::Kind;
use super::outcome::{FailureCode, Reason};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The message that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The chat; negative for groups.
    pub(crate) chat_id: i64,
    /// Its cause.
    pub(crate) kind: Kind,
    /// What makes it one of its kind.
    pub(crate) dedup_key: &'a str,
}

/// Whether a message may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It may.
    Granted,
    /// The addressee cannot be written to, as far as is known.
    Unreachable,
    /// The addressee does not want messages of this kind.
    OptedOut,
    /// It may, but not before this instant: it waits until then, and nothing is closed.
    NotYet(UnixMs),
}

/// A message of which nothing more will come, unless a person takes it up again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed<'a> {
    /// Its row.
    pub(crate) id: i64,
    /// The chat; negative for groups.
    #[expect(dead_code, reason = "whoever listens today goes by the key")]
    pub(crate) chat_id: i64,
    /// Its cause.
    pub(crate) kind: Kind,
    /// What makes it one of its kind.
    pub(crate) dedup_key: &'a str,
    /// What became of it.
    pub(crate) end: End,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It arrived; its id in its chat, if the messenger said one.
    Sent {
        /// The messenger's own number.
        message_id: Option<i64>,
    },
    /// It certainly did not arrive.
    Undeliverable(FailureCode),
    /// Nobody knows whether it arrived.
    Unknown(FailureCode),
    /// No attempt was made.
    Skipped(FailureCode),
}

/// The rest of the program, as the queue sees it. Every call is made in the transaction of the claim or of the settle,
/// which may be repeated: an implementation writes through `tx` only.
pub(crate) trait Addressee: Send + Sync {
    /// Reads reachability and the kind's opt-in again, at the last moment before a send. A chat that is nobody's (a
    /// group, a person without a row) is granted.
    ///
    /// # Errors
    /// The store's.
    fn permits(&self, tx: &Tx<'_>, asked: &Asked<'_>) -> Result<Permit, StoreError>;

    /// Telegram said that this chat cannot be written to.
    ///
    /// # Errors
    /// The store's.
    fn unreachable(&self, tx: &Tx<'_>, chat_id: i64, reason: Reason) -> Result<(), StoreError>;

    /// A message could not be delivered: does what its author asked for in that case (the JSON of
    /// [`super::NewMessage::fallback`]). Called once for a message. JSON that is not understood is the
    /// implementation's to report; an error would keep the message from being settled.
    ///
    /// # Errors
    /// The store's.
    fn fall_back(&self, tx: &Tx<'_>, fallback: &str) -> Result<(), StoreError>;

    /// Nothing more will come of this message. Called in the transaction that closes it, after [`Self::unreachable`] and
    /// [`Self::fall_back`]; again if a person takes the message up again and it is closed once more.
    ///
    /// # Errors
    /// The store's.
    fn closed(&self, tx: &Tx<'_>, closed: &Closed<'_>) -> Result<(), StoreError>;

    /// A group goes on under another id. The queue has moved what waits in it.
    ///
    /// # Errors
    /// The store's.
    fn moved(&self, tx: &Tx<'_>, from: i64, to: i64) -> Result<(), StoreError>;
}

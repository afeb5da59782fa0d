//! What the queue has to know of the people it writes to, and what it has to tell: their tables belong to others.

use super::kind::Kind;
use super::outcome::Reason;
use crate::kernel::store::{StoreError, Tx};

/// Whether a message may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It may.
    Granted,
    /// The addressee cannot be written to, as far as is known.
    Unreachable,
    /// The addressee does not want messages of this kind.
    OptedOut,
}

/// The rest of the program, as the queue sees it. Every call is made in the transaction of the claim or of the settle,
/// which may be repeated: an implementation writes through `tx` only.
pub(crate) trait Addressee: Send + Sync {
    /// Reads reachability and the kind's opt-in again, at the last moment before a send. A chat that is nobody's (a
    /// group, a person without a row) is granted.
    ///
    /// # Errors
    /// The store's.
    fn permits(&self, tx: &Tx<'_>, chat_id: i64, kind: Kind) -> Result<Permit, StoreError>;

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

    /// A group goes on under another id. The queue has moved what waits in it.
    ///
    /// # Errors
    /// The store's.
    fn moved(&self, tx: &Tx<'_>, from: i64, to: i64) -> Result<(), StoreError>;
}

//! Opening given-up events again: a person's act, with the attempts counted anew.

use super::acknowledge::State;
use super::{BOT_EVENTS, sql};
use crate::kernel::store::{StoreError, Tx};

/// What reopening one id did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopened {
    /// It is open again and goes first among its subject's open events.
    Opened,
    /// It was not given up: it is open.
    StillOpen,
    /// It was handled; handling it again would be a duplicate.
    Handled,
    /// There is no such event.
    Unknown,
}

impl Reopened {
    /// What the one who asked is told.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "reopened",
            Self::StillOpen => "still open: it is retried by itself",
            Self::Handled => "already handled: only abandoned and dead events are retried",
            Self::Unknown => "no such event",
        }
    }
}

/// Opens an abandoned or dead event again.
///
/// # Errors
/// The store's.
pub(crate) fn reopen(tx: &Tx<'_>, id: i64) -> Result<Reopened, StoreError> {
    Ok(match sql::find_state(tx, id)? {
        None => Reopened::Unknown,
        Some(State::Open { .. }) => Reopened::StillOpen,
        Some(State::Handled) => Reopened::Handled,
        Some(State::Abandoned | State::Dead) => {
            sql::reopen(tx, id)?;
            tx.wake(BOT_EVENTS);
            Reopened::Opened
        }
    })
}

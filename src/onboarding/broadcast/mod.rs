//! Broadcasts: one message to many people, frozen at the start and fed to the send queue a window at a time.
//!
//! # What
//! A broadcast has a text in one language or both, perhaps a button, an audience, a rate and quiet hours. When it starts,
//! its recipients are written down; the sweep ([`sweep`]) then keeps a bounded window of their messages in the send queue,
//! and what becomes of each message is recorded in the transaction that closes it ([`record()`]).
//!
//! # States
//! `draft → scheduled → running ⇄ paused → done | cancelled`. A recipient is `pending`, `queued` (the message is in the
//! send queue), and then `sent`, `undeliverable`, `unknown` or `skipped`, with why.
//!
//! # Guarantees
//! - Each recipient is sent it at most once, whatever is killed, paused and resumed:
//!   `tests/it/broadcasts_large.rs::a_hundred_thousand_reach_each_at_most_once`.
//! - Who is a recipient is decided once: `tests/it/broadcasts.rs::recipients_are_frozen_at_the_start`.
//! - What is shown to be counted is counted: `tests/it/broadcasts_large.rs::a_hundred_thousand_reach_each_at_most_once`.
//! - One that fails alike pauses itself: `tests/it/broadcasts.rs::one_that_fails_alike_pauses_itself`.
//! - Nothing of it leaves in its quiet hours: `tests/it/broadcasts.rs::quiet_hours_hold_over_a_restart`.
//!
//! # Windows
//! - Between the claim of a message and its settle: its outcome is unknown, and it is never sent again.
//! - Everywhere else none: recipient, counts and message change in one transaction.
//!
//! # Not here
//! No editing of a broadcast: another one is made. No second round to those whom it did not reach.

pub(crate) mod audience;
mod draft;
mod feed;
mod finish;
mod freeze;
pub(crate) mod quiet;
mod record;
pub(crate) mod report;
pub(crate) mod sql;
mod state;
pub(crate) mod sweep;
mod trial;

pub(crate) use audience::{Audience, Preview, preview};
pub(crate) use draft::{Button, Draft, create};
pub(crate) use quiet::Quiet;
pub(crate) use record::{permits, record};
pub(crate) use sql::Broadcast;
pub(crate) use state::{Change, State, change};
pub(crate) use trial::send_test;

use super::content::Lang;
use crate::chat;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, Wake};

/// A broadcast was started, changed, or has room for more in the send queue.
pub(crate) const BROADCASTS: Wake = Wake("broadcasts");

/// Why a broadcast could not be made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// There is none with this id.
    #[error("there is no broadcast {0}; `pillarbox broadcast list` shows which there are")]
    NotFound(i64),
    /// It is in a state from which this does not lead.
    #[error("the broadcast is {}: that cannot be done with it any more, or not yet", is.as_str())]
    WrongState {
        /// The state.
        is: State,
    },
    /// Something of it would not be taken by Telegram, or makes no sense.
    #[error("{what}: {why}")]
    Flawed {
        /// Which part.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It has no text in this language.
    #[error("the broadcast has no text in {}", .0.as_str())]
    NoText(Lang),
    /// The send queue refused it.
    #[error(transparent)]
    Chat(#[from] chat::Error),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deletes up to `limit` recipients of broadcasts that were finished before `cutoff`, and those broadcasts once they have
/// none left; how many rows.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    match sql::recipients::delete_finished(tx, cutoff, limit)? {
        0 => sql::delete_finished(tx, cutoff, limit),
        deleted => Ok(deleted),
    }
}

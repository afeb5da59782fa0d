//! The bot's mind, with no Telegram and no HTTP in it: what an event means for a person.
//!
//! **What.** The consumer takes pages of bot events from a [`Backend`] (this file, or a remote one), applies each to
//! the people it concerns, and closes it. The ledger mark, the change of state, the domain events, the queued messages
//! and, for this file, the closing of the event are one transaction.
//!
//! **States.** An event of a page is handled, a duplicate (its mark was there), failed (it waits, and its subject with
//! it), or left (behind a failed one, or no longer first). A person's stage only rises.
//!
//! **Guarantees.**
//! - The effects of an event are in the file if and only if its mark is, and once:
//!   `tests/it/crash.rs::what_was_acknowledged_is_handled_once_and_in_order_through_every_kill`.
//! - A failing event holds the later ones of its subject, and nobody else's:
//!   `tests/it/order_local.rs::the_local_bot_handles_each_subject_in_its_order`.
//! - A handler that failed is run again: `tests/it/consumer.rs::a_failed_event_is_handled_again_and_leaves_its_effects_once`.
//! - A panicking handler is a failed event, not a dead process:
//!   `src/onboarding/consumer_tests.rs::a_panicking_handler_is_a_failed_event_and_stops_only_its_subject`.
//!
//! **Windows.** Local: none, since the closing is in the transaction; a page cut off is taken anew. Remote: between
//! commit and acknowledgement the event is served again; its mark answers for it. A store fault is never an attempt.
//!
//! **Not here.** The outbox itself (`backend`), sending (`chat`), the commands and screens of the bot.

pub(crate) mod broadcast;
pub(crate) mod calls;
pub(crate) mod consumer;
pub(crate) mod content;
pub(crate) mod dialog;
pub(crate) mod digest;
pub(crate) mod funnel;
pub(crate) mod ledger;
pub(crate) mod menu;
pub(crate) mod people;
pub(crate) mod port;
pub(crate) mod prune;
mod reactions;
pub(crate) mod reminders;
pub(crate) mod screens;
mod sql;
pub(crate) mod updates;

pub(crate) use consumer::Consumer;
pub(crate) use port::{Backend, BackendError, Fate, Finished, PageEvent, Remote};

use crate::chat;
use crate::kernel::store::StoreError;

/// Why an event could not be applied. Its text is what `last_error` keeps: short, and without personal data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The contract has no such type; a newer bot may know it.
    #[error("unknown event type")]
    UnknownType,
    /// The payload is JSON that cannot be taken apart.
    #[error("the payload is not readable")]
    Unreadable,
    /// A field of the payload is missing or has a value the contract does not have.
    #[error("payload.{field} is missing or not valid")]
    Payload {
        /// The field.
        field: &'static str,
    },
    /// The ledger has this id with another time of emission: two events cannot be told apart by their id.
    #[error("the ledger has another event of this id")]
    IdReused,
    /// The handler panicked.
    #[error("the handler panicked")]
    Panicked,
    /// A text could not be rendered.
    #[error("text {0} could not be rendered")]
    Content(String),
    /// The backend could not be asked. That is no attempt: the chat waits for it.
    #[error(transparent)]
    Backend(BackendError),
    /// A message was refused by the send queue.
    #[error("the message could not be queued")]
    Chat(#[from] chat::Error),
    /// The store's.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
}

impl Error {
    /// The reason as the inbox keeps it: a short word, without personal data.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Content(_) => "content",
            Self::Store(StoreError::Constraint(_)) => "constraint",
            Self::Panicked => "panicked",
            Self::Unreadable => "unreadable",
            Self::Backend(_) => "backend",
            Self::Chat(_) => "chat",
            Self::UnknownType | Self::Payload { .. } | Self::IdReused | Self::Store(_) => "other",
        }
    }
}

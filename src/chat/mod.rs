//! Messages to people: the send queue, its budget, and the port to whoever delivers them.
//!
//! # What
//! [`enqueue`] writes a row of `telegram_messages` in the caller's transaction. [`Sender::run_once`] sends what may go:
//! first a slot of the [`Limiter`], then the claim, then the call, then the settle. The [`Messenger`] is a port; the
//! Telegram client behind it lives in `edge/telegram`. What the queue must know of people it asks the [`Addressee`].
//!
//! # States
//! `pending → sending → sent | undeliverable | unknown`, and back to `pending` for another attempt;
//! `pending → skipped | cancelled`; whatever is closed but `sent` goes back to `pending` when a person retries it.
//!
//! # Guarantees
//! - A message with a known dedup key is not queued again (`src/chat/tests/order.rs::a_known_key_queues_nothing`).
//! - In a lane of a chat, messages leave in the order in which they were queued, and a waiting head holds those behind
//!   it (`src/chat/tests/order.rs::a_waiting_head_holds_its_lane_and_no_other`).
//! - Of changes of one message that were not tried yet, only the newest is made
//!   (`src/chat/tests/order.rs::of_several_changes_of_a_message_the_last_is_made`).
//! - No window of time holds more sends than its limit (`src/chat/limiter/tests.rs::no_window_holds_more_starts_than_its_limit`).
//! - A second copy is sent only after an attempt of unknown outcome, which `unknown_count` shows; reminders, digests and
//!   broadcasts are never sent a second time (`src/chat/tests/outcomes.rs::a_doubtful_send_is_repeated_or_closed_by_its_kind`).
//! - A fallback runs once, in the transaction that closes the message (`src/chat/tests/outcomes.rs::a_blocked_person_is_remembered_and_the_fallback_runs_once`).
//! - A call that hangs holds up its own chat only (`src/chat/tests/sending.rs::a_hanging_call_holds_up_its_own_chat_only`).
//!
//! # Windows
//! - Between slot and claim: the slot dies with the process; nothing was promised.
//! - Between claim and settle: the row stays `sending`. At the next start its outcome is unknown, code `crashed`, and
//!   treated by kind (`src/chat/tests/sending.rs::a_message_in_flight_at_the_end_of_the_process_has_an_unknown_outcome`).
//! - After the answer and before the settle is committed: the same, although the answer was known.
//!
//! # Not here
//! No sending from a handler, no priority within a lane, no batch call. Lead notifications have rules of their own and
//! take only slots from here.

mod access;
mod addressee;
pub(crate) mod inbox;
mod input;
mod kind;
mod limiter;
mod listing;
mod message;
mod outcome;
mod plain;
mod queue;
mod sender;
mod sql;
#[cfg(test)]
mod tests;
mod verdict;
mod withdraw;

pub(crate) use access::Access;
pub(crate) use addressee::{Addressee, Asked, Closed, End, Permit};
pub(crate) use input::{Author, Input, Membership, Place, Reader, Unreadable, What};
pub(crate) use kind::{Kind, Lane};
pub(crate) use limiter::{Limiter, Limits, Slot, millis};
pub(crate) use listing::{Filter, Listed, Status, list, newest, retry, stats};
pub(crate) use message::{Action, Button, Format, Keyboard, NewMessage, Preview, Rendered};
pub(crate) use outcome::{Class, FailureCode, Messenger, Outcome, Reason};
pub(crate) use plain::plain_text;
pub(crate) use queue::{Enqueued, enqueue, prune};
pub(crate) use sender::{Sender, SenderParts, SenderSettings};
pub(crate) use verdict::UNAUTHORIZED_WAIT;
pub(crate) use withdraw::withdraw;

use crate::kernel::store::{StoreError, Wake};

/// The topic on which the sender is woken: something was queued, or may go now.
pub(crate) const QUEUED: Wake = Wake("telegram-send");

/// What can be wrong with a request to the queue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A button's data is empty or over 64 bytes, or its address is empty.
    #[error("a button has no data, more than 64 bytes of it, or no address")]
    InvalidButton,
    /// A text names none of the values that it may have.
    #[error("no such {column}")]
    UnknownText {
        /// What it was to name.
        column: &'static str,
    },
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

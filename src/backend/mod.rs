//! The backend's side of the contract with the bot: the outbox of bot events, members and their chats, web notifications.
//!
//! **What.** An event is a row of `bot_event_outbox`, inserted in the transaction of the change it tells of: by
//! [`emit()`], by `tx.publish` of a member's event, or by another program's SQL. Events of one subject are served in the
//! order of their ids; the subject is the member if known (also through the binding), else the chat.
//!
//! **States.** open → processed (`handled`) · open → abandoned (ten failed attempts) · open → dead (ten failed attempts
//! of `registered`). Abandoned and dead events are opened again by [`requeue::reopen`], a person's act.
//!
//! **Guarantees.**
//! - No event is served before an earlier open event of its subject:
//!   `tests/it/order.rs::a_remote_bot_is_served_each_subject_in_its_order`.
//! - A repeated acknowledgement changes nothing: `src/edge/http/tests/contract.rs::an_acknowledgement_can_be_repeated_in_every_state`.
//! - A known dedup key emits nothing: `src/edge/http/tests/contract.rs::a_known_dedup_key_answers_the_first_id`.
//! - What a page costs does not depend on history or on what waits behind one head:
//!   `src/backend/plan_tests.rs::every_repeated_statement_uses_the_index_made_for_it`,
//!   `src/backend/lane_tests.rs::every_lane_is_the_lowest_open_event_of_its_subject`.
//!
//! - Of two chats that confirm for one member, one is bound: `src/edge/http/tests/bot_links.rs::two_chats_race_for_one_member`.
//!
//! **Windows.** Emitting is part of its caller's transaction: there is none. A claim that is cut off leaves a lease of an
//! earlier boot, which counts for nothing. An acknowledgement is one transaction; lost on the way, it is repeated.
//!
//! **Not here.** What an event does to the bot (`onboarding`), HTTP (`edge`). Members have a page of their own ([`members`]),
//! and so have the links that lead to the site ([`connect`]).

mod acknowledge;
mod bind;
pub(crate) mod connect;
pub(crate) mod emit;
pub(crate) mod inspect;
#[cfg(test)]
mod lane_tests;
pub(crate) mod members;
pub(crate) mod mend;
mod notification;
pub(crate) mod page;
#[cfg(test)]
mod plan_tests;
pub(crate) mod requeue;
mod sql;

use std::time::Duration;

pub(crate) use acknowledge::{Ack, Acknowledged, Retry, acknowledge, close_handled, is_head, put_off};
pub(crate) use bind::bind;
pub(crate) use emit::{Emitted, NewBotEvent, emit, record};
pub(crate) use notification::store_notification;

use crate::kernel::store::{StoreError, Wake};

/// Bot events have been committed.
pub(crate) const BOT_EVENTS: Wake = Wake("bot-events");

/// An event that has failed so often is given up (contract: `BOT_OUTBOX_MAX_ATTEMPTS`).
pub(crate) const MAX_ATTEMPTS: i64 = 10;
/// The first factor of the back-off: 60 s × 2^attempts (contract: `BOT_OUTBOX_BACKOFF_BASE_SECONDS`).
pub(crate) const BACKOFF_BASE: Duration = Duration::from_secs(60);
/// How long the local consumer holds a page before others may take it (contract: the redlock's TTL).
pub(crate) const LEASE: Duration = Duration::from_secs(25);
/// Events of a page when nobody asks for another number (contract).
pub(crate) const DEFAULT_PAGE: i64 = 100;
/// The most a page holds (contract), and the most ids of one list of an acknowledgement.
pub(crate) const LARGEST_PAGE: i64 = 500;
/// What is kept of a failure's text.
const ERROR_LENGTH: usize = 300;

/// What a caller of the backend can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// Neither a chat nor a member: whose event would it be?
    #[error("an event needs a telegramId or a magnetUid")]
    NoSubject,
    /// A member cannot be under themselves.
    #[error("a member cannot be their own parent")]
    OwnParent,
    /// The parent is no member.
    #[error("there is no member of the parent's id")]
    NoParent,
    /// Another member has this link.
    #[error("another member has this link")]
    LinkTaken,
    /// Another member has this chat.
    #[error("another member is bound to this chat")]
    ChatTaken,
    /// There is no such member.
    #[error("there is no such member")]
    NoMember,
    /// There was never such a token.
    #[error("there is no such connect link")]
    NoToken,
    /// The token was used by somebody else, or nobody used it in time.
    #[error("the connect link was used or is over")]
    TokenOver,
    /// The member has another chat.
    #[error("the member is bound to another chat")]
    MemberIsBound,
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

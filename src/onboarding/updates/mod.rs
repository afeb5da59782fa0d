//! Updates, handled: each chat's in its order, each update in one transaction.
//!
//! **What.** The [`Worker`] takes the heads of the inbox, one a chat, reads each, asks the backend what the conversation
//! needs to know, and applies it: its mark, the person's row, their stage and the queued answers are one transaction.
//!
//! **States.** Those of `chat::inbox`. Which chats are in hand is remembered here only: there is one process.
//!
//! **Guarantees.**
//! - The effects of an update are in the file if and only if it is marked, and once, through every kill:
//!   `tests/it/crash_bot.rs::every_update_is_handled_once_through_every_kill`.
//! - A chat whose update fails or hangs waits for it, and nobody else does:
//!   `src/onboarding/updates/tests.rs::a_chat_that_hangs_holds_up_nobody_else`.
//! - A panic is a failed attempt, not a dead process: `src/onboarding/updates/tests.rs::a_panicking_screen_is_a_dead_update_and_the_bot_lives`.
//! - A backend that cannot be asked is no failure: `src/onboarding/updates/tests.rs::a_backend_that_is_away_makes_the_chat_wait_and_counts_for_nothing`.
//!
//! **Windows.** Until the commit nothing of an update was. An abort of the whole process inside a handler is not counted
//! as an attempt: such a handler would be run again at each start.
//!
//! **Not here.** What an update means ([`super::dialog`]); fetching (`edge/telegram`).

#[cfg(test)]
mod tests;
mod worker;

pub(crate) use worker::Worker;

use super::dialog::Facts;
use crate::chat::Input;
use crate::kernel::clock::UnixMs;

/// An update as it is handled: what a person did, and what was found out about them before the transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    /// Its row in the inbox, which makes the keys of what is answered.
    pub(crate) update: i64,
    /// When it was stored.
    pub(crate) received_at: UnixMs,
    /// What was done.
    pub(crate) input: &'a Input,
    /// What the backend said.
    pub(crate) facts: &'a Facts,
}

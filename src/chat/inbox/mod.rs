//! The inbox: updates that were stored before the messenger was told that we have them.
//!
//! # What
//! Rows of `telegram_updates`, in the order of their arrival within each chat (`telegram_update_lanes` has the head of
//! each), and where the reading of a bot's updates stands (`telegram_intake`). Storing a batch and moving the offset is
//! one transaction, and so is handling one update and marking it.
//!
//! # States
//! `pending → handled | dead`; `dead → pending` when a person replays it. A handled update loses its text: only its
//! number is needed, to know it again. There is no lease: one process handles updates, and remembers what it has in hand.
//!
//! # Guarantees
//! - An update that comes again is known by its number (`src/chat/inbox/tests.rs::what_comes_again_is_known`).
//! - A chat's updates are handled in the order in which they came, and a failing one holds its own chat only
//!   (`src/chat/inbox/tests.rs::a_failing_update_holds_its_chat_and_no_other`).
//! - Ten failures are death, and the chat goes on (`src/chat/inbox/tests.rs::the_tenth_failure_is_death_and_the_chat_goes_on`).
//! - Whoever handled another attempt than the last changes nothing (`src/chat/inbox/tests.rs::an_attempt_that_was_overtaken_changes_nothing`).
//!
//! # Windows
//! - Before the commit that stores it: nothing was acknowledged, and it is delivered again.
//! - Between that and the acknowledgement: it is delivered again, and known.
//! - While it is handled: nothing of it was; it is handled at the next start.
//!
//! # Not here
//! Fetching updates (`edge/telegram`), reading them ([`super::Reader`]), and what they mean (`onboarding`). After a week
//! without any, Telegram begins to count anew at random: should a number of the kept ones come up again, that update is
//! taken for known. Of 2³¹ numbers that is one in thousands of years.

mod handling;
mod intake;
mod listing;
mod sql;
#[cfg(test)]
mod tests;

pub(crate) use handling::{Due, Fate, Waiting, Why, due, find_head, mark_handled, next_due, put_off};
pub(crate) use intake::{Received, Standing, note_webhook, standing, store};
pub(crate) use listing::{Filter, Listed, State, Stats, dead_after, find, list, prune, replay, stats};

use crate::kernel::store::Wake;

/// An update was stored, or may be handled again.
pub(crate) const UPDATES: Wake = Wake("telegram-updates");

/// The kind of an update of which nothing but its number could be read.
pub(crate) const UNREADABLE: &str = "unreadable";

//! The bot was blocked by a person, or let in again.

use super::sql;
use crate::chat::{Membership, Reason};
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::people;

/// Notes whether a person can be written to. Nobody becomes one of the bot's people by that.
///
/// # Errors
/// The store's.
pub(super) fn note(tx: &Tx<'_>, chat_id: i64, membership: Membership) -> Result<(), StoreError> {
    match membership {
        Membership::Gone => people::mark_unreachable(tx, chat_id, Reason::Blocked),
        Membership::Member => sql::set_reachable(tx, chat_id),
    }
}

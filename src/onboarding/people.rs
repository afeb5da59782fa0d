//! What others ask and tell about people: whether they can be written to, whether they want it, and who they are.

use super::sql;
use crate::chat::{Kind, Permit, Reason};
use crate::kernel::store::{StoreError, Tx};

/// Characters of a name that are shown: one of a whole payload's length would make the message undeliverable.
const LONGEST_NAME: usize = 200;

/// A name as it fits a line: people and other programs may have put anything there.
pub(crate) fn short_name(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(LONGEST_NAME).collect()
}

/// Whether a message of this kind may go to this chat now. A chat that is nobody's is granted.
///
/// # Errors
/// The store's.
pub(crate) fn permits(tx: &Tx<'_>, chat_id: i64, kind: Kind) -> Result<Permit, StoreError> {
    let Some(person) = sql::find_person(tx, chat_id)? else { return Ok(Permit::Granted) };
    if !person.is_reachable {
        return Ok(Permit::Unreachable);
    }
    let wanted = match kind {
        Kind::Event | Kind::Help | Kind::Communication | Kind::Reminder => person.optin_urgent,
        Kind::Digest => person.optin_digest,
        Kind::Broadcast => person.optin_broadcast,
        Kind::Reply | Kind::BindPrompt | Kind::Alert | Kind::BroadcastTest => true,
    };
    Ok(if wanted { Permit::Granted } else { Permit::OptedOut })
}

/// Telegram said that this person cannot be written to.
///
/// # Errors
/// The store's.
pub(crate) fn mark_unreachable(tx: &Tx<'_>, chat_id: i64, reason: Reason) -> Result<(), StoreError> {
    sql::set_unreachable(tx, chat_id, reason.as_str())
}

/// The member whom this chat is known to belong to.
///
/// # Errors
/// The store's.
pub(crate) fn find_member(tx: &Tx<'_>, telegram_id: i64) -> Result<Option<i64>, StoreError> {
    Ok(sql::find_person(tx, telegram_id)?.and_then(|person| person.magnet_uid))
}

//! Binding: a chat that opened a member's link becomes the member's own, once the person has confirmed it in the bot.

use super::sql;
use crate::kernel::contract::Bound;
use crate::kernel::store::{StoreError, Tx};

/// Binds the chat to the member if the member's preview is still this chat, and neither has another binding.
///
/// A preview is one value: when the link of another chat is redeemed, the confirmation of the earlier one is refused.
///
/// # Errors
/// The store's.
pub(crate) fn bind(tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Bound, StoreError> {
    if sql::promote_preview(tx, telegram_id, uid)? == 1 {
        return Ok(Bound::Now);
    }
    let is_bound = sql::find_uid_by_chat(tx, telegram_id)? == Some(uid);
    Ok(if is_bound { Bound::Before } else { Bound::Refused })
}

//! What a bot and its operator ask about members.

use super::Member;
use crate::backend::sql;
use crate::kernel::clock::rfc3339;
use crate::kernel::contract::{Leader, MemberState};
use crate::kernel::store::{StoreError, Tx};

/// The member of that id.
///
/// # Errors
/// The store's.
pub(crate) fn find(tx: &Tx<'_>, uid: i64) -> Result<Option<Member>, StoreError> {
    sql::find_member(tx, uid)
}

/// The member whose link has this code.
///
/// # Errors
/// The store's.
pub(crate) fn find_by_link(tx: &Tx<'_>, code: &str) -> Result<Option<Leader>, StoreError> {
    let Some(uid) = sql::find_uid_by_link(tx, code)? else { return Ok(None) };
    let member = sql::find_member(tx, uid)?;
    Ok(member.map(|member| Leader { uid, link: code.to_owned(), name: member.name }))
}

/// The id of the member whom this chat is bound to; a preview is no binding.
///
/// # Errors
/// The store's.
pub(crate) fn find_by_chat(tx: &Tx<'_>, telegram_id: i64) -> Result<Option<i64>, StoreError> {
    sql::find_uid_by_chat(tx, telegram_id)
}

/// What the member whom this chat is bound to has done.
///
/// # Errors
/// The store's.
pub(crate) fn state_of(tx: &Tx<'_>, telegram_id: i64) -> Result<Option<MemberState>, StoreError> {
    let uid = sql::find_uid_by_chat(tx, telegram_id)?;
    let member = uid.map(|uid| sql::find_member(tx, uid)).transpose()?.flatten();
    Ok(member.map(|member| MemberState {
        is_registration_confirmed: member.registration_confirmed,
        lp1: member.lp1,
        lp2: member.lp2,
        addr: member.addr.filter(|addr| !addr.is_empty()),
        time_active: member.time_active.map(rfc3339),
        own_link: member.link,
    }))
}

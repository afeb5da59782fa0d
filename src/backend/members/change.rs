//! Changing a member: what was said replaces what was there, and what that reaches is told of with it.

use super::{Member, announce_one};
use crate::backend::{Error, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::Tx;

/// What a change says of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field<T> {
    /// Nothing: it stays.
    #[default]
    Keep,
    /// It has no value any more.
    Clear,
    /// It has this one.
    Set(T),
}

impl<T: Clone> Field<T> {
    fn apply(&self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::Set(value) => *to = Some(value.clone()),
        }
    }
}

impl Field<bool> {
    /// A yes or no has no third value: cleared, it is no.
    fn apply_flag(&self, to: &mut bool) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = false,
            Self::Set(value) => *to = *value,
        }
    }
}

/// A change of a member. Texts and ids have been checked by whoever read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberChange {
    pub(crate) link: Field<String>,
    pub(crate) name: Field<String>,
    pub(crate) telegram_id: Field<i64>,
    pub(crate) preview_telegram_id: Field<i64>,
    pub(crate) parent_uid: Field<i64>,
    pub(crate) addr: Field<String>,
    pub(crate) lp1: Field<bool>,
    pub(crate) lp2: Field<bool>,
    pub(crate) time_active: Field<UnixMs>,
    pub(crate) registration_confirmed: Field<bool>,
}

impl MemberChange {
    fn apply(&self, member: &mut Member) {
        self.link.apply(&mut member.link);
        self.name.apply(&mut member.name);
        self.telegram_id.apply(&mut member.telegram_id);
        self.preview_telegram_id.apply(&mut member.preview_telegram_id);
        self.parent_uid.apply(&mut member.parent_uid);
        self.addr.apply(&mut member.addr);
        self.lp1.apply_flag(&mut member.lp1);
        self.lp2.apply_flag(&mut member.lp2);
        self.time_active.apply(&mut member.time_active);
        self.registration_confirmed.apply_flag(&mut member.registration_confirmed);
    }
}

/// What putting a member did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    /// The member as it is now.
    pub(crate) member: Member,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
    /// Whether anything of it is another than before.
    pub(crate) is_changed: bool,
    /// The domain events that the difference published, by name, in their order.
    pub(crate) published: Vec<&'static str>,
}

/// Stores a member as it was with this change, and tells of what it reaches for the first time. A change that changes
/// nothing writes nothing.
///
/// Relies on: single writer. What is taken is looked for before the write.
///
/// # Errors
/// [`Error::OwnParent`], [`Error::NoParent`], [`Error::LinkTaken`], [`Error::ChatTaken`]; else the store's.
pub(crate) fn put(tx: &Tx<'_>, uid: i64, change: &MemberChange) -> Result<Put, Error> {
    let before = sql::find_member(tx, uid)?;
    let mut member = before.clone().unwrap_or_else(|| Member::new(uid));
    change.apply(&mut member);
    let is_new = before.is_none();
    let is_changed = before.as_ref() != Some(&member);
    if is_changed {
        check(tx, &member, before.as_ref())?;
        let is_previewed_anew = before.as_ref().and_then(|b| b.preview_telegram_id) != member.preview_telegram_id;
        sql::upsert_member(tx, &member)?;
        if is_previewed_anew {
            sql::mark_previewed(tx, uid)?;
        }
    }
    let published = announce_one(tx, uid)?;
    let member = sql::find_member(tx, uid)?.unwrap_or(member);
    Ok(Put { member, is_new, is_changed, published })
}

/// Refuses what would take something from another member, and parents that cannot be.
fn check(tx: &Tx<'_>, member: &Member, before: Option<&Member>) -> Result<(), Error> {
    let is_another = |found: Option<i64>| found.is_some_and(|uid| uid != member.uid);
    if let Some(parent) = member.parent_uid.filter(|_| before.and_then(|b| b.parent_uid) != member.parent_uid) {
        if parent == member.uid {
            return Err(Error::OwnParent);
        }
        if sql::find_member(tx, parent)?.is_none() {
            return Err(Error::NoParent);
        }
    }
    if let Some(link) = &member.link
        && is_another(sql::find_uid_by_link(tx, link)?)
    {
        return Err(Error::LinkTaken);
    }
    if let Some(chat) = member.telegram_id
        && is_another(sql::find_uid_by_chat(tx, chat)?)
    {
        return Err(Error::ChatTaken);
    }
    Ok(())
}

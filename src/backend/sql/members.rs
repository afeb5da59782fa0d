//! Statements on `members`: what is looked up, a member as it is stored, its marks, and its two chats.

use rusqlite::{Row, named_params};

use crate::backend::members::{Member, Told};
use crate::kernel::store::{StoreError, Tx};

fn from_row(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member {
        uid: row.get("uid")?,
        link: row.get("link")?,
        name: row.get("name")?,
        telegram_id: row.get("telegram_id")?,
        preview_telegram_id: row.get("preview_telegram_id")?,
        parent_uid: row.get("parent_uid")?,
        addr: row.get("addr")?,
        lp1: row.get("lp1")?,
        lp2: row.get("lp2")?,
        time_active: row.get("time_active")?,
        registration_confirmed: row.get("registration_confirmed")?,
        told: Told {
            wallet_connected_at: row.get("wallet_connected_at")?,
            registered_at: row.get("registered_at")?,
            lp1_at: row.get("lp1_at")?,
            lp2_at: row.get("lp2_at")?,
        },
        updated_at: row.get("updated_at")?,
    })
}

/// The member of that id.
pub(crate) fn find_member(tx: &Tx<'_>, uid: i64) -> Result<Option<Member>, StoreError> {
    tx.query_opt(
        "SELECT uid, link, name, telegram_id, preview_telegram_id, parent_uid, addr, lp1, lp2, time_active,
                registration_confirmed, wallet_connected_at, registered_at, lp1_at, lp2_at, updated_at
         FROM members WHERE uid = :uid",
        named_params! { ":uid": uid },
        from_row,
    )
}

pub(super) const BY_LINK: &str = "SELECT uid FROM members WHERE link = :link";

/// Whose link has this code.
pub(crate) fn find_uid_by_link(tx: &Tx<'_>, link: &str) -> Result<Option<i64>, StoreError> {
    tx.query_opt(BY_LINK, named_params! { ":link": link }, |row| row.get("uid"))
}

pub(super) const BY_CHAT: &str = "SELECT uid FROM members WHERE telegram_id = :chat";

/// Whom this chat is bound to.
pub(crate) fn find_uid_by_chat(tx: &Tx<'_>, chat: i64) -> Result<Option<i64>, StoreError> {
    tx.query_opt(BY_CHAT, named_params! { ":chat": chat }, |row| row.get("uid"))
}

/// Stores every field of a member, but its marks.
pub(crate) fn upsert_member(tx: &Tx<'_>, member: &Member) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO members (uid, link, name, telegram_id, preview_telegram_id, parent_uid, addr, lp1, lp2, time_active,
                              registration_confirmed, updated_at)
         VALUES (:uid, :link, :name, :telegram_id, :preview_telegram_id, :parent_uid, :addr, :lp1, :lp2, :time_active,
                 :registration_confirmed, :now)
         ON CONFLICT (uid) DO UPDATE SET
           link = excluded.link, name = excluded.name, telegram_id = excluded.telegram_id,
           preview_telegram_id = excluded.preview_telegram_id, parent_uid = excluded.parent_uid, addr = excluded.addr,
           lp1 = excluded.lp1, lp2 = excluded.lp2, time_active = excluded.time_active,
           registration_confirmed = excluded.registration_confirmed, updated_at = excluded.updated_at",
        named_params! {
            ":uid": member.uid,
            ":link": member.link,
            ":name": member.name,
            ":telegram_id": member.telegram_id,
            ":preview_telegram_id": member.preview_telegram_id,
            ":parent_uid": member.parent_uid,
            ":addr": member.addr,
            ":lp1": member.lp1,
            ":lp2": member.lp2,
            ":time_active": member.time_active,
            ":registration_confirmed": member.registration_confirmed,
            ":now": tx.now(),
        },
    )?;
    Ok(())
}

/// Marks what the member has reached as told of; what was marked before keeps its time.
pub(crate) fn mark_told(tx: &Tx<'_>, uid: i64) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE members SET
           wallet_connected_at = COALESCE(wallet_connected_at, CASE WHEN addr <> '' THEN :now END),
           registered_at = COALESCE(registered_at, CASE registration_confirmed WHEN 1 THEN :now END),
           lp1_at = COALESCE(lp1_at, CASE lp1 WHEN 1 THEN :now END),
           lp2_at = COALESCE(lp2_at, CASE lp2 WHEN 1 THEN :now END)
         WHERE uid = :uid",
        named_params! { ":now": tx.now(), ":uid": uid },
    )
}

/// The condition is the index's, term by term: else it would not be used.
pub(super) const UNANNOUNCED: &str = "
    SELECT uid FROM members INDEXED BY members_unannounced
    WHERE ((addr IS NOT NULL AND addr <> '' AND wallet_connected_at IS NULL)
        OR (registration_confirmed = 1 AND registered_at IS NULL)
        OR (lp1 = 1 AND lp1_at IS NULL) OR (lp2 = 1 AND lp2_at IS NULL))
      AND uid > :after
    ORDER BY uid LIMIT :limit";

/// Members of whom something is to be told, lowest first, behind that one.
pub(crate) fn unannounced_members(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    tx.query_all(UNANNOUNCED, named_params! { ":after": after, ":limit": limit }, |row| row.get("uid"))
}

/// Makes the member's preview its binding, if the preview is this chat and neither has another binding; how many rows.
pub(crate) fn promote_preview(tx: &Tx<'_>, chat: i64, uid: i64) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE members SET telegram_id = :chat, preview_telegram_id = NULL, preview_at = NULL, updated_at = :now
         WHERE uid = :uid AND telegram_id IS NULL AND preview_telegram_id = :chat
           AND NOT EXISTS (SELECT 1 FROM members WHERE telegram_id = :chat)",
        named_params! { ":chat": chat, ":now": tx.now(), ":uid": uid },
    )
}

pub(super) const MOVE_PREVIEW: &str = "
    UPDATE members INDEXED BY members_preview SET preview_telegram_id = NULL, preview_at = NULL, updated_at = :now
    WHERE preview_telegram_id = :chat AND uid <> :uid";

/// The chat is the preview of nobody but this member.
pub(crate) fn move_preview(tx: &Tx<'_>, chat: i64, uid: i64) -> Result<usize, StoreError> {
    tx.execute(MOVE_PREVIEW, named_params! { ":now": tx.now(), ":chat": chat, ":uid": uid })
}

/// The chat is the member's preview.
pub(crate) fn set_preview(tx: &Tx<'_>, chat: i64, uid: i64) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE members SET preview_telegram_id = :chat, preview_at = :now, updated_at = :now WHERE uid = :uid",
        named_params! { ":chat": chat, ":now": tx.now(), ":uid": uid },
    )
}

/// When the preview that the member has now, if any, came to be.
pub(crate) fn mark_previewed(tx: &Tx<'_>, uid: i64) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE members SET preview_at = CASE WHEN preview_telegram_id IS NOT NULL THEN :now END WHERE uid = :uid",
        named_params! { ":now": tx.now(), ":uid": uid },
    )
}

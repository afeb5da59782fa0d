//! Every statement on `bot_event_outbox`, its lanes, `members`, `member_imports` and `web_notifications`; nobody else
//! touches these tables.

mod events;
mod imports;
mod lanes;
mod lists;
mod members;

use rusqlite::named_params;

pub(super) use events::{
    Failure, abandon, close_all_handled, close_handled, dead_letter, due_page, find_by_dedup_key, find_state, insert,
    is_head, lease, put_off, release_lease, renew_lease, reopen,
};
pub(super) use imports::{
    advance_import, delete_import, delete_old_imports, find_import, finish_import, insert_import,
};
pub(super) use lanes::{add_missing_lanes, has_missing_lane, has_stray_lane, remove_stray_lanes};
pub(super) use lists::{
    count_abandoned, count_dead, count_open, count_waiting, find_row, list, newest_event, oldest_open, waiting,
};
pub(super) use members::{
    find_member, find_uid_by_chat, find_uid_by_link, mark_previewed, mark_told, move_preview, promote_preview,
    set_preview, unannounced_members, upsert_member,
};

use crate::kernel::contract::WebNotification;
use crate::kernel::store::{StoreError, Tx};

/// Stores a notification, unless one of the same cause is there.
pub(super) fn insert_notification(tx: &Tx<'_>, notification: &WebNotification) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO web_notifications (magnet_uid, kind, title, body, dedup_key, created_at)
         VALUES (:uid, :kind, :title, :body, :dedup_key, :now)
         ON CONFLICT (dedup_key) DO NOTHING",
        named_params! {
            ":uid": notification.magnet_uid,
            ":kind": notification.kind,
            ":title": notification.title,
            ":body": notification.body,
            ":dedup_key": notification.dedup_key,
            ":now": tx.now(),
        },
    )?;
    Ok(())
}

/// The first hundred notifications after this id, oldest first: id, member, title.
pub(super) fn notifications(tx: &Tx<'_>, after: i64) -> Result<Vec<(i64, i64, String)>, StoreError> {
    tx.query_all(
        "SELECT id, magnet_uid, title FROM web_notifications WHERE id > ?1 ORDER BY id LIMIT 100",
        [after],
        |row| Ok((row.get("id")?, row.get("magnet_uid")?, row.get("title")?)),
    )
}

/// The newest notification's id, or 0.
pub(super) fn newest_notification(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one("SELECT COALESCE(MAX(id), 0) AS id FROM web_notifications", [], |row| row.get("id"))
}

/// The repeated statements with the indexes they are meant to use, for the plan test.
#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    vec![
        ("due page", events::DUE_PAGE, &["lane USING PRIMARY KEY", "bot_event_outbox_open", "INTEGER PRIMARY KEY"]),
        ("open list", lists::OPEN, &["bot_event_outbox_waiting"]),
        ("abandoned list", lists::ABANDONED, &["bot_event_outbox_abandoned"]),
        ("dead list", lists::DEAD, &["bot_event_outbox_dead"]),
        ("oldest open", lists::OLDEST_OPEN, &["bot_event_outbox_waiting"]),
        ("waiting subjects", lists::COUNT_WAITING, &["USING PRIMARY KEY"]),
        ("dedup key", events::BY_DEDUP_KEY, &["bot_event_outbox_emitted_once"]),
        ("link", members::BY_LINK, &["sqlite_autoindex_members_1"]),
        ("chat", members::BY_CHAT, &["sqlite_autoindex_members_2"]),
        ("unannounced members", members::UNANNOUNCED, &["members_unannounced"]),
        ("preview of others", members::MOVE_PREVIEW, &["members_preview"]),
    ]
}

//! Every statement on the ledger and on `bot_users`; nobody else touches these tables.

use rusqlite::{Row, named_params};

use super::content::Lang;
use crate::kernel::clock::UnixMs;
use crate::kernel::contract::BotEvent;
use crate::kernel::store::{StoreError, Tx, lossy_text};

/// What is known of a person.
#[expect(dead_code, reason = "screens show all of it, and none is shown yet")]
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) telegram_id: i64,
    pub(crate) magnet_uid: Option<i64>,
    /// Who brought them.
    pub(crate) leader_uid: Option<i64>,
    /// In whose structure they are: under whom they registered, else who brought them.
    pub(crate) structure_uid: Option<i64>,
    pub(crate) username: Option<String>,
    pub(crate) first_name: Option<String>,
    /// What they chose; absent until they do.
    pub(crate) lang: Option<Lang>,
    pub(crate) stage: i64,
    pub(crate) is_reachable: bool,
    pub(crate) optin_urgent: bool,
    pub(crate) optin_digest: bool,
    pub(crate) optin_broadcast: bool,
    /// Whether a request for help is open.
    pub(crate) help_requested: bool,
    /// When their leader was last written to about it.
    pub(crate) help_told_at: Option<UnixMs>,
    /// When they were last told that they are not understood.
    pub(crate) puzzled_at: Option<UnixMs>,
    pub(crate) last_activity_at: Option<UnixMs>,
}

/// When the event that was marked under this id was emitted.
pub(super) fn find_mark(tx: &Tx<'_>, source: &str, event_id: i64) -> Result<Option<UnixMs>, StoreError> {
    tx.query_opt(
        "SELECT event_created_at FROM bot_processed_events WHERE source = :source AND outbox_event_id = :id",
        named_params! { ":source": source, ":id": event_id },
        |row| row.get("event_created_at"),
    )
}

/// Marks an event as applied; acknowledged too, if its owner learns that by the same commit.
pub(super) fn mark(tx: &Tx<'_>, source: &str, event: &BotEvent, is_acked: bool) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO bot_processed_events (source, outbox_event_id, event_created_at, processed_at, acked_at)
         VALUES (:source, :id, :created_at, :now, :acked_at)",
        named_params! {
            ":source": source,
            ":id": event.id,
            ":created_at": event.created_at,
            ":now": tx.now(),
            ":acked_at": is_acked.then(|| tx.now()),
        },
    )?;
    Ok(())
}

/// Notes that a remote backend has taken the acknowledgement of these events.
pub(super) fn mark_acked(tx: &Tx<'_>, source: &str, ids: &[i64]) -> Result<(), StoreError> {
    for id in ids {
        tx.execute(
            "UPDATE bot_processed_events SET acked_at = :now
             WHERE source = :source AND outbox_event_id = :id AND acked_at IS NULL",
            named_params! { ":now": tx.now(), ":source": source, ":id": id },
        )?;
    }
    Ok(())
}

/// Events that were applied and whose backend has not been heard to take the acknowledgement, the lowest ids first.
pub(super) fn unacked_marks(tx: &Tx<'_>, source: &str, limit: i64) -> Result<Vec<i64>, StoreError> {
    tx.query_all(
        "SELECT outbox_event_id FROM bot_processed_events INDEXED BY bot_processed_events_unacked
         WHERE source = :source AND acked_at IS NULL ORDER BY outbox_event_id LIMIT :limit",
        named_params! { ":source": source, ":limit": limit },
        |row| row.get("outbox_event_id"),
    )
}

/// Deletes up to `batch` acknowledged marks from before `cutoff`; how many.
pub(super) fn delete_marks(tx: &Tx<'_>, cutoff: UnixMs, batch: i64) -> Result<usize, StoreError> {
    tx.execute(
        "DELETE FROM bot_processed_events WHERE (source, outbox_event_id) IN (
           SELECT source, outbox_event_id FROM bot_processed_events INDEXED BY bot_processed_events_age
           WHERE processed_at < :cutoff AND acked_at IS NOT NULL LIMIT :batch)",
        named_params! { ":cutoff": cutoff, ":batch": batch },
    )
}

/// The person of this chat.
pub(crate) fn find_person(tx: &Tx<'_>, telegram_id: i64) -> Result<Option<Person>, StoreError> {
    tx.query_opt(
        "SELECT telegram_id, magnet_uid, leader_uid, structure_uid, username, first_name, lang, stage, reachable,
                optin_urgent, optin_digest, optin_broadcast, help_requested, help_told_at, puzzled_at, last_activity_at
         FROM bot_users WHERE telegram_id = :telegram_id",
        named_params! { ":telegram_id": telegram_id },
        person,
    )
}

/// The person who is this member; the one who came first, should there be several.
pub(crate) fn find_person_of(tx: &Tx<'_>, magnet_uid: i64) -> Result<Option<Person>, StoreError> {
    tx.query_opt(
        "SELECT telegram_id, magnet_uid, leader_uid, structure_uid, username, first_name, lang, stage, reachable,
                optin_urgent, optin_digest, optin_broadcast, help_requested, help_told_at, puzzled_at, last_activity_at
         FROM bot_users WHERE magnet_uid = :magnet_uid ORDER BY created_at, telegram_id LIMIT 1",
        named_params! { ":magnet_uid": magnet_uid },
        person,
    )
}

fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
    let lang: Option<String> = row.get("lang")?;
    let reachable: String = row.get("reachable")?;
    Ok(Person {
        telegram_id: row.get("telegram_id")?,
        magnet_uid: row.get("magnet_uid")?,
        leader_uid: row.get("leader_uid")?,
        structure_uid: row.get("structure_uid")?,
        username: lossy_text(row, "username")?,
        first_name: lossy_text(row, "first_name")?,
        // The schema holds it to be one of ours.
        lang: lang.as_deref().and_then(Lang::parse),
        stage: row.get("stage")?,
        is_reachable: reachable == "ok",
        optin_urgent: row.get("optin_urgent")?,
        optin_digest: row.get("optin_digest")?,
        optin_broadcast: row.get("optin_broadcast")?,
        help_requested: row.get("help_requested")?,
        help_told_at: row.get("help_told_at")?,
        puzzled_at: row.get("puzzled_at")?,
        last_activity_at: row.get("last_activity_at")?,
    })
}

/// Lifts a person to a stage.
pub(super) fn set_stage(tx: &Tx<'_>, telegram_id: i64, stage: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_users SET stage = :stage, stage_since = :now WHERE telegram_id = :telegram_id AND stage < :stage",
        named_params! { ":stage": stage, ":now": tx.now(), ":telegram_id": telegram_id },
    )?;
    Ok(())
}

/// Notes under whom a person registered.
pub(super) fn set_parent(tx: &Tx<'_>, telegram_id: i64, parent_uid: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_users SET magnet_parent_uid = :parent WHERE telegram_id = :telegram_id",
        named_params! { ":parent": parent_uid, ":telegram_id": telegram_id },
    )?;
    Ok(())
}

/// Notes which member a person is.
pub(super) fn set_member(tx: &Tx<'_>, telegram_id: i64, magnet_uid: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_users SET magnet_uid = :uid WHERE telegram_id = :telegram_id",
        named_params! { ":uid": magnet_uid, ":telegram_id": telegram_id },
    )?;
    Ok(())
}

/// Notes that a person cannot be written to, and since when.
pub(super) fn set_unreachable(tx: &Tx<'_>, telegram_id: i64, reason: &str) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_users SET reachable = :reason, reachable_since = :now
         WHERE telegram_id = :telegram_id AND reachable <> :reason",
        named_params! { ":reason": reason, ":now": tx.now(), ":telegram_id": telegram_id },
    )?;
    Ok(())
}

//! Statements that move events: insert, page, lease, close, put off, give up, reopen.

use std::collections::BTreeSet;

use rusqlite::{Row, named_params};

use crate::backend::acknowledge::State;
use crate::backend::emit::NewBotEvent;
use crate::backend::page::Served;
use crate::kernel::clock::UnixMs;
use crate::kernel::contract::{BotEvent, Payload};
use crate::kernel::store::{StoreError, Tx, lossy_text};

/// A failed attempt, counted.
pub(crate) struct Failure<'a> {
    pub(crate) id: i64,
    pub(crate) attempts: i64,
    pub(crate) error: Option<&'a str>,
}

/// Inserts an open event; its id. The subject is written here as the trigger would, which saves its second write.
pub(crate) fn insert(tx: &Tx<'_>, event: &NewBotEvent) -> Result<i64, StoreError> {
    let payload = serde_json::to_string(&event.payload).unwrap_or_else(|_| "{}".to_owned());
    tx.execute(
        "INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, created_at, dedup_key, subject)
         VALUES (:event_type, :telegram_id, :magnet_uid, :payload, :now, :dedup_key,
                 CASE WHEN :magnet_uid IS NOT NULL THEN 'uid:' || :magnet_uid
                      ELSE COALESCE((SELECT 'uid:' || uid FROM members WHERE telegram_id = :telegram_id),
                                    'tg:' || :telegram_id) END)",
        named_params! {
            ":event_type": event.event_type.as_str(),
            ":telegram_id": event.telegram_id,
            ":magnet_uid": event.magnet_uid,
            ":payload": payload,
            ":now": tx.now(),
            ":dedup_key": event.dedup_key,
        },
    )?;
    Ok(tx.last_insert_id())
}

pub(crate) const BY_DEDUP_KEY: &str = "SELECT id FROM bot_event_outbox WHERE dedup_key = :key";

/// The id of the event that was emitted with this key.
pub(crate) fn find_by_dedup_key(tx: &Tx<'_>, key: &str) -> Result<Option<i64>, StoreError> {
    tx.query_opt(BY_DEDUP_KEY, named_params! { ":key": key }, |row| row.get("id"))
}

/// The statement behind a page.
pub(crate) const DUE_PAGE: &str =
    "SELECT e.id, e.event_type, e.telegram_id, e.magnet_uid, e.payload, e.created_at, e.attempts, e.subject,
            COALESCE(e.next_retry_at, 0) AS due_at
     FROM bot_event_lanes AS lane
     CROSS JOIN bot_event_outbox AS e
       ON e.subject = lane.subject AND e.processed_at IS NULL AND e.dead_lettered_at IS NULL
     WHERE lane.due_at <= :now
       -- A lease counts while it runs, and only for the boot that took it.
       AND NOT EXISTS (SELECT 1 FROM bot_event_outbox AS head
                       WHERE head.id = lane.head_id AND head.locked_until > :now AND head.lease_boot = :boot)
     ORDER BY lane.due_at, lane.head_id, e.id
     LIMIT :limit";

/// Events of subjects whose head is due and free, head first.
pub(crate) fn due_page(tx: &Tx<'_>, limit: i64) -> Result<Vec<Served>, StoreError> {
    tx.query_all(DUE_PAGE, named_params! { ":now": tx.now(), ":boot": tx.boot(), ":limit": limit }, served)
}

/// By position, in the order of [`DUE_PAGE`]: looking nine names up for each event was a tenth of a page's time.
fn served(row: &Row<'_>) -> rusqlite::Result<Served> {
    let event = BotEvent {
        id: row.get(0)?,
        event_type: lossy_text(row, 1)?.unwrap_or_default(),
        telegram_id: row.get(2)?,
        magnet_uid: row.get(3)?,
        payload: Payload::None,
        created_at: row.get(5)?,
        attempts: row.get(6)?,
    };
    Ok(Served { subject: row.get(7)?, event, payload: lossy_text(row, 4)?, due_at: row.get(8)? })
}

/// Marks events as held by this boot until then.
pub(crate) fn lease(tx: &Tx<'_>, ids: &[i64], until: UnixMs) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_event_outbox SET claimed_at = :now, locked_until = :until, lease_boot = :boot
         WHERE id IN (SELECT value FROM json_each(:ids))",
        named_params! { ":now": tx.now(), ":until": until, ":boot": tx.boot(), ":ids": json_list(ids) },
    )?;
    Ok(())
}

/// Prolongs what this boot still holds of them.
pub(crate) fn renew_lease(tx: &Tx<'_>, ids: &[i64], until: UnixMs) -> Result<(), StoreError> {
    let mut statement = tx.prepare(
        "UPDATE bot_event_outbox SET locked_until = :until
         WHERE id = :id AND locked_until IS NOT NULL AND lease_boot = :boot",
    )?;
    for id in ids {
        statement.execute(named_params! { ":until": until, ":id": id, ":boot": tx.boot() })?;
    }
    Ok(())
}

/// Lets go of what this boot still holds of them.
pub(crate) fn release_lease(tx: &Tx<'_>, ids: &[i64]) -> Result<(), StoreError> {
    let mut statement = tx.prepare(
        "UPDATE bot_event_outbox SET claimed_at = NULL, locked_until = NULL, lease_boot = NULL
         WHERE id = :id AND locked_until IS NOT NULL AND lease_boot = :boot",
    )?;
    for id in ids {
        statement.execute(named_params! { ":id": id, ":boot": tx.boot() })?;
    }
    Ok(())
}

/// Closes an open event as handled; whether it was open.
pub(crate) fn close_handled(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let closed = tx.execute(
        "UPDATE bot_event_outbox
         SET processed_at = :now, outcome = 'handled', next_retry_at = NULL,
             claimed_at = NULL, locked_until = NULL, lease_boot = NULL
         WHERE id = :id AND processed_at IS NULL AND dead_lettered_at IS NULL",
        named_params! { ":now": tx.now(), ":id": id },
    )?;
    Ok(closed == 1)
}

/// Closes the open ones of these events as handled; which they were. One statement for all: each one of its own would
/// keep a copy of every page it touches, to be able to take itself back.
pub(crate) fn close_all_handled(tx: &Tx<'_>, ids: &BTreeSet<i64>) -> Result<Vec<i64>, StoreError> {
    tx.query_all(
        "UPDATE bot_event_outbox
         SET processed_at = :now, outcome = 'handled', next_retry_at = NULL,
             claimed_at = NULL, locked_until = NULL, lease_boot = NULL
         WHERE id IN (SELECT value FROM json_each(:ids)) AND processed_at IS NULL AND dead_lettered_at IS NULL
         RETURNING id",
        named_params! { ":now": tx.now(), ":ids": json_list(ids) },
        |row| row.get("id"),
    )
}

/// The list for SQLite's `json_each`.
fn json_list<'a>(ids: impl IntoIterator<Item = &'a i64>) -> String {
    let ids: Vec<String> = ids.into_iter().map(i64::to_string).collect();
    format!("[{}]", ids.join(","))
}

/// Whether no earlier event of the same subject is open.
pub(crate) fn is_head(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    tx.query_one(
        // Asked of the events, not of the lane: a lane that went out of step must not hold its subject up for ever.
        "SELECT EXISTS (
           SELECT 1 FROM bot_event_outbox AS e
           WHERE e.id = :id AND e.processed_at IS NULL AND e.dead_lettered_at IS NULL
             AND NOT EXISTS (
               SELECT 1 FROM bot_event_outbox AS earlier INDEXED BY bot_event_outbox_open
               WHERE earlier.subject = e.subject AND earlier.id < e.id
                 AND earlier.processed_at IS NULL AND earlier.dead_lettered_at IS NULL)) AS is_head",
        named_params! { ":id": id },
        |row| row.get("is_head"),
    )
}

/// Where an event stands.
pub(crate) fn find_state(tx: &Tx<'_>, id: i64) -> Result<Option<State>, StoreError> {
    tx.query_opt(
        "SELECT event_type, attempts, next_retry_at, outcome, dead_lettered_at FROM bot_event_outbox WHERE id = :id",
        named_params! { ":id": id },
        |row| {
            let outcome: Option<String> = row.get("outcome")?;
            let dead: Option<UnixMs> = row.get("dead_lettered_at")?;
            Ok(match (outcome.as_deref(), dead) {
                (Some("handled"), _) => State::Handled,
                (Some(_), _) => State::Abandoned,
                (None, Some(_)) => State::Dead,
                (None, None) => State::Open {
                    attempts: row.get("attempts")?,
                    next_retry_at: row.get("next_retry_at")?,
                    event_type: lossy_text(row, "event_type")?.unwrap_or_default(),
                },
            })
        },
    )
}

/// Counts a failure; the event waits until then.
pub(crate) fn put_off(tx: &Tx<'_>, failure: &Failure<'_>, until: UnixMs) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_event_outbox
         SET attempts = :attempts, last_attempt_at = :now, last_error = :error, next_retry_at = :until,
             claimed_at = NULL, locked_until = NULL, lease_boot = NULL
         WHERE id = :id",
        named_params! {
            ":attempts": failure.attempts, ":now": tx.now(), ":error": failure.error, ":until": until,
            ":id": failure.id,
        },
    )?;
    Ok(())
}

/// Closes an event that failed too often, so that its subject goes on.
pub(crate) fn abandon(tx: &Tx<'_>, failure: &Failure<'_>) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_event_outbox
         SET attempts = :attempts, last_attempt_at = :now, last_error = :error, next_retry_at = NULL,
             claimed_at = NULL, locked_until = NULL, lease_boot = NULL, processed_at = :now, outcome = 'abandoned'
         WHERE id = :id",
        named_params! { ":attempts": failure.attempts, ":now": tx.now(), ":error": failure.error, ":id": failure.id },
    )?;
    Ok(())
}

/// Sets an event that must not be dropped aside for a person.
pub(crate) fn dead_letter(tx: &Tx<'_>, failure: &Failure<'_>) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_event_outbox
         SET attempts = :attempts, last_attempt_at = :now, last_error = :error, next_retry_at = NULL,
             claimed_at = NULL, locked_until = NULL, lease_boot = NULL, dead_lettered_at = :now
         WHERE id = :id",
        named_params! { ":attempts": failure.attempts, ":now": tx.now(), ":error": failure.error, ":id": failure.id },
    )?;
    Ok(())
}

/// Opens a given-up event again, as if it had never failed; the binding may have changed meanwhile.
pub(crate) fn reopen(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE bot_event_outbox
         SET attempts = 0, next_retry_at = NULL, processed_at = NULL, outcome = NULL, dead_lettered_at = NULL,
             subject = CASE WHEN magnet_uid IS NOT NULL THEN 'uid:' || magnet_uid
                            ELSE COALESCE((SELECT 'uid:' || uid FROM members
                                           WHERE members.telegram_id = bot_event_outbox.telegram_id),
                                          'tg:' || telegram_id) END
         WHERE id = :id",
        named_params! { ":id": id },
    )?;
    Ok(())
}

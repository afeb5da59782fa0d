//! Statements that only look: lists by state, one row, counts and ages.

use rusqlite::{Row, named_params};

use crate::backend::inspect::{COUNT_CAP, EventRow, Filter, Shown, Waiting};
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{StoreError, Tx, lossy_text};

/// The list's statement over the rows that `$which` names: every list has the same columns, filters and order.
macro_rules! listed {
    ($which:literal) => {
        concat!(
            "SELECT id, event_type, subject, telegram_id, magnet_uid, payload, attempts, last_error, created_at,
                    last_attempt_at, next_retry_at, processed_at, outcome, dead_lettered_at, locked_until, dedup_key
             FROM bot_event_outbox ",
            $which,
            " AND id > :after
              AND (:event_type IS NULL OR event_type = :event_type)
              AND (:subject IS NULL OR subject = :subject)
             ORDER BY id LIMIT :limit"
        )
    };
}

const ALL: &str = listed!("WHERE TRUE");
pub(super) const OPEN: &str =
    listed!("INDEXED BY bot_event_outbox_waiting WHERE processed_at IS NULL AND dead_lettered_at IS NULL");
const PROCESSED: &str = listed!("WHERE outcome = 'handled'");
pub(super) const ABANDONED: &str = listed!("INDEXED BY bot_event_outbox_abandoned WHERE outcome = 'abandoned'");
pub(super) const DEAD: &str = listed!("INDEXED BY bot_event_outbox_dead WHERE dead_lettered_at IS NOT NULL");

/// Events of one state, upward by id.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<EventRow>, StoreError> {
    let statement = match filter.shown {
        Shown::All => ALL,
        Shown::Open => OPEN,
        Shown::Processed => PROCESSED,
        Shown::Abandoned => ABANDONED,
        Shown::Dead => DEAD,
    };
    let params = named_params! {
        ":after": filter.after,
        ":event_type": filter.event_type,
        ":subject": filter.subject,
        ":limit": filter.limit,
    };
    tx.query_all(statement, params, event_row)
}

/// The newest event's id, or 0.
pub(crate) fn newest_event(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one("SELECT COALESCE(MAX(id), 0) AS id FROM bot_event_outbox", [], |row| row.get("id"))
}

/// One event, whole.
pub(crate) fn find_row(tx: &Tx<'_>, id: i64) -> Result<Option<EventRow>, StoreError> {
    let only = Filter { shown: Shown::All, event_type: None, subject: None, after: id - 1, limit: 1 };
    Ok(list(tx, &only)?.into_iter().find(|row| row.id == id))
}

/// A payload as it is shown; one that cannot be taken apart, as the text that is stored.
fn shown(payload: String) -> serde_json::Value {
    serde_json::from_str(&payload).unwrap_or(serde_json::Value::String(payload))
}

fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let time = |column: &str| row.get::<_, Option<UnixMs>>(column).map(|at| at.map(rfc3339));
    let payload = lossy_text(row, "payload")?;
    let outcome: Option<String> = row.get("outcome")?;
    let dead_lettered_at = time("dead_lettered_at")?;
    let state = match (outcome.as_deref(), &dead_lettered_at) {
        (Some("handled"), _) => "processed",
        (Some(_), _) => "abandoned",
        (None, Some(_)) => "dead",
        (None, None) => "open",
    };
    Ok(EventRow {
        id: row.get("id")?,
        event_type: lossy_text(row, "event_type")?.unwrap_or_default(),
        state: state.to_owned(),
        subject: lossy_text(row, "subject")?,
        telegram_id: row.get::<_, Option<i64>>("telegram_id")?.map(|id| id.to_string()),
        magnet_uid: row.get("magnet_uid")?,
        payload: payload.map(shown),
        attempts: row.get("attempts")?,
        last_error: lossy_text(row, "last_error")?,
        created_at: rfc3339(row.get("created_at")?),
        last_attempt_at: time("last_attempt_at")?,
        next_retry_at: time("next_retry_at")?,
        processed_at: time("processed_at")?,
        dead_lettered_at,
        locked_until: time("locked_until")?,
        dedup_key: lossy_text(row, "dedup_key")?,
    })
}

/// Open events, counted up to the cap.
pub(crate) fn count_open(tx: &Tx<'_>) -> Result<i64, StoreError> {
    count(
        tx,
        "SELECT count(*) AS n FROM (SELECT 1 FROM bot_event_outbox INDEXED BY bot_event_outbox_waiting
                                    WHERE processed_at IS NULL AND dead_lettered_at IS NULL LIMIT :cap)",
    )
}

/// Abandoned events, counted up to the cap.
pub(crate) fn count_abandoned(tx: &Tx<'_>) -> Result<i64, StoreError> {
    count(tx, "SELECT count(*) AS n FROM (SELECT 1 FROM bot_event_outbox WHERE outcome = 'abandoned' LIMIT :cap)")
}

/// Dead events, counted up to the cap.
pub(crate) fn count_dead(tx: &Tx<'_>) -> Result<i64, StoreError> {
    count(
        tx,
        "SELECT count(*) AS n FROM (SELECT 1 FROM bot_event_outbox WHERE dead_lettered_at IS NOT NULL LIMIT :cap)",
    )
}

fn count(tx: &Tx<'_>, statement: &str) -> Result<i64, StoreError> {
    tx.query_one(statement, named_params! { ":cap": COUNT_CAP }, |row| row.get("n"))
}

pub(super) const COUNT_WAITING: &str =
    "SELECT count(*) AS n FROM (SELECT 1 FROM bot_event_lanes WHERE due_at > :now LIMIT :cap)";

/// Subjects whose head waits, counted up to the cap.
pub(crate) fn count_waiting(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one(COUNT_WAITING, named_params! { ":now": tx.now(), ":cap": COUNT_CAP }, |row| row.get("n"))
}

pub(super) const OLDEST_OPEN: &str = "SELECT created_at FROM bot_event_outbox INDEXED BY bot_event_outbox_waiting
     WHERE processed_at IS NULL AND dead_lettered_at IS NULL ORDER BY id LIMIT 1";

/// When the oldest open event was emitted.
pub(crate) fn oldest_open(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    tx.query_opt(OLDEST_OPEN, [], |row| row.get("created_at"))
}

/// The subjects that wait longest.
pub(crate) fn waiting(tx: &Tx<'_>) -> Result<Vec<Waiting>, StoreError> {
    tx.query_all(
        "SELECT lane.subject, lane.head_id, lane.due_at, head.event_type, head.attempts, head.last_error
         FROM bot_event_lanes AS lane
         JOIN bot_event_outbox AS head ON head.id = lane.head_id
         WHERE lane.due_at > :now
         ORDER BY lane.due_at DESC
         LIMIT 20",
        named_params! { ":now": tx.now() },
        |row| {
            Ok(Waiting {
                subject: row.get("subject")?,
                head_id: row.get("head_id")?,
                event_type: lossy_text(row, "event_type")?.unwrap_or_default(),
                attempts: row.get("attempts")?,
                next_retry_at: rfc3339(row.get("due_at")?),
                last_error: lossy_text(row, "last_error")?,
            })
        },
    )
}

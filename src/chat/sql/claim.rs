//! Statements of claiming: what may go, and what is in flight.

use rusqlite::{Row, named_params};

use crate::chat::kind::{Kind, Lane};
use crate::chat::message::Format;
use crate::chat::outcome::FailureCode;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The oldest open message of a lane of a chat, if it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: i64,
    pub(crate) chat_id: i64,
    pub(crate) due_at: UnixMs,
}

/// A message as its claim needs it. `attempts` does not count the claim that is being made.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: i64,
    pub(crate) chat_id: i64,
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) format: Format,
    pub(crate) keyboard: Option<String>,
    pub(crate) edit: Option<i64>,
    pub(crate) attempts: i64,
    pub(crate) unknown_count: i64,
    pub(crate) waiting_since: UnixMs,
    pub(crate) dedup_key: String,
}

impl Waiting {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            chat_id: row.get("chat_id")?,
            kind: row.get("kind")?,
            text: row.get("text")?,
            format: row.get("format")?,
            keyboard: row.get("keyboard")?,
            edit: row.get("edit_message_id")?,
            attempts: row.get("attempts")?,
            unknown_count: row.get("unknown_count")?,
            waiting_since: row.get("waiting_since")?,
            dedup_key: row.get("dedup_key")?,
        })
    }
}

/// The statement behind [`due_heads`]; a test looks at its plan.
pub(crate) const DUE_HEADS: &str = "
    SELECT head_id, chat_id, due_at FROM telegram_chat_lanes
    WHERE lane = :lane AND due_at <= :now AND (due_at, head_id) > (:after_due, :after_id)
    ORDER BY due_at, head_id
    LIMIT :limit";

/// The heads of a lane that are due, the longest waiting first, behind `after`.
pub(crate) fn due_heads(tx: &Tx<'_>, lane: Lane, after: Option<Head>, limit: usize) -> Result<Vec<Head>, StoreError> {
    let (after_due, after_id) = after.map_or((i64::MIN, i64::MIN), |head| (head.due_at, head.id));
    let params = named_params! {
        ":lane": lane, ":now": tx.now(), ":after_due": after_due, ":after_id": after_id,
        ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
    };
    tx.query_all(DUE_HEADS, params, |row| {
        Ok(Head { id: row.get("head_id")?, chat_id: row.get("chat_id")?, due_at: row.get("due_at")? })
    })
}

/// When the next head of a lane becomes due that is not due yet.
pub(crate) fn next_due(tx: &Tx<'_>, lane: Lane) -> Result<Option<UnixMs>, StoreError> {
    let sql = "SELECT MIN(due_at) AS due_at FROM telegram_chat_lanes WHERE lane = :lane AND due_at > :now";
    tx.query_one(sql, named_params! { ":lane": lane, ":now": tx.now() }, |row| row.get("due_at"))
}

/// Since when the longest waiting head of a lane has been due.
pub(crate) fn oldest_due(tx: &Tx<'_>, lane: Lane) -> Result<Option<UnixMs>, StoreError> {
    let sql = "SELECT MIN(due_at) AS due_at FROM telegram_chat_lanes WHERE lane = :lane AND due_at <= :now";
    tx.query_one(sql, named_params! { ":lane": lane, ":now": tx.now() }, |row| row.get("due_at"))
}

/// The message if it waits, is due, and is the head of its lane.
pub(crate) fn find_claimable(tx: &Tx<'_>, id: i64) -> Result<Option<Waiting>, StoreError> {
    let sql = "
        SELECT m.id, m.chat_id, m.kind, m.text, m.format, m.keyboard, m.edit_message_id, m.attempts, m.unknown_count,
               m.waiting_since, m.dedup_key
        FROM telegram_messages AS m
        JOIN telegram_chat_lanes AS l ON l.chat_id = m.chat_id AND l.lane = m.lane AND l.head_id = m.id
        WHERE m.id = :id AND m.status = 'pending' AND m.due_at <= :now";
    tx.query_opt(sql, named_params! { ":id": id, ":now": tx.now() }, Waiting::from_row)
}

/// A waiting message is now being sent.
pub(crate) fn mark_sending(tx: &Tx<'_>, id: i64, locked_until: UnixMs) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'sending', attempts = attempts + 1, locked_until = :locked_until, lease_boot = :boot
        WHERE id = :id AND status = 'pending'";
    tx.execute(sql, named_params! { ":id": id, ":locked_until": locked_until, ":boot": tx.boot() })
}

/// A waiting message may not go before `due_at`. That is no attempt, and takes nothing from how long it may be tried.
pub(crate) fn put_off(tx: &Tx<'_>, id: i64, due_at: UnixMs) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages SET due_at = :due_at, waiting_since = MAX(waiting_since, :due_at)
        WHERE id = :id AND status = 'pending'";
    tx.execute(sql, named_params! { ":id": id, ":due_at": due_at })
}

/// A waiting message is closed without an attempt.
pub(crate) fn close_waiting(tx: &Tx<'_>, id: i64, status: &str, code: FailureCode) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages SET status = :status, error_code = :code, finished_at = :now
        WHERE id = :id AND status = 'pending'";
    tx.execute(sql, named_params! { ":id": id, ":status": status, ":code": code, ":now": tx.now() })
}

/// Messages in flight whose lease is void: of another start of the process, or run out. With the attempt's number.
pub(crate) fn void_sends(tx: &Tx<'_>) -> Result<Vec<Waiting>, StoreError> {
    let sql = "
        SELECT id, chat_id, kind, text, format, keyboard, edit_message_id, attempts, unknown_count, waiting_since,
               dedup_key
        FROM telegram_messages INDEXED BY telegram_messages_sending
        WHERE status = 'sending' AND (lease_boot <> :boot OR locked_until <= :now)
        ORDER BY id";
    tx.query_all(sql, named_params! { ":boot": tx.boot(), ":now": tx.now() }, Waiting::from_row)
}

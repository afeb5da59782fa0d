//! The statements of the send queue; each is named by what it means.
//!
//! The lanes' heads (`telegram_chat_lanes`) are kept by triggers and only read here.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, named_params};

use super::Error;
use super::kind::{Kind, Lane};
use super::limiter::Pause;
use super::listing::{Filter, Listed, Status};
use super::message::{Format, NewMessage};
use super::outcome::FailureCode;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The oldest open message of a lane of a chat, if it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: i64,
    pub(super) chat_id: i64,
    pub(super) due_at: UnixMs,
}

/// A message as its claim needs it. `attempts` does not count the claim that is being made.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: i64,
    pub(super) chat_id: i64,
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) format: Format,
    pub(super) keyboard: Option<String>,
    pub(super) attempts: i64,
    pub(super) unknown_count: i64,
    pub(super) waiting_since: UnixMs,
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
            attempts: row.get("attempts")?,
            unknown_count: row.get("unknown_count")?,
            waiting_since: row.get("waiting_since")?,
        })
    }
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::parse(value.as_str()?).map_err(unreadable)
    }
}

impl FromSql for Format {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::parse(value.as_str()?).map_err(unreadable)
    }
}

fn unreadable(error: Error) -> FromSqlError {
    FromSqlError::Other(Box::new(error))
}

impl ToSql for Kind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_str()))
    }
}

impl ToSql for Lane {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_str()))
    }
}

impl ToSql for Format {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_str()))
    }
}

impl ToSql for FailureCode {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.to_string()))
    }
}

/// Queues the message unless one with its key is there; its id if it is new.
pub(super) fn insert_once(tx: &Tx<'_>, new: &NewMessage, json: &NewJson) -> Result<Option<i64>, StoreError> {
    let due_at = new.due_at.unwrap_or_else(|| tx.now());
    // Not OR IGNORE: that would also swallow a row that breaks a CHECK, and reach into the trigger.
    let sql = "
        INSERT INTO telegram_messages
            (chat_id, kind, lane, text, format, keyboard, fallback, dedup_key, due_at, waiting_since, created_at)
        VALUES
            (:chat_id, :kind, :lane, :text, :format, :keyboard, :fallback, :dedup_key, :due_at, MAX(:due_at, :now), :now)
        ON CONFLICT (dedup_key) DO NOTHING
        RETURNING id";
    tx.query_opt(
        sql,
        named_params! {
            ":chat_id": new.chat_id,
            ":kind": new.kind,
            ":lane": new.kind.lane(),
            ":text": new.text,
            ":format": new.format,
            ":keyboard": json.keyboard,
            ":fallback": json.fallback,
            ":dedup_key": new.dedup_key,
            ":due_at": due_at,
            ":now": tx.now(),
        },
        |row| row.get("id"),
    )
}

/// The JSON columns of a new message.
pub(super) struct NewJson {
    pub(super) keyboard: Option<String>,
    pub(super) fallback: Option<String>,
}

/// The message with that key.
pub(super) fn load_id_by_key(tx: &Tx<'_>, dedup_key: &str) -> Result<i64, StoreError> {
    let sql = "SELECT id FROM telegram_messages WHERE dedup_key = :dedup_key";
    tx.query_one(sql, named_params! { ":dedup_key": dedup_key }, |row| row.get("id"))
}

/// The statement behind [`due_heads`]; a test looks at its plan.
pub(super) const DUE_HEADS: &str = "
    SELECT head_id, chat_id, due_at FROM telegram_chat_lanes
    WHERE lane = :lane AND due_at <= :now AND (due_at, head_id) > (:after_due, :after_id)
    ORDER BY due_at, head_id
    LIMIT :limit";

/// The heads of a lane that are due, the longest waiting first, behind `after`.
pub(super) fn due_heads(tx: &Tx<'_>, lane: Lane, after: Option<Head>, limit: usize) -> Result<Vec<Head>, StoreError> {
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
pub(super) fn next_due(tx: &Tx<'_>, lane: Lane) -> Result<Option<UnixMs>, StoreError> {
    let sql = "SELECT MIN(due_at) AS due_at FROM telegram_chat_lanes WHERE lane = :lane AND due_at > :now";
    tx.query_one(sql, named_params! { ":lane": lane, ":now": tx.now() }, |row| row.get("due_at"))
}

/// Since when the longest waiting head of a lane has been due.
pub(super) fn oldest_due(tx: &Tx<'_>, lane: Lane) -> Result<Option<UnixMs>, StoreError> {
    let sql = "SELECT MIN(due_at) AS due_at FROM telegram_chat_lanes WHERE lane = :lane AND due_at <= :now";
    tx.query_one(sql, named_params! { ":lane": lane, ":now": tx.now() }, |row| row.get("due_at"))
}

/// The message if it waits, is due, and is the head of its lane.
pub(super) fn find_claimable(tx: &Tx<'_>, id: i64) -> Result<Option<Waiting>, StoreError> {
    let sql = "
        SELECT m.id, m.chat_id, m.kind, m.text, m.format, m.keyboard, m.attempts, m.unknown_count, m.waiting_since
        FROM telegram_messages AS m
        JOIN telegram_chat_lanes AS l ON l.chat_id = m.chat_id AND l.lane = m.lane AND l.head_id = m.id
        WHERE m.id = :id AND m.status = 'pending' AND m.due_at <= :now";
    tx.query_opt(sql, named_params! { ":id": id, ":now": tx.now() }, Waiting::from_row)
}

/// A waiting message is now being sent.
pub(super) fn mark_sending(tx: &Tx<'_>, id: i64, locked_until: UnixMs) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'sending', attempts = attempts + 1, locked_until = :locked_until, lease_boot = :boot
        WHERE id = :id AND status = 'pending'";
    tx.execute(sql, named_params! { ":id": id, ":locked_until": locked_until, ":boot": tx.boot() })
}

/// A waiting message is closed without an attempt.
pub(super) fn close_waiting(tx: &Tx<'_>, id: i64, status: &str, code: FailureCode) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages SET status = :status, error_code = :code, finished_at = :now
        WHERE id = :id AND status = 'pending'";
    tx.execute(sql, named_params! { ":id": id, ":status": status, ":code": code, ":now": tx.now() })
}

/// The claim that a settling statement belongs to: no other attempt is touched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    pub(super) id: i64,
    pub(super) attempts: i64,
}

/// The claimed message arrived.
pub(super) fn mark_sent(tx: &Tx<'_>, fence: Fence, message_id: Option<i64>) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'sent', telegram_message_id = :message_id, error_code = NULL, finished_at = :now,
            locked_until = NULL, lease_boot = NULL
        WHERE id = :id AND status = 'sending' AND attempts = :attempts";
    let params = named_params! {
        ":id": fence.id, ":attempts": fence.attempts, ":message_id": message_id, ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// The claimed message waits for another attempt.
pub(super) fn mark_again(
    tx: &Tx<'_>,
    fence: Fence,
    due_at: UnixMs,
    code: FailureCode,
    doubts: i64,
) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'pending', due_at = :due_at, error_code = :code, unknown_count = unknown_count + :doubts,
            locked_until = NULL, lease_boot = NULL
        WHERE id = :id AND status = 'sending' AND attempts = :attempts";
    let params = named_params! {
        ":id": fence.id, ":attempts": fence.attempts, ":due_at": due_at, ":code": code, ":doubts": doubts,
    };
    tx.execute(sql, params)
}

/// The claimed message is given up.
pub(super) fn close_claimed(
    tx: &Tx<'_>,
    fence: Fence,
    status: &str,
    code: FailureCode,
    doubts: i64,
) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = :status, error_code = :code, unknown_count = unknown_count + :doubts, finished_at = :now,
            locked_until = NULL, lease_boot = NULL
        WHERE id = :id AND status = 'sending' AND attempts = :attempts";
    let params = named_params! {
        ":id": fence.id, ":attempts": fence.attempts, ":status": status, ":code": code, ":doubts": doubts, ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// The message goes as this plain text from now on.
pub(super) fn set_plain_text(tx: &Tx<'_>, id: i64, text: &str) -> Result<usize, StoreError> {
    let sql = "UPDATE telegram_messages SET text = :text, format = 'plain' WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":text": text })
}

/// The statement behind [`move_chat`]; a test looks at its plan. The IN repeats the index's own condition, without
/// which SQLite cannot use it; without INDEXED BY it would walk over everything that waits.
pub(super) const MOVE_CHAT: &str = "
    UPDATE telegram_messages INDEXED BY telegram_messages_open SET chat_id = :to
    WHERE chat_id = :from AND status IN ('pending', 'sending') AND status = 'pending'";

/// Whatever waits for a chat goes to the chat it became.
pub(super) fn move_chat(tx: &Tx<'_>, from: i64, to: i64) -> Result<usize, StoreError> {
    tx.execute(MOVE_CHAT, named_params! { ":from": from, ":to": to })
}

/// The message's fallback, if it has one that has not run; from now on it has.
pub(super) fn take_fallback(tx: &Tx<'_>, id: i64) -> Result<Option<String>, StoreError> {
    let sql = "
        UPDATE telegram_messages SET fell_back_at = :now
        WHERE id = :id AND fallback IS NOT NULL AND fell_back_at IS NULL
        RETURNING fallback";
    tx.query_opt(sql, named_params! { ":id": id, ":now": tx.now() }, |row| row.get("fallback"))
}

/// Messages in flight whose lease is void: of another start of the process, or run out. With the attempt's number.
pub(super) fn void_sends(tx: &Tx<'_>) -> Result<Vec<Waiting>, StoreError> {
    let sql = "
        SELECT id, chat_id, kind, text, format, keyboard, attempts, unknown_count, waiting_since
        FROM telegram_messages INDEXED BY telegram_messages_sending
        WHERE status = 'sending' AND (lease_boot <> :boot OR locked_until <= :now)
        ORDER BY id";
    tx.query_all(sql, named_params! { ":boot": tx.boot(), ":now": tx.now() }, Waiting::from_row)
}

/// The pauses that have not ended.
pub(super) fn pauses(tx: &Tx<'_>) -> Result<Vec<Pause>, StoreError> {
    let sql = "SELECT chat_id, paused_until FROM telegram_pauses WHERE paused_until > :now";
    tx.query_all(sql, named_params! { ":now": tx.now() }, |row| {
        Ok(Pause { chat_id: row.get("chat_id")?, until: row.get("paused_until")? })
    })
}

/// Keeps a pause; one that lasts longer already is left as it is.
pub(super) fn keep_pause(tx: &Tx<'_>, pause: Pause) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO telegram_pauses (chat_id, paused_until) VALUES (:chat_id, :until)
        ON CONFLICT (chat_id) DO UPDATE SET paused_until = MAX(paused_until, excluded.paused_until)";
    tx.execute(sql, named_params! { ":chat_id": pause.chat_id, ":until": pause.until })
}

/// Forgets the pauses that have ended.
pub(super) fn drop_ended_pauses(tx: &Tx<'_>) -> Result<usize, StoreError> {
    let sql = "DELETE FROM telegram_pauses WHERE paused_until <= :now";
    tx.execute(sql, named_params! { ":now": tx.now() })
}

impl Listed {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            chat_id: row.get("chat_id")?,
            kind: row.get("kind")?,
            status: row.get("status")?,
            attempts: row.get("attempts")?,
            unknown_count: row.get("unknown_count")?,
            retried_by_hand: row.get("retried_by_hand")?,
            due_at: row.get("due_at")?,
            error_code: row.get("error_code")?,
            dedup_key: row.get("dedup_key")?,
            created_at: row.get("created_at")?,
            finished_at: row.get("finished_at")?,
        })
    }
}

/// A page of messages of one status.
pub(super) fn list_with_status(tx: &Tx<'_>, status: Status, page: &Filter) -> Result<Vec<Listed>, StoreError> {
    let sql = "
        SELECT id, chat_id, kind, status, attempts, unknown_count, retried_by_hand, due_at, error_code, dedup_key,
               created_at, finished_at
        FROM telegram_messages
        WHERE status = :status AND id > :after
          AND (:chat_id IS NULL OR chat_id = :chat_id) AND (:kind IS NULL OR kind = :kind)
        ORDER BY id
        LIMIT :limit";
    let params = named_params! {
        ":status": status.as_str(), ":after": page.after, ":chat_id": page.chat_id, ":kind": page.kind,
        ":limit": page.limit,
    };
    tx.query_all(sql, params, Listed::from_row)
}

/// A page of messages of every status.
pub(super) fn list_all(tx: &Tx<'_>, page: &Filter) -> Result<Vec<Listed>, StoreError> {
    let sql = "
        SELECT id, chat_id, kind, status, attempts, unknown_count, retried_by_hand, due_at, error_code, dedup_key,
               created_at, finished_at
        FROM telegram_messages
        WHERE id > :after
          AND (:chat_id IS NULL OR chat_id = :chat_id) AND (:kind IS NULL OR kind = :kind)
        ORDER BY id
        LIMIT :limit";
    let params = named_params! {
        ":after": page.after, ":chat_id": page.chat_id, ":kind": page.kind, ":limit": page.limit,
    };
    tx.query_all(sql, params, Listed::from_row)
}

/// The newest message's id, or 0.
pub(super) fn newest(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one("SELECT COALESCE(MAX(id), 0) AS id FROM telegram_messages", [], |row| row.get("id"))
}

/// A closed message that did not certainly arrive waits again.
pub(super) fn reopen(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'pending', due_at = :now, waiting_since = :now, error_code = NULL, finished_at = NULL,
            retried_by_hand = retried_by_hand + 1
        WHERE id = :id AND status IN ('undeliverable', 'unknown', 'cancelled', 'skipped')";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

/// Whether there is such a message.
pub(super) fn is_known(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM telegram_messages WHERE id = :id";
    Ok(tx.query_opt(sql, named_params! { ":id": id }, |_| Ok(()))?.is_some())
}

/// How many messages have this status, counted no further than `cap`.
pub(super) fn count_up_to(tx: &Tx<'_>, status: Status, cap: i64) -> Result<i64, StoreError> {
    let sql = "
        SELECT COUNT(*) AS n FROM (SELECT 1 FROM telegram_messages WHERE status = :status LIMIT :cap)";
    tx.query_one(sql, named_params! { ":status": status.as_str(), ":cap": cap }, |row| row.get("n"))
}

/// Deletes up to `limit` messages that were closed before `cutoff`, the oldest first; how many.
pub(super) fn delete_finished(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM telegram_messages WHERE id IN (
            SELECT id FROM telegram_messages INDEXED BY telegram_messages_finished_at
            WHERE finished_at < :cutoff ORDER BY finished_at LIMIT :limit)";
    tx.execute(sql, named_params! { ":cutoff": cutoff, ":limit": limit })
}

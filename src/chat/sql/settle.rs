//! Statements of settling: what became of an attempt, and the pauses that it caused.

use rusqlite::named_params;

use crate::chat::limiter::Pause;
use crate::chat::outcome::FailureCode;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The claim that a settling statement belongs to: no other attempt is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence {
    pub(crate) id: i64,
    pub(crate) attempts: i64,
}

/// The claimed message arrived.
pub(crate) fn mark_sent(tx: &Tx<'_>, fence: Fence, message_id: Option<i64>) -> Result<usize, StoreError> {
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
pub(crate) fn mark_again(
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
pub(crate) fn close_claimed(
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
pub(crate) fn set_plain_text(tx: &Tx<'_>, id: i64, text: &str) -> Result<usize, StoreError> {
    let sql = "UPDATE telegram_messages SET text = :text, format = 'plain' WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":text": text })
}

/// The message to be changed is not there any more: it goes as a new one from now on.
pub(crate) fn set_anew(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE telegram_messages SET edit_message_id = NULL WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id })
}

/// The statement behind [`move_chat`]; a test looks at its plan. The IN repeats the index's own condition, without
/// which SQLite cannot use it; without INDEXED BY it would walk over everything that waits.
pub(crate) const MOVE_CHAT: &str = "
    UPDATE telegram_messages INDEXED BY telegram_messages_open SET chat_id = :to
    WHERE chat_id = :from AND status IN ('pending', 'sending') AND status = 'pending'";

/// Whatever waits for a chat goes to the chat it became.
pub(crate) fn move_chat(tx: &Tx<'_>, from: i64, to: i64) -> Result<usize, StoreError> {
    tx.execute(MOVE_CHAT, named_params! { ":from": from, ":to": to })
}

/// The message's fallback, if it has one that has not run; from now on it has.
pub(crate) fn take_fallback(tx: &Tx<'_>, id: i64) -> Result<Option<String>, StoreError> {
    let sql = "
        UPDATE telegram_messages SET fell_back_at = :now
        WHERE id = :id AND fallback IS NOT NULL AND fell_back_at IS NULL
        RETURNING fallback";
    tx.query_opt(sql, named_params! { ":id": id, ":now": tx.now() }, |row| row.get("fallback"))
}

/// Bulk messages of which nothing can have arrived are no more; the ids of those that were.
pub(crate) fn delete_waiting(tx: &Tx<'_>, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
    let sql = "
        DELETE FROM telegram_messages
        WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'pending' AND lane = 'bulk' AND unknown_count = 0
        RETURNING id";
    let ids = serde_json::Value::from(ids).to_string();
    tx.query_all(sql, named_params! { ":ids": ids }, |row| row.get("id"))
}

/// The pauses that have not ended.
pub(crate) fn pauses(tx: &Tx<'_>) -> Result<Vec<Pause>, StoreError> {
    let sql = "SELECT chat_id, paused_until FROM telegram_pauses WHERE paused_until > :now";
    tx.query_all(sql, named_params! { ":now": tx.now() }, |row| {
        Ok(Pause { chat_id: row.get("chat_id")?, until: row.get("paused_until")? })
    })
}

/// Keeps a pause; one that lasts longer already is left as it is.
pub(crate) fn keep_pause(tx: &Tx<'_>, pause: Pause) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO telegram_pauses (chat_id, paused_until) VALUES (:chat_id, :until)
        ON CONFLICT (chat_id) DO UPDATE SET paused_until = MAX(paused_until, excluded.paused_until)";
    tx.execute(sql, named_params! { ":chat_id": pause.chat_id, ":until": pause.until })
}

/// Forgets the pauses that have ended.
pub(crate) fn drop_ended_pauses(tx: &Tx<'_>) -> Result<usize, StoreError> {
    let sql = "DELETE FROM telegram_pauses WHERE paused_until <= :now";
    tx.execute(sql, named_params! { ":now": tx.now() })
}

//! Statements for whoever looks at the queue, takes something up again, or deletes what ended long ago.

use rusqlite::{Row, named_params};

use crate::chat::listing::{Filter, Listed, Status};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

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
pub(crate) fn list_with_status(tx: &Tx<'_>, status: Status, page: &Filter) -> Result<Vec<Listed>, StoreError> {
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
pub(crate) fn list_all(tx: &Tx<'_>, page: &Filter) -> Result<Vec<Listed>, StoreError> {
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
pub(crate) fn newest(tx: &Tx<'_>) -> Result<i64, StoreError> {
    tx.query_one("SELECT COALESCE(MAX(id), 0) AS id FROM telegram_messages", [], |row| row.get("id"))
}

/// A closed message that did not certainly arrive waits again.
pub(crate) fn reopen(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_messages
        SET status = 'pending', due_at = :now, waiting_since = :now, error_code = NULL, finished_at = NULL,
            retried_by_hand = retried_by_hand + 1
        WHERE id = :id AND status IN ('undeliverable', 'unknown', 'cancelled', 'skipped')";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

/// Whether there is such a message.
pub(crate) fn is_known(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM telegram_messages WHERE id = :id";
    Ok(tx.query_opt(sql, named_params! { ":id": id }, |_| Ok(()))?.is_some())
}

/// How many messages have this status, counted no further than `cap`.
pub(crate) fn count_up_to(tx: &Tx<'_>, status: Status, cap: i64) -> Result<i64, StoreError> {
    let sql = "
        SELECT COUNT(*) AS n FROM (SELECT 1 FROM telegram_messages WHERE status = :status LIMIT :cap)";
    tx.query_one(sql, named_params! { ":status": status.as_str(), ":cap": cap }, |row| row.get("n"))
}

/// Deletes up to `limit` messages that were closed before `cutoff`, the oldest first; how many.
pub(crate) fn delete_finished(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM telegram_messages WHERE id IN (
            SELECT id FROM telegram_messages INDEXED BY telegram_messages_finished_at
            WHERE finished_at < :cutoff ORDER BY finished_at LIMIT :limit)";
    tx.execute(sql, named_params! { ":cutoff": cutoff, ":limit": limit })
}

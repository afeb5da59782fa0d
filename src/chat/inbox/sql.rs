//! The statements of the inbox; each is named by what it means.
//!
//! The chats' heads (`telegram_update_lanes`) are kept by triggers and only read here.

use rusqlite::{Row, named_params};

use super::handling::{Due, Failed, Waiting};
use super::intake::{Intake, Received};
use super::listing::{Filter, Listed};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Stores an update unless its number is known.
pub(super) fn insert_once(tx: &Tx<'_>, bot_id: i64, received: &Received) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO telegram_updates (bot_id, update_id, chat_id, kind, raw, due_at, received_at)
        VALUES (:bot_id, :update_id, :chat_id, :kind, :raw, :now, :now)
        ON CONFLICT (bot_id, update_id) DO NOTHING";
    let params = named_params! {
        ":bot_id": bot_id, ":update_id": received.update_id, ":chat_id": received.chat_id, ":kind": received.kind,
        ":raw": received.raw, ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// The next fetch confirms what is below this.
pub(super) fn move_offset(tx: &Tx<'_>, bot_id: i64, next_offset: i64) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO telegram_intake (bot_id, next_offset, stored_at) VALUES (:bot_id, :next_offset, :now)
        ON CONFLICT (bot_id) DO UPDATE SET next_offset = excluded.next_offset, stored_at = excluded.stored_at";
    tx.execute(sql, named_params! { ":bot_id": bot_id, ":next_offset": next_offset, ":now": tx.now() })
}

/// Where the reading of a bot's updates stands.
pub(super) fn find_intake(tx: &Tx<'_>, bot_id: i64) -> Result<Option<Intake>, StoreError> {
    let sql = "SELECT next_offset, stored_at, webhook_url FROM telegram_intake WHERE bot_id = :bot_id";
    tx.query_opt(sql, named_params! { ":bot_id": bot_id }, |row| {
        Ok(Intake {
            next_offset: row.get("next_offset")?,
            stored_at: row.get("stored_at")?,
            webhook_url: row.get("webhook_url")?,
        })
    })
}

/// The webhook that we set last is this one.
pub(super) fn note_webhook(tx: &Tx<'_>, bot_id: i64, url: Option<&str>) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO telegram_intake (bot_id, webhook_url) VALUES (:bot_id, :url)
        ON CONFLICT (bot_id) DO UPDATE SET webhook_url = excluded.webhook_url";
    tx.execute(sql, named_params! { ":bot_id": bot_id, ":url": url })
}

/// The statement behind [`due_heads`]; a test looks at its plan.
pub(super) const DUE_HEADS: &str = "
    SELECT head_id, chat_id FROM telegram_update_lanes WHERE due_at <= :now ORDER BY due_at, head_id LIMIT :limit";

/// The heads that are due, the longest waiting first.
pub(super) fn due_heads(tx: &Tx<'_>, limit: i64) -> Result<Vec<Due>, StoreError> {
    tx.query_all(DUE_HEADS, named_params! { ":now": tx.now(), ":limit": limit }, |row| {
        Ok(Due { id: row.get("head_id")?, chat_id: row.get("chat_id")? })
    })
}

/// The statement behind [`next_due`]; a test looks at its plan.
pub(super) const NEXT_DUE: &str = "SELECT MIN(due_at) AS due_at FROM telegram_update_lanes WHERE due_at > :now";

/// When the next head becomes due that is not due yet.
pub(super) fn next_due(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    tx.query_one(NEXT_DUE, named_params! { ":now": tx.now() }, |row| row.get("due_at"))
}

/// The statement behind [`find_head`]; a test looks at its plan.
pub(super) const FIND_HEAD: &str = "
    SELECT u.id, u.raw, u.attempts, u.received_at
    FROM telegram_updates AS u
    JOIN telegram_update_lanes AS l ON l.chat_id = u.chat_id AND l.head_id = u.id
    WHERE u.id = :id AND u.status = 'pending' AND u.due_at <= :now";

/// The update if it waits, is due, and is the head of its chat.
pub(super) fn find_head(tx: &Tx<'_>, id: i64) -> Result<Option<Waiting>, StoreError> {
    tx.query_opt(FIND_HEAD, named_params! { ":id": id, ":now": tx.now() }, |row| {
        Ok(Waiting {
            id: row.get("id")?,
            raw: row.get("raw")?,
            attempts: row.get("attempts")?,
            received_at: row.get("received_at")?,
        })
    })
}

/// An update's effects are in this transaction.
pub(super) fn mark_handled(tx: &Tx<'_>, id: i64, attempts: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_updates
        SET status = 'handled', raw = NULL, attempts = attempts + 1, error_code = NULL, finished_at = :now
        WHERE id = :id AND status = 'pending' AND attempts = :attempts";
    tx.execute(sql, named_params! { ":id": id, ":attempts": attempts, ":now": tx.now() })
}

/// How many failures of a waiting update count, if so many attempts have ended.
pub(super) fn find_failures(tx: &Tx<'_>, id: i64, attempts: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT failures FROM telegram_updates WHERE id = :id AND status = 'pending' AND attempts = :attempts";
    tx.query_opt(sql, named_params! { ":id": id, ":attempts": attempts }, |row| row.get("failures"))
}

/// An attempt failed, and the update waits for the next.
pub(super) fn mark_waiting(tx: &Tx<'_>, failed: &Failed<'_>) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_updates
        SET attempts = attempts + 1, failures = :failures, due_at = :due_at, error_code = :code
        WHERE id = :id AND status = 'pending' AND attempts = :attempts";
    let params = named_params! {
        ":id": failed.id, ":attempts": failed.attempts, ":failures": failed.failures, ":due_at": failed.due_at,
        ":code": failed.code,
    };
    tx.execute(sql, params)
}

/// An attempt failed, and was the last.
pub(super) fn mark_dead(tx: &Tx<'_>, failed: &Failed<'_>) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_updates
        SET status = 'dead', attempts = attempts + 1, failures = :failures, error_code = :code, finished_at = :now
        WHERE id = :id AND status = 'pending' AND attempts = :attempts";
    let params = named_params! {
        ":id": failed.id, ":attempts": failed.attempts, ":failures": failed.failures, ":code": failed.code,
        ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// A dead update waits again.
pub(super) fn reopen(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE telegram_updates
        SET status = 'pending', failures = 0, replays = replays + 1, due_at = :now, finished_at = NULL
        WHERE id = :id AND status = 'dead'";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        id: row.get("id")?,
        update_id: row.get("update_id")?,
        chat_id: row.get("chat_id")?,
        kind: row.get("kind")?,
        state: row.get("status")?,
        attempts: row.get("attempts")?,
        failures: row.get("failures")?,
        replays: row.get("replays")?,
        due_at: row.get("due_at")?,
        error_code: row.get("error_code")?,
        received_at: row.get("received_at")?,
        finished_at: row.get("finished_at")?,
    })
}

/// The statement behind [`list_pending`]; a test looks at its plan. What is sorted is only what waits.
pub(super) const LIST_PENDING: &str = "
    SELECT id, update_id, chat_id, kind, status, attempts, failures, replays, due_at, error_code, received_at,
           finished_at
    FROM telegram_updates INDEXED BY telegram_updates_open
    WHERE status = 'pending' AND id > :after AND (:chat_id IS NULL OR chat_id = :chat_id)
    ORDER BY id
    LIMIT :limit";

/// A page of waiting updates.
pub(super) fn list_pending(tx: &Tx<'_>, page: &Filter) -> Result<Vec<Listed>, StoreError> {
    let params = named_params! { ":after": page.after, ":chat_id": page.chat_id, ":limit": page.limit };
    tx.query_all(LIST_PENDING, params, listed)
}

/// The statement behind [`list_dead`]; a test looks at its plan.
pub(super) const LIST_DEAD: &str = "
    SELECT id, update_id, chat_id, kind, status, attempts, failures, replays, due_at, error_code, received_at,
           finished_at
    FROM telegram_updates INDEXED BY telegram_updates_dead
    WHERE status = 'dead' AND id > :after AND (:chat_id IS NULL OR chat_id = :chat_id)
    ORDER BY id
    LIMIT :limit";

/// A page of dead updates.
pub(super) fn list_dead(tx: &Tx<'_>, page: &Filter) -> Result<Vec<Listed>, StoreError> {
    let params = named_params! { ":after": page.after, ":chat_id": page.chat_id, ":limit": page.limit };
    tx.query_all(LIST_DEAD, params, listed)
}

/// A page of updates by their ids.
pub(super) fn list_all(tx: &Tx<'_>, page: &Filter) -> Result<Vec<Listed>, StoreError> {
    let sql = "
        SELECT id, update_id, chat_id, kind, status, attempts, failures, replays, due_at, error_code, received_at,
               finished_at
        FROM telegram_updates
        WHERE id > :after AND (:status IS NULL OR status = :status) AND (:chat_id IS NULL OR chat_id = :chat_id)
        ORDER BY id
        LIMIT :limit";
    let params = named_params! {
        ":after": page.after, ":status": page.state.map(super::State::as_str), ":chat_id": page.chat_id,
        ":limit": page.limit,
    };
    tx.query_all(sql, params, listed)
}

/// One update, with its text if that is still kept.
pub(super) fn find(tx: &Tx<'_>, id: i64) -> Result<Option<(Listed, Option<String>)>, StoreError> {
    let sql = "
        SELECT id, update_id, chat_id, kind, status, attempts, failures, replays, due_at, error_code, received_at,
               finished_at, raw
        FROM telegram_updates WHERE id = :id";
    tx.query_opt(sql, named_params! { ":id": id }, |row| Ok((listed(row)?, row.get("raw")?)))
}

/// The next dead updates by their ids.
pub(super) fn dead_after(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT id FROM telegram_updates WHERE status = 'dead' AND id > :after ORDER BY id LIMIT :limit";
    tx.query_all(sql, named_params! { ":after": after, ":limit": limit }, |row| row.get("id"))
}

/// How many updates wait, counted no further than `cap`.
pub(super) fn count_pending(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    let sql = "
        SELECT COUNT(*) AS n FROM (
            SELECT 1 FROM telegram_updates INDEXED BY telegram_updates_open WHERE status = 'pending' LIMIT :cap)";
    tx.query_one(sql, named_params! { ":cap": cap }, |row| row.get("n"))
}

/// How many chats wait, counted no further than `cap`.
pub(super) fn count_chats(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM telegram_update_lanes LIMIT :cap)";
    tx.query_one(sql, named_params! { ":cap": cap }, |row| row.get("n"))
}

/// How many updates are dead, counted no further than `cap`.
pub(super) fn count_dead(tx: &Tx<'_>, cap: i64) -> Result<i64, StoreError> {
    let sql = "
        SELECT COUNT(*) AS n FROM (
            SELECT 1 FROM telegram_updates INDEXED BY telegram_updates_dead WHERE status = 'dead' LIMIT :cap)";
    tx.query_one(sql, named_params! { ":cap": cap }, |row| row.get("n"))
}

/// When the head was stored that has been due for longest.
pub(super) fn oldest_head(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    let sql = "
        SELECT u.received_at FROM telegram_update_lanes AS l JOIN telegram_updates AS u ON u.id = l.head_id
        ORDER BY l.due_at, l.head_id LIMIT 1";
    tx.query_opt(sql, [], |row| row.get("received_at"))
}

/// The statement behind [`delete_handled`]; a test looks at its plan.
pub(super) const DELETE_HANDLED: &str = "
    DELETE FROM telegram_updates WHERE id IN (
        SELECT id FROM telegram_updates INDEXED BY telegram_updates_handled
        WHERE status = 'handled' AND finished_at < :cutoff ORDER BY finished_at LIMIT :limit)";

/// Deletes up to `limit` updates that were handled before `cutoff`, the oldest first; how many.
pub(super) fn delete_handled(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_HANDLED, named_params! { ":cutoff": cutoff, ":limit": limit })
}

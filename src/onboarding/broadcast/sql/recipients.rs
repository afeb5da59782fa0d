//! Statements on `broadcast_recipients`.

use rusqlite::{Row, named_params};

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::Lang;

/// Who is to be written to next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) telegram_id: i64,
    pub(crate) lang: Lang,
}

/// Where a recipient stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) status: String,
    pub(crate) message_id: Option<i64>,
}

/// A recipient as a report has them.
#[derive(Clone, Debug)]
pub(crate) struct Recipient {
    pub(crate) telegram_id: i64,
    pub(crate) lang: String,
    pub(crate) status: String,
    pub(crate) code: Option<String>,
    pub(crate) finished_at: Option<UnixMs>,
    pub(crate) telegram_message_id: Option<i64>,
}

/// What became of a recipient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) status: &'a str,
    pub(crate) code: Option<&'a str>,
    /// Of the messenger.
    pub(crate) message_id: Option<i64>,
}

/// The statement behind [`pending`]; a test looks at its plan.
pub(crate) const PENDING: &str = "
    SELECT telegram_id, lang FROM broadcast_recipients INDEXED BY broadcast_recipients_pending
    WHERE broadcast_id = :id AND status = 'pending' ORDER BY telegram_id LIMIT :limit";

/// The next recipients who are not in the send queue.
pub(crate) fn pending(tx: &Tx<'_>, id: i64, limit: i64) -> Result<Vec<Pending>, StoreError> {
    tx.query_all(PENDING, named_params! { ":id": id, ":limit": limit }, |row| {
        let lang: String = row.get("lang")?;
        // The schema holds it to be one of ours.
        Ok(Pending { telegram_id: row.get("telegram_id")?, lang: Lang::parse(&lang).unwrap_or(Lang::Ru) })
    })
}

/// The statement behind [`queued`]; a test looks at its plan.
pub(crate) const QUEUED: &str = "
    SELECT message_id FROM broadcast_recipients INDEXED BY broadcast_recipients_waiting
    WHERE broadcast_id = :id AND status = 'queued' ORDER BY telegram_id LIMIT :limit";

/// The messages that are in the send queue.
pub(crate) fn queued(tx: &Tx<'_>, id: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    tx.query_all(QUEUED, named_params! { ":id": id, ":limit": limit }, |row| row.get("message_id"))
}

/// Where a recipient stands, and with which message if that is in the send queue.
pub(crate) fn find_standing(tx: &Tx<'_>, id: i64, telegram_id: i64) -> Result<Option<Standing>, StoreError> {
    let sql = "
        SELECT status, message_id FROM broadcast_recipients WHERE broadcast_id = :id AND telegram_id = :telegram_id";
    tx.query_opt(sql, named_params! { ":id": id, ":telegram_id": telegram_id }, |row| {
        Ok(Standing { status: row.get("status")?, message_id: row.get("message_id")? })
    })
}

/// A recipient's message is in the send queue.
pub(crate) fn mark_queued(tx: &Tx<'_>, id: i64, telegram_id: i64, message_id: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcast_recipients SET status = 'queued', message_id = :message_id
        WHERE broadcast_id = :id AND telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":id": id, ":telegram_id": telegram_id, ":message_id": message_id })
}

/// Recipients whose messages were taken back wait again; how many. The statement goes through the queued ones, of which
/// there are few.
pub(crate) fn mark_pending(tx: &Tx<'_>, id: i64, messages: &[i64]) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcast_recipients SET status = 'pending', message_id = NULL
        WHERE broadcast_id = :id AND telegram_id IN (
          SELECT telegram_id FROM broadcast_recipients INDEXED BY broadcast_recipients_waiting
          WHERE broadcast_id = :id AND status = 'queued' AND message_id IN (SELECT value FROM json_each(:messages)))";
    let messages = serde_json::Value::from(messages).to_string();
    tx.execute(sql, named_params! { ":id": id, ":messages": messages })
}

/// A recipient has had their turn.
pub(crate) fn close(tx: &Tx<'_>, id: i64, telegram_id: i64, ended: &Ended<'_>) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcast_recipients
        SET status = :status, code = :code, message_id = NULL, telegram_message_id = :message_id, finished_at = :now
        WHERE broadcast_id = :id AND telegram_id = :telegram_id";
    let params = named_params! {
        ":id": id, ":telegram_id": telegram_id, ":status": ended.status, ":code": ended.code,
        ":message_id": ended.message_id, ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// Recipients behind a chat, by chat.
pub(crate) fn page(tx: &Tx<'_>, id: i64, after: i64, limit: i64) -> Result<Vec<Recipient>, StoreError> {
    let sql = "
        SELECT telegram_id, lang, status, code, finished_at, telegram_message_id FROM broadcast_recipients
        WHERE broadcast_id = :id AND telegram_id > :after ORDER BY telegram_id LIMIT :limit";
    tx.query_all(sql, named_params! { ":id": id, ":after": after, ":limit": limit }, recipient)
}

fn recipient(row: &Row<'_>) -> rusqlite::Result<Recipient> {
    Ok(Recipient {
        telegram_id: row.get("telegram_id")?,
        lang: row.get("lang")?,
        status: row.get("status")?,
        code: row.get("code")?,
        finished_at: row.get("finished_at")?,
        telegram_message_id: row.get("telegram_message_id")?,
    })
}

/// Deletes recipients of broadcasts that were finished before an instant; how many.
pub(crate) fn delete_finished(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM broadcast_recipients WHERE (broadcast_id, telegram_id) IN (
          SELECT r.broadcast_id, r.telegram_id
          FROM broadcasts AS b INDEXED BY broadcasts_finished_at
          JOIN broadcast_recipients AS r ON r.broadcast_id = b.id
          WHERE b.finished_at IS NOT NULL AND b.finished_at < :cutoff LIMIT :limit)";
    tx.execute(sql, named_params! { ":cutoff": cutoff, ":limit": limit })
}

//! The statements of the send queue; each is named by what it means.
//!
//! The lanes' heads (`telegram_chat_lanes`) are kept by triggers and only read here.

pub(super) mod claim;
pub(super) mod lists;
pub(super) mod settle;

use rusqlite::named_params;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use super::Error;
use super::kind::{Kind, Lane};
use super::message::{Format, NewMessage};
use super::outcome::FailureCode;
use crate::kernel::store::{StoreError, Tx};

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
pub(crate) fn insert_once(tx: &Tx<'_>, new: &NewMessage, json: &NewJson) -> Result<Option<i64>, StoreError> {
    let due_at = new.due_at.unwrap_or_else(|| tx.now());
    // Not OR IGNORE: that would also swallow a row that breaks a CHECK, and reach into the trigger.
    let sql = "
        INSERT INTO telegram_messages
            (chat_id, kind, lane, text, format, keyboard, edit_message_id, fallback, dedup_key, due_at, waiting_since,
             created_at)
        VALUES
            (:chat_id, :kind, :lane, :text, :format, :keyboard, :edit, :fallback, :dedup_key, :due_at, MAX(:due_at, :now),
             :now)
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
            ":edit": new.edit,
            ":fallback": json.fallback,
            ":dedup_key": new.dedup_key,
            ":due_at": due_at,
            ":now": tx.now(),
        },
        |row| row.get("id"),
    )
}

/// The statement behind [`cancel_superseded`]; a test looks at its plan. The IN is there for the index, as in
/// [`settle::MOVE_CHAT`].
pub(crate) const CANCEL_SUPERSEDED: &str = "
    UPDATE telegram_messages INDEXED BY telegram_messages_open SET status = 'cancelled', finished_at = :now
    WHERE chat_id = :chat_id AND lane = :lane AND status IN ('pending', 'sending') AND status = 'pending'
      -- One that was tried may have arrived, and is settled as what it is.
      AND attempts = 0 AND edit_message_id = :edit AND id < :id";

/// Changes of the message `edit` that were queued before `id` and not tried yet are not made any more.
pub(crate) fn cancel_superseded(tx: &Tx<'_>, new: &NewMessage, edit: i64, id: i64) -> Result<usize, StoreError> {
    let params = named_params! {
        ":chat_id": new.chat_id, ":lane": new.kind.lane(), ":edit": edit, ":id": id, ":now": tx.now(),
    };
    tx.execute(CANCEL_SUPERSEDED, params)
}

/// The JSON columns of a new message.
pub(crate) struct NewJson {
    pub(crate) keyboard: Option<String>,
    pub(crate) fallback: Option<String>,
}

/// The message with that key.
pub(crate) fn load_id_by_key(tx: &Tx<'_>, dedup_key: &str) -> Result<i64, StoreError> {
    let sql = "SELECT id FROM telegram_messages WHERE dedup_key = :dedup_key";
    tx.query_one(sql, named_params! { ":dedup_key": dedup_key }, |row| row.get("id"))
}

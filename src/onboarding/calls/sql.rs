//! Every statement on `backend_calls`; nobody else touches this table.

use rusqlite::{Row, named_params};

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// A call that is wanted.
pub(super) struct NewCall<'a> {
    pub(super) source: &'a str,
    pub(super) kind: &'a str,
    pub(super) body: &'a str,
    pub(super) dedup_key: &'a str,
}

/// When the chat was asked whether it is this member's, if it was.
pub(super) fn find_prompted_at(tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Option<UnixMs>, StoreError> {
    tx.query_opt(
        "SELECT prompted_at FROM bot_bind_prompts WHERE telegram_id = :chat AND magnet_uid = :uid",
        named_params! { ":chat": telegram_id, ":uid": uid },
        |row| row.get("prompted_at"),
    )
}

/// A call that this process may make now, once.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) id: i64,
    pub(super) kind: String,
    pub(super) body: String,
    pub(super) attempts: i64,
    pub(super) created_at: UnixMs,
}

/// Which attempt of which call: whoever settles another attempt than the last changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    pub(super) id: i64,
    pub(super) attempts: i64,
}

impl Claim {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            kind: row.get("kind")?,
            body: row.get("body")?,
            attempts: row.get("attempts")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// Wants a call unless one with its key is there; how many rows that made.
pub(super) fn insert_once(tx: &Tx<'_>, new: &NewCall<'_>) -> Result<usize, StoreError> {
    tx.execute(
        "INSERT INTO backend_calls (source, kind, body, dedup_key, due_at, created_at)
         VALUES (:source, :kind, :body, :dedup_key, :now, :now)
         ON CONFLICT (dedup_key) DO NOTHING",
        named_params! {
            ":source": new.source,
            ":kind": new.kind,
            ":body": new.body,
            ":dedup_key": new.dedup_key,
            ":now": tx.now(),
        },
    )
}

/// Takes the call that has been due for longest.
pub(super) fn claim_due(tx: &Tx<'_>, source: &str, locked_until: UnixMs) -> Result<Option<Claim>, StoreError> {
    tx.query_opt(
        "UPDATE backend_calls
         SET status = 'sending', attempts = attempts + 1, locked_until = :locked_until, lease_boot = :boot
         WHERE id = (
           SELECT id FROM backend_calls INDEXED BY backend_calls_due
           WHERE source = :source AND status = 'pending' AND due_at <= :now
           ORDER BY due_at, id LIMIT 1)
         RETURNING id, kind, body, attempts, created_at",
        named_params! { ":source": source, ":locked_until": locked_until, ":boot": tx.boot(), ":now": tx.now() },
        Claim::from_row,
    )
}

/// Whether a call is under way that nobody makes any more: of an earlier start, or beyond its lease.
pub(super) fn has_lost(tx: &Tx<'_>, source: &str) -> Result<bool, StoreError> {
    tx.query_one(
        "SELECT EXISTS (
           SELECT 1 FROM backend_calls INDEXED BY backend_calls_sending
           WHERE source = :source AND status = 'sending' AND (locked_until <= :now OR lease_boot <> :boot)) AS lost",
        named_params! { ":source": source, ":now": tx.now(), ":boot": tx.boot() },
        |row| row.get("lost"),
    )
}

/// Makes such calls due at once; how many.
pub(super) fn release_lost(tx: &Tx<'_>, source: &str) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE backend_calls
         SET status = 'pending', due_at = :now, locked_until = NULL, lease_boot = NULL, error_code = 'interrupted'
         WHERE source = :source AND status = 'sending' AND (locked_until <= :now OR lease_boot <> :boot)",
        named_params! { ":source": source, ":now": tx.now(), ":boot": tx.boot() },
    )
}

/// When the first call is due, or a lease ends.
pub(super) fn next_due(tx: &Tx<'_>, source: &str) -> Result<Option<UnixMs>, StoreError> {
    tx.query_one(
        "SELECT MIN(at) AS at FROM (
           SELECT MIN(due_at) AS at FROM backend_calls INDEXED BY backend_calls_due
             WHERE source = :source AND status = 'pending'
           UNION ALL
           SELECT MIN(locked_until) FROM backend_calls INDEXED BY backend_calls_sending
             WHERE source = :source AND status = 'sending')",
        named_params! { ":source": source },
        |row| row.get("at"),
    )
}

/// The attempt was answered.
pub(super) fn mark_done(tx: &Tx<'_>, fence: Fence) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE backend_calls
         SET status = 'done', finished_at = :now, locked_until = NULL, lease_boot = NULL, error_code = NULL
         WHERE id = :id AND attempts = :attempts AND status = 'sending'",
        named_params! { ":now": tx.now(), ":id": fence.id, ":attempts": fence.attempts },
    )
}

/// The attempt failed, or nobody knows; another follows.
pub(super) fn put_off(tx: &Tx<'_>, fence: Fence, due_at: UnixMs, code: &str) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE backend_calls
         SET status = 'pending', due_at = :due_at, locked_until = NULL, lease_boot = NULL, error_code = :code
         WHERE id = :id AND attempts = :attempts AND status = 'sending'",
        named_params! { ":due_at": due_at, ":code": code, ":id": fence.id, ":attempts": fence.attempts },
    )
}

/// The attempt failed, and no other follows.
pub(super) fn give_up(tx: &Tx<'_>, fence: Fence, code: &str) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE backend_calls
         SET status = 'failed', finished_at = :now, locked_until = NULL, lease_boot = NULL, error_code = :code
         WHERE id = :id AND attempts = :attempts AND status = 'sending'",
        named_params! { ":now": tx.now(), ":code": code, ":id": fence.id, ":attempts": fence.attempts },
    )
}

/// Deletes up to `limit` calls that were closed before `cutoff`, the oldest first; how many.
pub(super) fn delete_finished(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(
        "DELETE FROM backend_calls WHERE id IN (
           SELECT id FROM backend_calls INDEXED BY backend_calls_finished_at
           WHERE finished_at < :cutoff ORDER BY finished_at LIMIT :limit)",
        named_params! { ":cutoff": cutoff, ":limit": limit },
    )
}

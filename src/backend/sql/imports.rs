//! Statements on `member_imports`.

use rusqlite::named_params;

use crate::backend::members::import::Progress;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Begins an import, unless it was.
pub(crate) fn insert_import(tx: &Tx<'_>, digest: &str) -> Result<usize, StoreError> {
    tx.execute(
        "INSERT INTO member_imports (digest, started_at) VALUES (:digest, :now) ON CONFLICT (digest) DO NOTHING",
        named_params! { ":digest": digest, ":now": tx.now() },
    )
}

/// Where an import stands.
pub(crate) fn find_import(tx: &Tx<'_>, digest: &str) -> Result<Progress, StoreError> {
    tx.query_one(
        "SELECT lines_done, stored, unchanged, bad, finished_at FROM member_imports WHERE digest = :digest",
        named_params! { ":digest": digest },
        |row| {
            Ok(Progress {
                lines_done: row.get("lines_done")?,
                stored: row.get("stored")?,
                unchanged: row.get("unchanged")?,
                bad: row.get("bad")?,
                finished_at: row.get("finished_at")?,
            })
        },
    )
}

/// Moves an import from where it was to where it is; how many rows.
pub(crate) fn advance_import(tx: &Tx<'_>, digest: &str, from: i64, to: &Progress) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE member_imports SET lines_done = :lines_done, stored = :stored, unchanged = :unchanged, bad = :bad
         WHERE digest = :digest AND lines_done = :from",
        named_params! {
            ":lines_done": to.lines_done,
            ":stored": to.stored,
            ":unchanged": to.unchanged,
            ":bad": to.bad,
            ":digest": digest,
            ":from": from,
        },
    )
}

/// The whole file is dealt with.
pub(crate) fn finish_import(tx: &Tx<'_>, digest: &str) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE member_imports SET finished_at = :now WHERE digest = :digest",
        named_params! { ":now": tx.now(), ":digest": digest },
    )
}

/// The import is forgotten.
pub(crate) fn delete_import(tx: &Tx<'_>, digest: &str) -> Result<usize, StoreError> {
    tx.execute("DELETE FROM member_imports WHERE digest = :digest", named_params! { ":digest": digest })
}

/// Imports that began before that are forgotten; how many. They are few: one a file.
pub(crate) fn delete_old_imports(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(
        "DELETE FROM member_imports WHERE digest IN (
             SELECT digest FROM member_imports WHERE started_at < :cutoff LIMIT :limit)",
        named_params! { ":cutoff": cutoff, ":limit": limit },
    )
}

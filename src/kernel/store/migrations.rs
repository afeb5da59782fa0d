//! The schema's history: numbered files, applied in order, each in one transaction, counted by `user_version`.
//!
//! Append only. Before the first pending one of an existing file a copy of it is kept in `backups/`, since a schema
//! cannot be taken back.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::OpenError;
use crate::kernel::clock::UnixMs;

/// Every migration there is. The number of the last one is the schema version this binary writes.
const ALL: &[M<'static>] = &[
    M::up(include_str!("../../../schema/0001_bot.sql")),
    M::up(include_str!("../../../schema/0002_chat.sql")),
    M::up(include_str!("../../../schema/0003_backend_calls.sql")),
];

/// The schema version this binary writes.
pub fn newest() -> i64 {
    i64::try_from(ALL.len()).unwrap_or(i64::MAX)
}

/// Brings the file up to [`newest`]. Returns the copy that was made before, if one was needed.
pub(super) fn apply(conn: &mut Connection, dir: &Path, now: UnixMs) -> Result<Option<PathBuf>, OpenError> {
    let from = version(conn)?;
    if from >= newest() {
        return Ok(None);
    }
    let copy = if from > 0 { Some(keep_copy(conn, dir, from, now)?) } else { None };
    let migrations = Migrations::from_slice(ALL);
    for step in from + 1..=newest() {
        let target = usize::try_from(step).unwrap_or(usize::MAX);
        migrations.to_version(conn, target).map_err(|error| OpenError::Migration { step, error: Box::new(error) })?;
    }
    Ok(copy)
}

/// The schema version of an open file.
pub(super) fn version(conn: &Connection) -> Result<i64, OpenError> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(super::StoreError::from)?)
}

/// `VACUUM INTO` reads one snapshot and needs no pause of writers; a stepped backup restarts at every write.
fn keep_copy(conn: &Connection, dir: &Path, from: i64, now: UnixMs) -> Result<PathBuf, OpenError> {
    let backups = dir.join("backups");
    let unusable = |error: std::io::Error| OpenError::Directory { path: backups.clone(), error };
    std::fs::create_dir_all(&backups).map_err(unusable)?;
    let copy = backups.join(format!("before-{:04}-{now}.db", from + 1));
    conn.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(super::StoreError::from)?;
    Ok(copy)
}

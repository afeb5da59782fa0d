//! How a connection is opened, in one place, so that none of them differs by accident.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{StoreError, Synchronous};

/// Prepared statements kept per connection; more than there are in the code, so none is prepared twice.
const STATEMENTS: usize = 256;
/// The WAL is cut back to this after a burst; several checkpoints' worth, since overwriting is cheaper than growing.
const WAL_LIMIT: i64 = 64 << 20;

/// The one connection that writes. `cache` in bytes.
pub(super) fn open_writer(
    path: &Path,
    busy: Duration,
    synchronous: Synchronous,
    cache: u64,
) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // First of all: everything after this may meet a lock.
    conn.busy_timeout(busy)?;
    // Only effective before the first table; later it is a no-op.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::ReadOnly);
    }
    conn.pragma_update(None, "synchronous", synchronous.as_str())?;
    conn.pragma_update(None, "journal_size_limit", WAL_LIMIT)?;
    conn.pragma_update(None, "cache_size", kibibytes(cache))?;
    common(&conn)?;
    Ok(conn)
}

/// A connection that reads and cannot write.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let mut conn = Connection::open_with_flags(path, reader_flags())?;
    prepare_reader(&mut conn)?;
    Ok(conn)
}

/// WAL readers write to the shared-memory file, so the file is opened for both; `query_only` forbids the rest.
pub(super) fn reader_flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

pub(super) fn prepare_reader(conn: &mut Connection) -> Result<(), rusqlite::Error> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update(None, "query_only", true)?;
    // The writer checkpoints at shutdown; a reader that closes last must never do it to a damaged file.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    common(conn)
}

fn common(conn: &Connection) -> Result<(), rusqlite::Error> {
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// SQLite takes a negative cache size as KiB.
fn kibibytes(bytes: u64) -> i64 {
    -i64::try_from(bytes / 1024).unwrap_or(i64::MAX)
}

//! How a connection is opened, in one place, so that none of them differs by accident.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{Settings, StoreError};

/// Prepared statements kept per connection; more than there are in the code, so none is prepared twice.
const STATEMENTS: usize = 256;
/// The WAL is cut back to this after a burst; several checkpoints' worth, since overwriting is cheaper than growing.
const WAL_LIMIT: i64 = 64 << 20;

/// The database, its WAL and its shared memory.
pub(super) fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// The one connection that writes; the file is there already.
pub(super) fn open_writer(path: &Path, settings: &Settings) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // First of all: everything after this may meet a lock.
    conn.busy_timeout(settings.busy_timeout)?;
    // Until the end is known to be a good one.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Only effective before the first table; later it is a no-op.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::ReadOnly);
    }
    // The writer checkpoints between two batches, after a look at the file.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "synchronous", settings.synchronous.as_str())?;
    conn.pragma_update(None, "journal_size_limit", WAL_LIMIT)?;
    conn.pragma_update(None, "cache_size", kibibytes(settings.cache))?;
    common(&conn)?;
    Ok(conn)
}

/// A connection that reads and cannot write.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let mut conn = Connection::open_with_flags(path, reader_flags())?;
    prepare_reader(&mut conn)?;
    Ok(conn)
}

/// Lets SQLite take back a change that was cut off before it was made: whoever opens the file next is to do that.
pub(super) fn roll_back(path: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
}

/// A connection that changes nothing, not even by being closed: for a file of which it is not known yet whose it is.
pub(super) fn open_to_look(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

/// A connection that sees the bytes of the database file and not its WAL. It takes no locks, and is closed through
/// SQLite, which knows not to drop the locks of the others.
pub(super) fn open_without_wal(path: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(immutable_uri(path), flags_without_wal())?)
}

/// The flags that [`immutable_uri`] asks for.
pub(super) fn flags_without_wal() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI
}

pub(super) fn immutable_uri(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(byte)),
            // Writing to a String cannot fail.
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri + "?immutable=1"
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
    // Or a statement is prepared again whenever a number that it is bound to may matter to its plan, that of a LIMIT
    // among them: a tenth of what the writer did. No plan here is meant to depend on the values.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// SQLite takes a negative cache size as KiB.
fn kibibytes(bytes: u64) -> i64 {
    -i64::try_from(bytes / 1024).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{files, immutable_uri};

    #[test]
    fn a_path_of_any_bytes_is_a_uri() {
        assert_eq!(immutable_uri(Path::new("/a b/ü?x#%.db")), "file:/a%20b/%C3%BC%3Fx%23%25.db?immutable=1");
    }

    #[test]
    fn the_wal_lies_beside_the_database() {
        assert_eq!(files(Path::new("/d/p.db")), ["/d/p.db", "/d/p.db-wal", "/d/p.db-shm"].map(PathBuf::from));
    }
}

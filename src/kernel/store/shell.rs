//! A connection for a person's own SQL, beside a running server or without one.
//!
//! The SQLite of this binary always fits the file, which the system's `sqlite3` may not. The shell neither migrates nor
//! takes the process lock; it reads unless it was opened for writing, and then writes as any other program may.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, ErrorCode, OpenFlags, Row};

use super::{FILE_NAME, OpenError, StoreError, open, pragmas};

/// What a shell may do to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the file is opened read-only, so that no pragma can change that.
    Read,
    /// Whatever SQL can do to rows.
    Write,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An INTEGER.
    Integer(i64),
    /// A REAL.
    Real(f64),
    /// A TEXT; what is not UTF-8 in it is replaced.
    Text(String),
    /// A BLOB.
    Blob(Vec<u8>),
}

/// What running SQL shows, in this order for every statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The names of the columns, of a statement that has some.
    Columns(Vec<String>),
    /// One row.
    Row(Vec<Cell>),
    /// The statement has ended; how many rows it changed itself, if it was one that may.
    Ended(Option<u64>),
}

/// Why SQL was not run to its end. The statements before the one that failed have been run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The shell was opened for reading.
    #[error("this shell only reads; `pillarbox sql --write` changes the file")]
    ReadOnly,
    /// SQLite refused a statement; the text is its own.
    #[error("{}", said(.0))]
    Statement(rusqlite::Error),
    /// What was shown could not be passed on.
    #[error("the rows could not be passed on: {0}")]
    Output(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

/// The connection.
#[derive(Debug)]
pub struct Shell {
    conn: Connection,
    access: Access,
    file: PathBuf,
}

impl Shell {
    /// Opens the database of `dir`, waiting up to `busy` for another process's write lock.
    ///
    /// # Errors
    /// [`OpenError`], as [`Db::open`](super::Db::open) has it. An older schema is no error: the file is left as it is.
    pub fn open(dir: &Path, access: Access, busy: Duration) -> Result<Self, OpenError> {
        let file = dir.join(FILE_NAME);
        open::schema_of(dir)?;
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        };
        let failed = |error: rusqlite::Error| open::explain(error.into(), &file);
        let mut conn = Connection::open_with_flags(&file, flags).map_err(failed)?;
        let prepared = pragmas::prepare_reader(&mut conn)
            .and_then(|()| conn.busy_timeout(busy))
            .and_then(|()| conn.pragma_update(None, "query_only", access == Access::Read));
        prepared.map_err(failed)?;
        Ok(Self { conn, access, file })
    }

    /// The database file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether a `BEGIN` waits for its `COMMIT`.
    pub fn is_in_transaction(&self) -> bool {
        !self.conn.is_autocommit()
    }

    /// Runs every statement of `sql`, each committed by itself unless the SQL begins a transaction.
    ///
    /// # Errors
    /// [`ShellError`] at the first statement that fails; [`ShellError::Output`] is `show`'s own.
    pub fn run(&self, sql: &str, mut show: impl FnMut(Shown) -> io::Result<()>) -> Result<(), ShellError> {
        let mut batch = Batch::new(&self.conn, sql);
        while let Some(mut statement) = batch.next().map_err(|error| self.explain(error))? {
            let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
            let width = columns.len();
            let may_change = !statement.readonly();
            // Those of triggers count in it; `changes` leaves them out, but keeps the number of an earlier statement.
            let before = self.conn.total_changes();
            if width > 0 {
                show(Shown::Columns(columns))?;
            }
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next().map_err(|error| self.explain(error))? {
                show(Shown::Row(cells(row, width).map_err(|error| self.explain(error))?))?;
            }
            let changed = if self.conn.total_changes() > before { self.conn.changes() } else { 0 };
            show(Shown::Ended(may_change.then_some(changed)))?;
        }
        Ok(())
    }

    fn explain(&self, error: rusqlite::Error) -> ShellError {
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly) if self.access == Access::Read => ShellError::ReadOnly,
            // A checkpoint is refused by the system, since the file was opened for reading only.
            Some(ErrorCode::SystemIoFailure) if self.access == Access::Read && is_of_writing(&error) => {
                ShellError::ReadOnly
            }
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::SystemIoFailure,
            ) => ShellError::Store(error.into()),
            _ => ShellError::Statement(error),
        }
    }
}

fn is_of_writing(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    let code = error.sqlite_error().map(|failure| failure.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_TRUNCATE))
}

/// What SQLite says, without the statement that its reader has just written.
fn said(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => format!("{msg}, at offset {offset}"),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

fn cells(row: &Row<'_>, width: usize) -> rusqlite::Result<Vec<Cell>> {
    (0..width).map(|column| row.get_ref(column).map(cell)).collect()
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// The version of the SQLite in this binary.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

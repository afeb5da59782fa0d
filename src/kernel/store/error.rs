//! What a caller can be told about the store, in the terms it can act on.

use rusqlite::ErrorCode;

/// Why a read or a write did not happen. Nothing of a failed write is in the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the write lock for longer than `store.busy_timeout`.
    #[error("another process has held the write lock of the database for too long; try again")]
    Busy,
    /// More writes wait than `store.queue` allows.
    #[error("too many writes are waiting; try again")]
    QueueFull,
    /// Less than `store.min_free` is left on the disk: new work is refused, finishing goes on.
    #[error("the disk is nearly full; new work is refused until space is freed")]
    DiskLow,
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull,
    /// The file or its file system is read-only.
    #[error("the database is read-only")]
    ReadOnly,
    /// The file system answered an error.
    #[error("the disk failed while the database was used")]
    Io,
    /// The file is damaged; nothing is written any more and it is left as it is.
    #[error("the database file is damaged; stop the server and restore a backup")]
    Damaged,
    /// A file of the store is no longer where it was opened; nothing is written any more.
    #[error(
        "the database, its WAL or the lock file was removed, moved or replaced under the server; nothing more is written: put it back and restart"
    )]
    Displaced,
    /// The store is shutting down.
    #[error("the store is closing")]
    Closed,
    /// A row that must exist does not.
    #[error("no such row")]
    NoRow,
    /// A constraint of the schema refused the row; the result code is SQLite's extended one.
    #[error("a constraint of the schema refused the row (SQLite {0})")]
    Constraint(i32),
    /// Any other answer of SQLite: a fault of ours.
    #[error("the database refused a statement: {0}")]
    Statement(#[source] rusqlite::Error),
}

impl StoreError {
    /// Whether the same write may succeed a little later without anybody changing it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::QueueFull | Self::DiskLow | Self::DiskFull | Self::ReadOnly | Self::Io)
    }

    /// Whether the store itself failed, so that the transaction as a whole is void and no attempt of an event counts.
    pub fn is_store_fault(&self) -> bool {
        self.is_transient() || self.is_final() || matches!(self, Self::Closed)
    }

    /// Whether nothing is written any more until somebody has put it right and restarted.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Damaged | Self::Displaced)
    }

    /// The same fault for another caller of the same batch.
    pub(super) fn echo(&self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::QueueFull => Self::QueueFull,
            Self::DiskLow => Self::DiskLow,
            Self::DiskFull => Self::DiskFull,
            Self::ReadOnly => Self::ReadOnly,
            Self::Damaged => Self::Damaged,
            Self::Displaced => Self::Displaced,
            Self::Closed => Self::Closed,
            Self::NoRow | Self::Constraint(_) | Self::Statement(_) | Self::Io => Self::Io,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(failure, _) = &error else {
            return match error {
                rusqlite::Error::QueryReturnedNoRows => Self::NoRow,
                other => Self::Statement(other),
            };
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => Self::Busy,
            ErrorCode::DiskFull => Self::DiskFull,
            ErrorCode::ReadOnly if failure.extended_code == rusqlite::ffi::SQLITE_READONLY_DBMOVED => Self::Displaced,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged,
            ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => io_fault(failure.extended_code),
            ErrorCode::ConstraintViolation => Self::Constraint(failure.extended_code),
            _ => Self::Statement(error),
        }
    }
}

/// A short read or a page outside the file is damage; every other I/O error may pass.
fn io_fault(extended: i32) -> StoreError {
    match extended {
        rusqlite::ffi::SQLITE_IOERR_SHORT_READ | rusqlite::ffi::SQLITE_IOERR_CORRUPTFS => StoreError::Damaged,
        _ => StoreError::Io,
    }
}

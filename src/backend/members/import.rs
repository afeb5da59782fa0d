//! How far the import of a file has come. It is written with the members themselves, so that an import that was cut off
//! goes on behind the last line whose member is stored.

use crate::backend::sql;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// How far an import has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Lines of the file that are dealt with, the header too.
    pub(crate) lines_done: i64,
    /// Members that are new or changed.
    pub(crate) stored: i64,
    /// Members that were so before.
    pub(crate) unchanged: i64,
    /// Lines of which no member could be made.
    pub(crate) bad: i64,
    /// When its last line was dealt with.
    pub(crate) finished_at: Option<UnixMs>,
}

/// Where the import of the file with this digest stands; it is begun if it is not there.
///
/// # Errors
/// The store's.
pub(crate) fn begin(tx: &Tx<'_>, digest: &str) -> Result<Progress, StoreError> {
    sql::insert_import(tx, digest)?;
    sql::find_import(tx, digest)
}

/// Begins anew whatever was done before.
///
/// # Errors
/// The store's.
pub(crate) fn begin_again(tx: &Tx<'_>, digest: &str) -> Result<Progress, StoreError> {
    sql::delete_import(tx, digest)?;
    begin(tx, digest)
}

/// Records how far the import has come, in the transaction of its members. An import of the same file by another
/// process has come further or not as far, and one of the two would count lines twice: it is refused.
///
/// # Errors
/// [`StoreError::NoRow`] if it stands elsewhere than at `from`; else the store's.
pub(crate) fn advance(tx: &Tx<'_>, digest: &str, from: i64, progress: &Progress) -> Result<(), StoreError> {
    if sql::advance_import(tx, digest, from, progress)? == 1 { Ok(()) } else { Err(StoreError::NoRow) }
}

/// Records that nothing of the file is left.
///
/// # Errors
/// The store's.
pub(crate) fn finish(tx: &Tx<'_>, digest: &str) -> Result<(), StoreError> {
    sql::finish_import(tx, digest).map(|_| ())
}

/// Forgets up to `limit` imports that began before `cutoff`; how many.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::delete_old_imports(tx, cutoff, limit)
}

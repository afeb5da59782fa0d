//! The process lock: one `serve` per data directory.
//!
//! `flock` on a file of its own, and on the directory, since a lock file that was removed would keep nobody out. The
//! database files themselves are never opened by path: closing such a handle would drop the POSIX locks SQLite holds in
//! this process. The lock file names its holder, for the one who finds it held.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::OpenError;
use super::place::{Inode, inode};

const FILE_NAME: &str = "pillarbox.lock";

/// Held for as long as it lives; the operating system releases it when the process dies, however it dies.
#[derive(Debug)]
pub struct ProcessLock {
    path: PathBuf,
    inode: Inode,
    _file: File,
    _dir: File,
}

impl ProcessLock {
    /// Takes the lock of `dir` for this process, which says of itself that it is `role`, e.g. `serve`.
    ///
    /// # Errors
    /// [`OpenError::Held`] names the process that has it.
    pub fn acquire(dir: &Path, role: &str) -> Result<Self, OpenError> {
        let path = dir.join(FILE_NAME);
        let unusable = |error| OpenError::unusable(&path, error);
        let whole = File::open(dir).map_err(|error| OpenError::unusable(dir, error))?;
        // A file system that cannot lock directories leaves the lock file alone to do it.
        if let Err(TryLockError::WouldBlock) = whole.try_lock() {
            return Err(held(dir, std::fs::read_to_string(&path).unwrap_or_default()));
        }
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // What it says is a courtesy; that it is held is known already.
                let _ = file.read_to_string(&mut holder);
                return Err(held(dir, holder));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // A disk too full for the holder's name is no reason not to serve: acks need no new space there.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = write!(file, "pillarbox {role}, process {}", std::process::id());
        let inode = inode(&file.metadata().map_err(unusable)?);
        Ok(Self { path, inode, _file: file, _dir: whole })
    }

    /// The lock file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What must be under that name for as long as the lock is to keep others out.
    pub(super) fn inode(&self) -> Inode {
        self.inode
    }
}

/// What the process that has the lock of `dir`, or the last one that had it, says of itself: `pillarbox serve, process 7`.
/// `None` if there was none, or it could not write its name.
pub fn find_holder(dir: &Path) -> Option<String> {
    let holder = std::fs::read_to_string(dir.join(FILE_NAME)).ok()?;
    Some(holder).filter(|holder| !holder.is_empty())
}

/// Whether a process has the lock of `dir` now. One that cannot be asked about is taken for free.
pub fn is_held(dir: &Path) -> bool {
    // Shared, and given back at once: it keeps out at most a process that starts in the same instant.
    File::open(dir.join(FILE_NAME)).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn held(dir: &Path, holder: String) -> OpenError {
    let holder = match holder.trim() {
        "" => "a process that does not say which".to_owned(),
        named => named.to_owned(),
    };
    OpenError::Held { dir: dir.to_path_buf(), holder }
}

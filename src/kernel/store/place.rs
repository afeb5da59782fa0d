//! Where the database lies: what may stand under its name, and whether anybody has it open.
//!
//! Everything here asks by path and opens nothing: closing a handle on the database would drop SQLite's locks.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, CWD};

use super::{OpenError, pragmas};

/// What a file is, whatever it is called: its device and its number there.
pub(super) type Inode = (u64, u64);

pub(super) fn inode(meta: &Metadata) -> Inode {
    (meta.dev(), meta.ino())
}

/// What is under this name now.
pub(super) fn find_inode(path: &Path) -> Option<Inode> {
    std::fs::metadata(path).ok().map(|meta| inode(&meta))
}

/// The database's size in bytes; 0 when it is not there.
///
/// SQLite names the WAL after the file it was given. Two names of one file have two of them, and whoever writes through
/// one name destroys what was written through the other; a link is therefore refused.
///
/// # Errors
/// [`OpenError::Linked`], or [`OpenError::Directory`] for what is no file or cannot be read.
pub(super) fn bytes(file: &Path) -> Result<u64, OpenError> {
    let unusable = |error| OpenError::unusable(file, error);
    let meta = match std::fs::symlink_metadata(file) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(unusable(error)),
    };
    if meta.is_dir() {
        return Err(unusable(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if meta.is_symlink() || meta.nlink() > 1 {
        return Err(OpenError::Linked { file: file.to_path_buf() });
    }
    match pragmas::files(file).iter().find_map(|part| denied(part, Access::READ_OK)) {
        Some(error) => Err(error),
        None => Ok(meta.len()),
    }
}

/// The directory or file that this user may not write, of those a writer needs.
pub(super) fn find_unwritable(file: &Path) -> Option<OpenError> {
    let dir = file.parent().and_then(|dir| denied(dir, Access::WRITE_OK | Access::EXEC_OK));
    dir.or_else(|| pragmas::files(file).iter().find_map(|part| denied(part, Access::READ_OK | Access::WRITE_OK)))
}

fn denied(path: &Path, access: Access) -> Option<OpenError> {
    match rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS) {
        Err(rustix::io::Errno::ACCESS) => Some(OpenError::unusable(path, io::ErrorKind::PermissionDenied.into())),
        _ => None,
    }
}

/// The journal of a change that was not made in WAL mode, as the very first one is.
pub(super) fn journal(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// A database that nobody has open: whoever has it open has its shared memory beside it. All of it is then in the file,
/// which can be read without making anything, on a full or a read-only disk too; but whoever does so holds no lock, and
/// must look again afterwards whether it was so all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Still {
    file: PathBuf,
    inode: Inode,
    bytes: u64,
    modified: SystemTime,
}

impl Still {
    /// `None` when somebody may have the file open, or something of it is elsewhere.
    pub(super) fn find(file: &Path) -> Option<Self> {
        let meta = std::fs::metadata(file).ok()?;
        let [_, wal, shared_memory] = pragmas::files(file);
        let elsewhere = [wal, journal(file)].iter().any(|part| std::fs::metadata(part).is_ok_and(|m| m.len() > 0));
        if elsewhere || std::fs::symlink_metadata(shared_memory).is_ok() {
            return None;
        }
        let modified = meta.modified().ok()?;
        Some(Self { file: file.to_path_buf(), inode: inode(&meta), bytes: meta.len(), modified })
    }

    /// Whether nobody has opened the file since.
    pub(super) fn lasts(&self) -> bool {
        Self::find(&self.file).as_ref() == Some(self)
    }
}

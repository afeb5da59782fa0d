//! Files and directories that nobody but their owner may read: leads and chats are in them.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// Makes `dir` and what is missing above it; one that is there is left as it is.
///
/// # Errors
/// The system's.
pub(super) fn make_directory(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(DIRECTORY).create(dir) {
        // What is there is not a directory; a link to nothing is not even that.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(match std::fs::metadata(dir) {
            Ok(_) => io::ErrorKind::NotADirectory.into(),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                io::Error::new(missing.kind(), "it is a link to something that is not there")
            }
            Err(unreadable) => unreadable,
        }),
        other => other,
    }
}

/// Makes an empty file, in place of one that is there.
///
/// # Errors
/// The system's.
pub(super) fn make_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE).open(path)?;
    restrict(path)
}

/// Takes the rights of everybody else away, if the file is there. By path: that does not open it.
///
/// # Errors
/// The system's.
pub(super) fn restrict(path: &Path) -> io::Result<()> {
    match std::fs::set_permissions(path, Permissions::from_mode(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

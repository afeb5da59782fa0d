//! Opening a data directory: everything that can be wrong with it is found here and said with what to do.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::lock::ProcessLock;
use super::{StoreError, disk, migrations, pragmas};
use crate::kernel::clock::UnixMs;

/// The database's name inside the data directory. A directory is configurable, the file is not: the WAL lies beside it.
pub const FILE_NAME: &str = "pillarbox.db";
/// "PLBX": marks the file as ours.
const APPLICATION_ID: i32 = 0x504C_4258;
/// Earlier ones can corrupt a file when a checkpoint meets a writer (the WAL-reset fault, fixed in 3.51.3).
const OLDEST_SQLITE: i32 = 3_051_003;

/// Why a data directory could not be opened. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory, or a file of ours in it, cannot be used.
    #[error("cannot use {}: {error}; check that it exists and belongs to the user pillarbox runs as", path.display())]
    Directory {
        /// What could not be used.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Another process serves this directory.
    #[error("{} is in use by: {holder}; stop that process first, or give this one another --data-dir", dir.display())]
    Held {
        /// The data directory.
        dir: PathBuf,
        /// What the holder says of itself.
        holder: String,
    },
    /// SQLite's locks do not hold on this file system.
    #[error("{} is on a network file system ({kind}), where SQLite's locks do not hold; move it to a local disk", dir.display())]
    Network {
        /// The data directory.
        dir: PathBuf,
        /// The file system's name.
        kind: &'static str,
    },
    /// The file was written by a later version.
    #[error(
        "{} has schema version {found}, this binary knows up to {known}; install the newer pillarbox again, or restore a copy from backups/",
        file.display()
    )]
    Newer {
        /// The database file.
        file: PathBuf,
        /// Its schema version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file belongs to another program.
    #[error("{} is a database of another program (application id {id:#x}); give pillarbox a directory of its own", file.display())]
    Foreign {
        /// The database file.
        file: PathBuf,
        /// Its application id.
        id: i32,
    },
    /// The file is not a database, or a damaged one.
    #[error("{} is damaged or not a database; it was left as it is: move it away and restore a backup", file.display())]
    Damaged {
        /// The database file.
        file: PathBuf,
    },
    /// There is nothing to read yet.
    #[error("there is no database in {}; `pillarbox serve` makes one, or name the right place with --data-dir", dir.display())]
    Missing {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file needs migrations, and this command does not make them.
    #[error("{} has schema version {found}, this binary needs {known}; run `pillarbox migrate` or restart the server", file.display())]
    Older {
        /// The database file.
        file: PathBuf,
        /// Its schema version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// A migration failed and was rolled back.
    #[error("migration {step} failed and was rolled back: {error}; the file is as it was")]
    Migration {
        /// Its number.
        step: i64,
        /// What SQLite said.
        error: Box<rusqlite_migration::Error>,
    },
    /// The SQLite that was linked is too old.
    #[error("the linked SQLite {0} is older than 3.51.3, which can corrupt a WAL file; build with the bundled one")]
    OldSqlite(&'static str),
    /// Any other failure of the store.
    #[error("cannot open the database: {0}")]
    Store(#[from] StoreError),
}

/// Who opens the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one process that serves it: takes the process lock, migrates, voids the leases of earlier boots.
    Owner(&'static str),
    /// A command beside it: reads, and makes writes of its own.
    Guest,
}

/// What opening found and did.
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) lock: Option<ProcessLock>,
    pub(super) copy: Option<PathBuf>,
}

pub(super) struct Opening<'a> {
    pub(super) dir: &'a Path,
    pub(super) role: Role,
    pub(super) now: UnixMs,
    pub(super) settings: &'a super::Settings,
}

impl Opening<'_> {
    pub(super) fn run(self) -> Result<Opened, OpenError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(OpenError::OldSqlite(rusqlite::version()));
        }
        let file = self.dir.join(FILE_NAME);
        let lock = match self.role {
            Role::Owner(name) => {
                make_directory(self.dir)?;
                refuse_network(self.dir)?;
                Some(ProcessLock::acquire(self.dir, name)?)
            }
            Role::Guest if !file.exists() => return Err(OpenError::Missing { dir: self.dir.to_path_buf() }),
            Role::Guest => None,
        };
        check_file(&file)?;
        let mut writer = self.open_writer(&file)?;
        let copy = match self.role {
            Role::Owner(_) => self.prepare(&mut writer, &file)?,
            Role::Guest => {
                let found = migrations::version(&writer)?;
                if found < migrations::newest() {
                    return Err(OpenError::Older { file, found, known: migrations::newest() });
                }
                None
            }
        };
        Ok(Opened { writer, lock, copy })
    }

    fn open_writer(&self, file: &Path) -> Result<Connection, OpenError> {
        pragmas::open_writer(file, self.settings.busy_timeout, self.settings.synchronous, self.settings.cache).map_err(
            |error| match error {
                StoreError::Damaged => OpenError::Damaged { file: file.to_path_buf() },
                other => OpenError::Store(other),
            },
        )
    }

    fn prepare(&self, writer: &mut Connection, file: &Path) -> Result<Option<PathBuf>, OpenError> {
        keep_private(file)?;
        let mark = writer.pragma_update(None, "application_id", APPLICATION_ID);
        mark.map_err(StoreError::from)?;
        migrations::apply(writer, self.dir, self.now)
    }
}

fn make_directory(dir: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| OpenError::Directory { path: dir.to_path_buf(), error })
}

fn refuse_network(dir: &Path) -> Result<(), OpenError> {
    match disk::network_file_system(dir) {
        Some(kind) => Err(OpenError::Network { dir: dir.to_path_buf(), kind }),
        None => Ok(()),
    }
}

/// Leads and chats are in it: nobody but the owner reads it. `chmod` by path does not open the file.
fn keep_private(file: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt;
    let private = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    private.map_err(|error| OpenError::Directory { path: file.to_path_buf(), error })
}

/// Looks at an existing file through a connection that cannot write, before anything is changed in it.
pub(super) fn check_file(file: &Path) -> Result<(), OpenError> {
    if std::fs::metadata(file).map_or(0, |meta| meta.len()) == 0 {
        return Ok(());
    }
    let damaged = |error: rusqlite::Error| match StoreError::from(error) {
        StoreError::Damaged => OpenError::Damaged { file: file.to_path_buf() },
        other => OpenError::Store(other),
    };
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(damaged)?;
    conn.pragma_update(None, "query_only", true).map_err(damaged)?;
    let id: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(damaged)?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(damaged)?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(OpenError::Foreign { file: file.to_path_buf(), id });
    }
    let found = migrations::version(&conn)?;
    if found > migrations::newest() {
        return Err(OpenError::Newer { file: file.to_path_buf(), found, known: migrations::newest() });
    }
    Ok(())
}

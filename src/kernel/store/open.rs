//! Opening a data directory: everything that can be wrong with it is found here and said with what to do.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::lock::ProcessLock;
use super::place::{self, Still};
use super::{StoreError, disk, migrations, pragmas, private, wal};
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
    /// The file, or the file system it is on, cannot be written.
    #[error("{} cannot be written; remount its file system read-write, or give the file to the user pillarbox runs as", file.display())]
    ReadOnly {
        /// The database file.
        file: PathBuf,
    },
    /// The file has another name, or its name is a link.
    #[error(
        "{} is a link, or has a second name; a database with two names is destroyed when both are used: name the real directory with --data-dir, or make a real copy",
        file.display()
    )]
    Linked {
        /// The database file.
        file: PathBuf,
    },
    /// A change to the file was cut off, and whoever only reads may not take it back.
    #[error("the last change to {} was cut off and must be taken back first; `pillarbox serve` or `pillarbox migrate` does that", file.display())]
    Unfinished {
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
    #[error("cannot open {}: {error}", file.display())]
    Store {
        /// The database file, or the copy of it.
        file: PathBuf,
        /// What the store met.
        #[source]
        error: StoreError,
    },
}

impl OpenError {
    /// What a failure of the system at `path` means.
    pub(super) fn unusable(path: &Path, error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { file: path.to_path_buf() },
            _ => Self::Directory { path: path.to_path_buf(), error },
        }
    }
}

/// Who opens the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one process that serves it: takes the process lock, migrates, voids the leases of earlier boots.
    Owner(&'static str),
    /// A command beside it: reads, and makes writes of its own.
    Guest,
    /// A command that only reads: it needs no room on the disk and no right to write.
    Reader,
}

/// What opening found and did.
pub(super) struct Opened {
    /// A reader has none.
    pub(super) writer: Option<Connection>,
    pub(super) lock: Option<ProcessLock>,
    pub(super) copy: Option<PathBuf>,
}

pub(super) struct Opening<'a> {
    pub(super) dir: &'a Path,
    pub(super) role: Role,
    pub(super) now: UnixMs,
    pub(super) settings: &'a super::Settings,
    pub(super) disk: &'a disk::Disk,
}

impl Opening<'_> {
    pub(super) fn run(self) -> Result<Opened, OpenError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(OpenError::OldSqlite(rusqlite::version()));
        }
        let file = self.dir.join(FILE_NAME);
        match self.role {
            Role::Owner(name) => {
                private::make_directory(self.dir).map_err(|error| OpenError::unusable(self.dir, error))?;
                refuse_network(self.dir)?;
                let lock = ProcessLock::acquire(self.dir, name)?;
                let (writer, copy) = self.own(&file)?;
                Ok(Opened { writer: Some(writer), lock: Some(lock), copy })
            }
            Role::Guest | Role::Reader => {
                refuse_network(self.dir)?;
                let (found, known) = (schema_of(self.dir)?, migrations::newest());
                if found < known {
                    return Err(OpenError::Older { file, found, known });
                }
                let writer = match self.role {
                    Role::Reader => None,
                    _ => Some(pragmas::open_writer(&file, self.settings).map_err(|error| explain(error, &file))?),
                };
                Ok(Opened { writer, lock: None, copy: None })
            }
        }
    }

    /// A disk that filled up while nobody served it is no reason not to serve: that is what the ballast is for.
    fn own(&self, file: &Path) -> Result<(Connection, Option<PathBuf>), OpenError> {
        match self.own_once(file) {
            Err(OpenError::Store { error: StoreError::DiskFull | StoreError::Io, .. }) if self.disk.drop_ballast() => {
                tracing::error!("the disk is full: the ballast was given up so that the database can be opened");
                self.own_once(file)
            }
            other => other,
        }
    }

    fn own_once(&self, file: &Path) -> Result<(Connection, Option<PathBuf>), OpenError> {
        if place::bytes(file)? > 0 && place::journal(file).exists() {
            // The very first change is not made in WAL mode, and the process may have died in it.
            pragmas::roll_back(file).map_err(|error| explain(error, file))?;
        }
        let is_new = place::bytes(file)? == 0;
        if is_new {
            make_empty(file)?;
        } else {
            check_file(file)?;
        }
        for part in pragmas::files(file) {
            private::restrict(&part).map_err(|error| OpenError::unusable(&part, error))?;
        }
        let mut writer = pragmas::open_writer(file, self.settings).map_err(|error| explain(error, file))?;
        mark(&writer).map_err(|error| explain(error, file))?;
        let copy = migrations::apply(&mut writer, file, self.now)?;
        if is_new || copy.is_some() {
            // So that the schema is in the file itself, where damage to it is seen. If not now, then later.
            let _ = wal::checkpoint(&writer);
        }
        Ok((writer, copy))
    }
}

/// The schema version of the database in `dir`, which is left as it is.
///
/// # Errors
/// [`OpenError`], as [`Db::open`](super::Db::open) has it. An older schema is none.
pub fn schema_of(dir: &Path) -> Result<i64, OpenError> {
    let file = dir.join(FILE_NAME);
    if place::bytes(&file)? == 0 {
        return Err(OpenError::Missing { dir: dir.to_path_buf() });
    }
    check_file(&file)
}

fn refuse_network(dir: &Path) -> Result<(), OpenError> {
    // The database may be a mount of its own.
    match disk::network_file_system(dir).or_else(|| disk::network_file_system(&dir.join(FILE_NAME))) {
        Some(kind) => Err(OpenError::Network { dir: dir.to_path_buf(), kind }),
        None => Ok(()),
    }
}

/// Makes the file, private before anything is in it. It is made under another name, since the database's own is never
/// opened but by SQLite.
///
/// A WAL without its database is what is left of one: SQLite would delete it, so it is kept from that.
fn make_empty(file: &Path) -> Result<(), OpenError> {
    let [_, wal, _] = pragmas::files(file);
    if std::fs::metadata(&wal).is_ok_and(|meta| meta.len() > 0) {
        return Err(OpenError::Damaged { file: file.to_path_buf() });
    }
    if file.exists() {
        return Ok(());
    }
    let unusable = |error| OpenError::unusable(file, error);
    let unnamed = file.with_extension("new");
    private::make_file(&unnamed).and_then(|()| std::fs::rename(&unnamed, file)).map_err(unusable)
}

/// Marks the file as ours. Only when it is not yet: that is a write, which a full disk would refuse.
fn mark(writer: &Connection) -> Result<(), StoreError> {
    let id: i32 = writer.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != APPLICATION_ID {
        writer.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(())
}

/// Looks at an existing file through a connection that cannot write, before anything is changed in it. Returns its
/// schema version.
fn check_file(file: &Path) -> Result<i64, OpenError> {
    let (id, tables, found) = look(file).map_err(|error| match error {
        StoreError::ReadOnly if place::journal(file).exists() => OpenError::Unfinished { file: file.to_path_buf() },
        error => explain(error, file),
    })?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(OpenError::Foreign { file: file.to_path_buf(), id });
    }
    if found > migrations::newest() {
        return Err(OpenError::Newer { file: file.to_path_buf(), found, known: migrations::newest() });
    }
    Ok(found)
}

/// The file's application id, number of tables and the like, and schema version.
fn look(file: &Path) -> Result<(i32, i64, i64), StoreError> {
    if let Some(still) = Still::find(file) {
        let seen = pragmas::open_without_wal(file).and_then(|conn| look_through(&conn));
        if still.lasts() {
            return seen;
        }
    }
    look_through(&pragmas::open_to_look(file)?)
}

fn look_through(conn: &Connection) -> Result<(i32, i64, i64), StoreError> {
    let id = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok((id, tables, migrations::version(conn)?))
}

/// What a failure means while the file is being opened.
pub(super) fn explain(error: StoreError, file: &Path) -> OpenError {
    match error {
        StoreError::Damaged => OpenError::Damaged { file: file.to_path_buf() },
        StoreError::ReadOnly => OpenError::ReadOnly { file: file.to_path_buf() },
        StoreError::Io if disk::is_read_only(file) => OpenError::ReadOnly { file: file.to_path_buf() },
        // SQLite does not tell a right that is missing from a disk that fails.
        StoreError::Io => place::find_unwritable(file).unwrap_or(OpenError::Store { file: file.to_path_buf(), error }),
        error => OpenError::Store { file: file.to_path_buf(), error },
    }
}

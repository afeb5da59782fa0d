//! Watches that the files are still the ones SQLite wrote, and that we are not the only ones writing them.
//!
//! A file that was truncated or overwritten under a running server must not be written any further: what is left of
//! it, and its WAL, are what a rescue has to work with. SQLite writes the database file in one situation only, while
//! it checkpoints, and the writer does that itself and only after a look here. So when the file's length or time has
//! changed, and neither our checkpoint nor another process can have done it, somebody else did, and the file is read
//! through. The look costs a `stat`.
//!
//! Windows: what is done to the file is noticed at the next look, within a tick (100 ms), before the next checkpoint,
//! and before the store is closed; commits made until then are in the WAL, which stays. What is done to it *during* a
//! checkpoint of ours or while another process commits is told from theirs only by its length and by what the probe
//! reads every second, a path of pages in each table. Damage to pages that are newer in the WAL loses nothing: the
//! next checkpoint writes them again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::place::{Inode, find_inode};
use super::{ProcessLock, StoreError, pragmas, wal};

const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Reading a large file through takes seconds; it gets at most this share of the writer's time, one part in so many.
const CHECK_SHARE: u32 = 10;

/// Verdicts that are read: behind so many rows that break a CHECK, damage is met by the probe or a commit.
const MOST_COMPLAINTS: u32 = 10_000;

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Another process has committed since the last look.
    pub(super) foreign_commit: bool,
    /// Whether the file may be written: nobody but SQLite has changed it, as far as can be told.
    pub(super) trust: Trust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Sure,
    /// Somebody changed the file, and reading it through has to wait its turn.
    Doubt,
}

/// What tells one state of the database file from another without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

pub(super) struct FileGuard {
    path: PathBuf,
    probe: Connection,
    /// The database, its WAL, its shared memory and the lock file: none may be removed or replaced. Without the lock
    /// file another server would start, and send what this one sends.
    expected: Vec<(PathBuf, Option<Inode>)>,
    /// The file as SQLite left it.
    left: Stamp,
    /// How many frames of the WAL had been moved into it then.
    backfilled: i64,
    data_version: i64,
    probed_at: Instant,
    checked: Option<Checked>,
}

/// When the file was last read through, and how long that took.
struct Checked {
    at: Instant,
    took: Duration,
}

impl FileGuard {
    /// Starts watching the file that `writer` has open, and the lock it is held with, after a first look at its tables.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a table cannot be read.
    pub(super) fn new(path: &Path, writer: &Connection, lock: Option<&ProcessLock>) -> Result<Self, StoreError> {
        let probe = pragmas::open_reader(path)?;
        let files = pragmas::files(path).map(|file| (file.clone(), find_inode(&file)));
        let lock = lock.map(|lock| (lock.path().to_path_buf(), Some(lock.inode())));
        let data_version = data_version(writer)?;
        let guard = Self {
            path: path.to_path_buf(),
            probe,
            expected: files.into_iter().chain(lock).collect(),
            left: stamp(path)?,
            backfilled: wal::state(writer)?.backfilled,
            data_version,
            probed_at: Instant::now(),
            checked: None,
        };
        guard.read_every_table()?;
        Ok(guard)
    }

    /// Looks at the files, and whether another process has committed since the last look.
    ///
    /// # Errors
    /// [`StoreError::Displaced`] when a file is no longer there, [`StoreError::Damaged`] when it is no longer what
    /// SQLite left there.
    pub(super) fn look(&mut self, writer: &Connection) -> Result<Seen, StoreError> {
        if self.expected.iter().any(|(path, inode)| find_inode(path) != *inode) {
            return Err(StoreError::Displaced);
        }
        let version = data_version(writer)?;
        let foreign_commit = std::mem::replace(&mut self.data_version, version) != version;
        let trust = self.look_at_stamp(writer, foreign_commit)?;
        if self.probed_at.elapsed() >= PROBE_EVERY {
            self.probed_at = Instant::now();
            self.read_every_table()?;
        }
        Ok(Seen { foreign_commit, trust })
    }

    /// Remembers the file as our own checkpoint, which moved `backfilled` frames, has left it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is shorter than that checkpoint made it.
    pub(super) fn checkpointed(&mut self, writer: &Connection, backfilled: i64) -> Result<(), StoreError> {
        let now = stamp(&self.path)?;
        self.refuse_cut(writer, now)?;
        self.left = now;
        self.backfilled = backfilled;
        Ok(())
    }

    fn look_at_stamp(&mut self, writer: &Connection, foreign_commit: bool) -> Result<Trust, StoreError> {
        let now = stamp(&self.path)?;
        if now == self.left {
            return Ok(Trust::Sure);
        }
        self.refuse_cut(writer, now)?;
        let backfilled = wal::state(writer)?.backfilled;
        // Zero after each fresh start of the WAL, which is ours or comes with a foreign commit.
        let moved = backfilled != self.backfilled && backfilled != 0;
        if foreign_commit || moved {
            // Another process checkpoints: it could not have without moving the mark, or without having committed.
            self.read_every_table()?;
        } else if self.checked.as_ref().is_some_and(|last| last.at.elapsed() < last.took * CHECK_SHARE) {
            return Ok(Trust::Doubt);
        } else {
            self.read_through()?;
        }
        self.left = now;
        self.backfilled = backfilled;
        Ok(Trust::Sure)
    }

    /// SQLite shortens the file only to what the database needs; anything shorter was cut by somebody else. Unless it
    /// has grown again since: then what is missing is in the WAL, which only reading all of it can tell.
    fn refuse_cut(&mut self, writer: &Connection, now: Stamp) -> Result<(), StoreError> {
        if now.bytes >= self.left.bytes {
            return Ok(());
        }
        let wal = wal::state(writer)?;
        let needed: i64 =
            writer.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| {
                row.get(0)
            })?;
        match stamp(&self.path)?.bytes {
            0 => Err(StoreError::Damaged),
            bytes if bytes >= needed.unsigned_abs() => Ok(()),
            _ if wal.backfilled == wal.pages => Err(StoreError::Damaged),
            _ => self.read_through(),
        }
    }

    /// Reads a path of pages of every table afresh, so that garbage in the file is met here rather than in a commit.
    fn read_every_table(&self) -> Result<(), StoreError> {
        self.probe.execute_batch("PRAGMA shrink_memory;")?;
        let mut tables = self.probe.prepare_cached(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name <> 'sqlite_schema'",
        )?;
        let names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names {
            let name = name.replace('"', "\"\"");
            let mut first = self.probe.prepare_cached(&format!("SELECT * FROM \"{name}\" LIMIT 1"))?;
            first.query([])?.next()?;
        }
        Ok(())
    }

    fn read_through(&mut self) -> Result<(), StoreError> {
        tracing::warn!("the database file has changed and no commit explains it: it is being read through");
        let begun = Instant::now();
        self.refuse_other_head()?;
        self.probe.execute_batch("PRAGMA shrink_memory;")?;
        let mut check = self.probe.prepare(&format!("PRAGMA quick_check({MOST_COMPLAINTS})"))?;
        let verdicts: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        drop(check);
        let took = begun.elapsed();
        self.checked = Some(Checked { at: Instant::now(), took });
        if verdicts.iter().any(|verdict| is_damage(verdict)) {
            return Err(StoreError::Damaged);
        }
        tracing::info!(took_ms = took.as_secs_f64() * 1e3, "the database file is whole");
        Ok(())
    }

    /// Looks at the head of the file itself. While its first page is in the WAL as well, SQLite would not.
    fn refuse_other_head(&self) -> Result<(), StoreError> {
        let alone = pragmas::open_without_wal(&self.path)?;
        match alone.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Err(StoreError::Damaged),
            // Any other complaint may be due to what the WAL alone knows.
            _ => Ok(()),
        }
    }
}

/// Whether a verdict of `quick_check` is about the file. That a row breaks a CHECK or has a value of another type is not:
/// some program switched the checks off when it wrote it.
fn is_damage(verdict: &str) -> bool {
    let is_of_a_row = verdict.starts_with("CHECK constraint failed in ") || verdict.contains(" value in ");
    verdict != "ok" && !is_of_a_row
}

/// Whether SQLite may move the WAL into the file when the last connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnClose {
    Checkpoint,
    LeaveAlone,
}

/// Says what closing `conn` does to the file.
///
/// # Errors
/// The store's; practically never.
pub(super) fn set_on_close(conn: &Connection, on_close: OnClose) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on_close == OnClose::LeaveAlone)?;
    Ok(())
}

fn stamp(path: &Path) -> Result<Stamp, StoreError> {
    let meta = std::fs::metadata(path).map_err(|_| StoreError::Displaced)?;
    let modified = meta.modified().map_err(|_| StoreError::Io)?;
    Ok(Stamp { bytes: meta.len(), modified })
}

fn data_version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

//! Watches that the file is still the one we wrote, and that we are not the only ones writing it.
//!
//! A file that was truncated or overwritten under a running server must not be written any further: what is left of
//! it, and its WAL, are what a rescue has to work with. Its length is looked at every tick, its pages every second
//! through a connection that keeps no cache.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{StoreError, pragmas};

const PROBE_EVERY: Duration = Duration::from_secs(1);

pub(super) struct FileGuard {
    path: PathBuf,
    probe: Connection,
    longest: u64,
    data_version: i64,
    probed_at: Instant,
}

impl FileGuard {
    pub(super) fn new(path: &Path, writer: &Connection) -> Result<Self, StoreError> {
        let probe = pragmas::open_reader(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            probe,
            longest: length(path).unwrap_or(0),
            data_version: data_version(writer)?,
            probed_at: Instant::now(),
        })
    }

    /// Whether another process has committed since the last look.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is no longer what SQLite left there.
    pub(super) fn look(&mut self, writer: &Connection) -> Result<bool, StoreError> {
        self.look_at_length(writer)?;
        if self.probed_at.elapsed() >= PROBE_EVERY {
            self.probed_at = Instant::now();
            self.read_every_table()?;
        }
        let version = data_version(writer)?;
        Ok(std::mem::replace(&mut self.data_version, version) != version)
    }

    /// SQLite shortens the file only to what the database needs; anything shorter was cut by somebody else.
    fn look_at_length(&mut self, writer: &Connection) -> Result<(), StoreError> {
        let Some(now) = length(&self.path) else { return Err(StoreError::Damaged) };
        if now < self.longest {
            let needed: i64 = writer.query_row(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                [],
                |row| row.get(0),
            )?;
            if now < needed.unsigned_abs() {
                return Err(StoreError::Damaged);
            }
        }
        self.longest = now;
        Ok(())
    }

    /// Reads a path of pages of every table afresh, so that garbage in the file is met here rather than in a commit.
    fn read_every_table(&self) -> Result<(), StoreError> {
        self.probe.execute_batch("PRAGMA shrink_memory;")?;
        let mut tables = self.probe.prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        let names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names {
            let mut first = self.probe.prepare_cached(&format!("SELECT * FROM \"{name}\" LIMIT 1"))?;
            first.query([])?.next()?;
        }
        Ok(())
    }

    /// Keeps SQLite from moving the WAL into a damaged file when the last connection closes.
    pub(super) fn leave_file_alone(&self, writer: &Connection) {
        for conn in [writer, &self.probe] {
            if let Err(error) = conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
                tracing::error!(%error, "could not keep SQLite from checkpointing into the damaged file");
            }
        }
    }
}

fn length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|meta| meta.len())
}

fn data_version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

//! The read door: a pool of connections that cannot write.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use r2d2_sqlite::SqliteConnectionManager;
use tokio::sync::Semaphore;

use rusqlite::OpenFlags;

use super::place::Still;
use super::{Shared, StoreError, Tx, pragmas};

type Pool = r2d2::Pool<SqliteConnectionManager>;

/// What the connections hold on to.
pub(super) enum Reading {
    /// The shared memory, which they may write: beside a writer of this process.
    Shared,
    /// The shared memory of whoever writes the file, as far as this user's rights allow.
    Foreign,
    /// The file alone, for as long as nobody opens it.
    Still(Still),
}

impl Reading {
    /// How somebody reads who writes nothing.
    pub(super) fn of_reader(file: &Path) -> Self {
        Still::find(file).map_or(Self::Foreign, Self::Still)
    }

    fn is_undisturbed(&self) -> bool {
        !matches!(self, Self::Still(still) if !still.lasts())
    }
}

pub(super) struct Readers {
    reading: Arc<Reading>,
    /// `None` once closed.
    pool: Mutex<Option<Pool>>,
    /// As many as connections, so that nobody waits for one on a blocking thread.
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: &Path, count: u32, reading: Reading) -> Self {
        let count = count.max(1);
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let manager = match &reading {
            Reading::Shared => SqliteConnectionManager::file(file).with_flags(pragmas::reader_flags()),
            Reading::Foreign => SqliteConnectionManager::file(file).with_flags(read_only),
            Reading::Still(_) => {
                SqliteConnectionManager::file(pragmas::immutable_uri(file)).with_flags(pragmas::flags_without_wal())
            }
        };
        let manager = manager.with_init(pragmas::prepare_reader);
        let pool = r2d2::Pool::builder()
            .max_size(count)
            .min_idle(Some(0))
            .max_lifetime(None)
            .test_on_check_out(false)
            .connection_timeout(Duration::from_secs(2))
            .build_unchecked(manager);
        let permits = Semaphore::new(usize::try_from(count).unwrap_or(1));
        Self { reading: Arc::new(reading), pool: Mutex::new(Some(pool)), permits: Arc::new(permits) }
    }

    pub(super) async fn read<T, E, F>(&self, shared: Arc<Shared>, work: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let pool = self.lock().clone().ok_or(StoreError::Closed)?;
        let how = Arc::clone(&self.reading);
        let reading = tokio::task::spawn_blocking(move || {
            // Given back with the connection, also when the caller has gone away meanwhile.
            let _permit = permit;
            let read = read_blocking(&pool, &shared, work);
            // Without a lock, what was read beside somebody who writes may be anything.
            if how.is_undisturbed() { read } else { Err(StoreError::Busy.into()) }
        });
        match reading.await {
            Ok(result) => result,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(StoreError::Closed.into()),
        }
    }

    /// Refuses further reads; those under way are finished.
    pub(super) fn close(&self) {
        self.permits.close();
        drop(self.lock().take());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Pool>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_blocking<T, E>(pool: &Pool, shared: &Shared, work: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E>
where
    E: From<StoreError>,
{
    let unopened = |_| shared.health.stopped().unwrap_or(StoreError::Busy);
    let conn = pool.get().map_err(unopened)?;
    let snapshot = Snapshot::begin(&conn)?;
    let tx = Tx::new(snapshot.conn, shared.clock.now(), &shared.boot, &shared.recorders);
    let result = work(&tx);
    if let Some(fault @ StoreError::Damaged) = tx.take_fault() {
        shared.meet(fault);
    }
    result
}

/// A read transaction, ended however its closure ended, so that no snapshot pins the WAL.
struct Snapshot<'c> {
    conn: &'c rusqlite::Connection,
}

impl<'c> Snapshot<'c> {
    fn begin(conn: &'c rusqlite::Connection) -> Result<Self, StoreError> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self { conn })
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let ended = |conn: &rusqlite::Connection| conn.prepare_cached("ROLLBACK")?.execute([]);
        if !self.conn.is_autocommit() && ended(self.conn).is_err() {
            tracing::error!("a read transaction could not be ended");
        }
    }
}

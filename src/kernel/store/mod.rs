//! The store: one file, two doors.
//!
//! [`Db::write`] and [`Db::settle`] are the write door, for new work and for the finishing of work; [`Db::read`] is the
//! other. There is no third. Writes that wait at the same moment share one commit (`writer.rs`); reads go through a pool
//! of `query_only` connections. Neither runs on an async worker thread, and no network call can happen inside, since
//! the closures are not async. Wakes and events belong to the transaction ([`Tx`]).
//!
//! A store fault (busy, full, damaged, I/O) voids the whole batch: nobody of it is told success. `settle` then tries
//! again in memory until it lands; `write` hands the fault to its caller. The database files are never opened by path
//! in this process: closing such a handle would drop the locks SQLite holds.
//!
//! # Guarantees
//! - A failing or panicking write leaves its neighbours alone: `tests/it/store.rs::a_failing_or_panicking_write_leaves_its_neighbours_alone`.
//! - What callers are told is what is in the file: `tests/it/store_model.rs::what_callers_are_told_is_what_is_in_the_file`.
//! - A wake fires after the commit or not at all: `tests/it/store.rs::a_wake_fires_after_the_commit_and_never_for_what_was_taken_back`.
//! - A full disk stops intake and not settles: `tests/it/store_faults.rs::a_full_disk_stops_intake_and_not_settles_and_heals_without_reopening`.
//! - A damaged file is not written any more, not even by closing it: `tests/it/damage.rs::a_file_damaged_under_load`.
//! - Nor is one that was moved, or whose lock file is gone: `tests/it/damage.rs::a_lock_file_that_was_removed_or_replaced`.
//! - A first start that was cut off is no obstacle: `tests/it/opening.rs::a_change_that_was_cut_off_is_taken_back_by_the_owner`.
//!
//! # Windows
//! - The process dies before the commit: nothing of the batch is in the file, and nobody was told otherwise.
//! - It dies after the commit and before the answer: the write is there and its caller does not know. Who must not
//!   write twice brings a key of its own.
//! - Damage done by others is noticed within a tick: `guard.rs` says what may happen until then.

mod disk;
mod error;
mod guard;
mod health;
mod lock;
mod migrations;
mod open;
mod place;
mod pragmas;
mod private;
mod queue;
mod readers;
mod settings;
mod shell;
mod text;
mod tx;
mod wakes;
mod wal;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub use error::StoreError;
pub use lock::{ProcessLock, find_holder, is_held};
pub use migrations::newest as newest_schema;
pub use open::{FILE_NAME, OpenError, Role, schema_of};
pub use rusqlite::params_from_iter;
pub use settings::{Settings, Synchronous};
pub use shell::{Access, Cell, Shell, ShellError, Shown, sqlite_version};
pub use text::lossy_text;
pub use tx::{Recorder, Tx, Wake};

use crate::kernel::clock::Clock;
use crate::kernel::id;
use disk::LastWrite;
use queue::{Class, Outcome, Queue, Write};
use readers::{Readers, Reading};

/// A handle on the open store; clones share it.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    /// A reader has none.
    queue: Option<Arc<Queue>>,
    shared: Arc<Shared>,
    readers: Readers,
    writer: Mutex<Option<JoinHandle<()>>>,
    copy: Option<PathBuf>,
    dir: PathBuf,
}

/// What the doors and the writer thread both need.
struct Shared {
    clock: Clock,
    boot: String,
    recorders: Vec<Recorder>,
    health: health::Health,
    wakes: wakes::Wakes,
    disk: disk::Disk,
    /// That there is no ballast has been said.
    no_ballast_told: AtomicBool,
}

impl Shared {
    /// Takes note of a failure of the store, says so once, and gives up the ballast when that is what helps. Returns
    /// what the failure was, as far as can be told.
    fn meet(&self, error: StoreError) -> StoreError {
        let error = match error {
            StoreError::Io if self.disk.is_read_only() => StoreError::ReadOnly,
            other => other,
        };
        if matches!(error, StoreError::DiskFull | StoreError::Io) && self.disk.drop_ballast() {
            tracing::error!("the disk is full: the ballast was given up so that work under way can be finished");
        }
        if matches!(error, StoreError::DiskFull) {
            self.disk.found_full();
            self.health.set_low(true);
        }
        if self.health.failed(&error) {
            tracing::error!(%error, "the store cannot write");
        }
        error
    }

    fn look_at_disk(&self) {
        let is_failing = self.health.is_failing();
        let last_write = if is_failing { LastWrite::Failed } else { LastWrite::Committed };
        let low = self.disk.is_still_full(last_write) || self.disk.is_low(self.health.is_low());
        if self.health.set_low(low) {
            match low {
                true => tracing::warn!("the disk is nearly full: new work is refused until space is freed"),
                false => tracing::info!("there is room on the disk again"),
            }
        }
        if low || is_failing {
            return;
        }
        let laid = self.disk.lay_ballast();
        if self.no_ballast_told.swap(laid.is_err(), Ordering::Relaxed) {
            return;
        }
        if let Err(error) = laid {
            tracing::warn!(%error, "there is no ballast for a full disk: the file `ballast` cannot be written");
        }
    }
}

/// How often a settle that met a failing store is tried again, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Db {
    /// Opens the data directory `dir`, making or migrating the database if `role` owns it. A [`Role::Reader`] is answered
    /// [`StoreError::ReadOnly`] by every write, and woken by nothing.
    ///
    /// # Errors
    /// [`OpenError`], whose text says what to do.
    pub fn open(
        dir: &Path,
        role: Role,
        settings: &Settings,
        clock: Clock,
        recorders: Vec<Recorder>,
    ) -> Result<Self, OpenError> {
        let reserve = if matches!(role, Role::Owner(_)) { disk::Reserve::Kept } else { disk::Reserve::Foreign };
        let disk = disk::Disk::new(dir, settings.min_free, settings.ballast, reserve);
        let opened = open::Opening { dir, role, now: clock.now(), settings, disk: &disk }.run()?;
        let file = dir.join(FILE_NAME);
        let boot = id::uuid_v7(clock.now());
        let (health, wakes) = Default::default();
        let no_ballast_told = AtomicBool::new(false);
        let shared = Arc::new(Shared { clock, boot, recorders, health, wakes, disk, no_ballast_told });
        let (queue, writer, reading) = match opened.writer {
            Some(conn) => {
                let queue = Arc::new(Queue::new(settings.queue));
                let thread = start_writer(&file, conn, opened.lock, &queue, &shared)?;
                (Some(queue), Some(thread), Reading::Shared)
            }
            None => (None, None, Reading::of_reader(&file)),
        };
        Ok(Self(Arc::new(Inner {
            queue,
            shared,
            readers: Readers::new(&file, settings.readers, reading),
            writer: Mutex::new(writer),
            copy: opened.copy,
            dir: dir.to_path_buf(),
        })))
    }

    /// Writes new work. The closure runs in `BEGIN IMMEDIATE` on the writer thread and is answered after the commit;
    /// its `Err` takes back what it wrote, and only that. A panic in it is re-raised here.
    ///
    /// # Errors
    /// The closure's own, or the store's: then nothing was written.
    pub async fn write<T, E>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        if self.0.shared.health.is_low() {
            return Err(StoreError::DiskLow.into());
        }
        let mut work = Some(work);
        let once = move |tx: &Tx<'_>| match work.take() {
            Some(work) => work(tx),
            None => Err(StoreError::Closed.into()),
        };
        match self.submit(Class::Intake, once).await {
            Ok((_, outcome)) => finish(outcome),
            Err(error) => Err(error.into()),
        }
    }

    /// Finishes work under way: as [`Db::write`], but never refused by a full queue or a low disk, and tried again for
    /// as long as the store fails in a way that may pass. The closure may therefore run more than once.
    ///
    /// # Errors
    /// The closure's own; [`StoreError::Damaged`], [`StoreError::Displaced`] or [`StoreError::Closed`] when it will never land.
    pub async fn settle<T, E, F>(&self, mut work: F) -> Result<T, E>
    where
        F: FnMut(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let mut pause = Duration::from_millis(10);
        loop {
            let (back, outcome) = self.submit(Class::Settle, work).await.map_err(E::from)?;
            match outcome {
                Outcome::Store(error) if error.is_transient() => {
                    work = back;
                    // Real time: the disk does not follow a moved clock.
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                other => return finish(other),
            }
        }
    }

    /// Reads one consistent snapshot on a connection that cannot write.
    ///
    /// # Errors
    /// The closure's own, or the store's.
    pub async fn read<T, E>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.0.readers.read(Arc::clone(&self.0.shared), work).await
    }

    async fn submit<T, E, F>(&self, class: Class, work: F) -> Result<(F, Outcome<T, E>), StoreError>
    where
        F: FnMut(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let queue = self.0.queue.as_ref().ok_or(StoreError::ReadOnly)?;
        let (write, answer) = Write::new(work);
        queue.push(class, Box::new(write))?;
        let answer = answer.await.map_err(|_| StoreError::Closed)?;
        Ok((answer.work, answer.outcome))
    }

    /// A signal that is set whenever a transaction that named `topic`, or one of another process, has been committed.
    pub fn subscribe(&self, topic: Wake) -> Arc<Notify> {
        self.0.shared.wakes.subscribe(topic)
    }

    /// Whether the store can write right now: a real commit, tried once.
    ///
    /// # Errors
    /// What stands in the way.
    pub async fn probe(&self) -> Result<(), StoreError> {
        if let Some(why) = self.0.shared.health.stopped() {
            return Err(why);
        }
        let touch = |tx: &Tx<'_>| tx.execute("UPDATE store_probe SET probed_at = ?1", [tx.now()]).map(|_| ());
        let (_, outcome) = self.submit(Class::Settle, touch).await?;
        finish(outcome)
    }

    /// Whether new work is refused because the disk is nearly full.
    pub fn is_low_on_disk(&self) -> bool {
        self.0.shared.health.is_low()
    }

    /// The copy that was made before migrating, if one was.
    pub fn migration_copy(&self) -> Option<&Path> {
        self.0.copy.as_deref()
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The id of this process's start, which leases carry.
    pub fn boot(&self) -> &str {
        &self.0.shared.boot
    }

    /// The clock the store reads.
    pub fn clock(&self) -> &Clock {
        &self.0.shared.clock
    }

    /// Refuses further reads and writes, does the writes that wait, empties the WAL and lets go of the directory. A
    /// store that is dropped without this does the same a little later.
    pub async fn close(&self) {
        self.0.close_queue();
        self.0.readers.close();
        let thread = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = tokio::task::spawn_blocking(move || thread.is_none_or(|thread| thread.join().is_ok()));
        if !ended.await.unwrap_or(false) {
            tracing::error!("the writer thread ended with a panic");
        }
    }
}

impl Inner {
    fn close_queue(&self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The thread is not waited for: a closure it runs may hold the last handle. It has the process lock, and
        // keeps it until the file is closed.
        self.close_queue();
    }
}

fn start_writer(
    file: &Path,
    conn: rusqlite::Connection,
    lock: Option<ProcessLock>,
    queue: &Arc<Queue>,
    shared: &Arc<Shared>,
) -> Result<JoinHandle<()>, OpenError> {
    let guard = guard::FileGuard::new(file, &conn, lock.as_ref()).map_err(|error| open::explain(error, file))?;
    shared.look_at_disk();
    let writer = writer::Writer {
        guard,
        conn,
        queue: Arc::clone(queue),
        shared: Arc::clone(shared),
        checkpoints: wal::Schedule::default(),
        looked_at: Instant::now(),
        lock,
    };
    let thread = std::thread::Builder::new().name("writer".into()).spawn(move || writer.run());
    thread.map_err(|error| OpenError::unusable(file, error))
}

fn finish<T, E: From<StoreError>>(outcome: Outcome<T, E>) -> Result<T, E> {
    match outcome {
        Outcome::Ran(result) => result,
        Outcome::Panicked(panic) => std::panic::resume_unwind(panic),
        Outcome::Store(error) => Err(error.into()),
    }
}

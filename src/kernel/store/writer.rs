//! The writer thread: one connection, one batch of waiting writes per commit.
//!
//! A commit with `synchronous=FULL` costs a disk flush whatever is in it, so writes that wait at the same moment share
//! one, each in its own savepoint, and are answered after it. Measured best for async callers: a thread of its own
//! that is notified only when it sleeps. Its naps also serve the store's only timer: looking whether another process
//! has committed, whether the disk is low, and whether the file is still the one we wrote.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::guard::FileGuard;
use super::queue::{Queue, Queued, Taken, Verdict};
use super::{Recorder, Shared, StoreError, Tx, Wake};

/// How often the writer looks around: a commit of another process is noticed within this time.
const TICK: Duration = Duration::from_millis(100);
/// A batch is committed when it has run this long, so that its first caller does not wait for its last.
const BATCH_TIME: Duration = Duration::from_millis(5);
/// And when it has this many writes, which bounds what one failed commit takes back.
const BATCH_WRITES: usize = 1024;

pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) queue: Arc<Queue>,
    pub(super) shared: Arc<Shared>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) guard: FileGuard,
    pub(super) looked_at: Instant,
}

/// A batch that was committed: everyone who was in it, and whom to wake.
struct Committed {
    ran: Vec<Box<dyn Queued>>,
    wakes: Vec<Wake>,
}

/// A batch that was not committed: why, and everyone who was in it.
struct Failed {
    error: StoreError,
    ran: Vec<Box<dyn Queued>>,
}

impl Writer {
    /// Serves the queue until it is closed and empty.
    pub(super) fn run(mut self) {
        loop {
            match self.queue.take(TICK) {
                Taken::Writes(writes) => self.serve(writes),
                Taken::Idle => {}
                Taken::Closed => break,
            }
            if self.looked_at.elapsed() >= TICK {
                self.look_around();
            }
        }
        self.finish();
    }

    fn serve(&mut self, mut waiting: VecDeque<Box<dyn Queued>>) {
        while !waiting.is_empty() {
            if self.shared.health.is_damaged() {
                waiting.drain(..).for_each(|write| write.answer(Err(StoreError::Damaged)));
                return;
            }
            let started = Instant::now();
            match self.batch(&mut waiting, started) {
                Ok(Committed { ran, wakes }) => {
                    metrics::histogram!("pillarbox_commit_batch_size").record(size_as_f64(ran.len()));
                    metrics::histogram!("pillarbox_commit_seconds").record(started.elapsed().as_secs_f64());
                    self.shared.health.committed();
                    ran.into_iter().for_each(|write| write.answer(Ok(())));
                    self.shared.wakes.fire(&wakes);
                }
                Err(failed) => {
                    self.shared.meet(&failed.error);
                    failed.ran.into_iter().for_each(|write| write.answer(Err(failed.error.echo())));
                }
            }
        }
    }

    /// One transaction over as many of `waiting`, and of those that join meanwhile, as a batch may have.
    fn batch(&mut self, waiting: &mut VecDeque<Box<dyn Queued>>, started: Instant) -> Result<Committed, Failed> {
        let mut ran = Vec::with_capacity(waiting.len());
        let mut wakes = Vec::new();
        if let Err(error) = self.statement("BEGIN IMMEDIATE") {
            ran.extend(waiting.drain(..));
            return Err(Failed { error, ran });
        }
        while ran.len() < BATCH_WRITES && started.elapsed() < BATCH_TIME {
            let Some(mut write) = waiting.pop_front() else {
                *waiting = self.queue.take_more();
                if waiting.is_empty() {
                    break;
                }
                continue;
            };
            let done = self.one(write.as_mut(), &mut wakes);
            ran.push(write);
            if let Err(error) = done {
                return Err(self.give_up(error, ran));
            }
        }
        match self.statement("COMMIT") {
            Ok(()) => Ok(Committed { ran, wakes }),
            Err(error) => Err(self.give_up(error, ran)),
        }
    }

    /// Runs one write in its savepoint. An error means that the transaction as a whole no longer stands.
    fn one(&self, write: &mut dyn Queued, wakes: &mut Vec<Wake>) -> Result<(), StoreError> {
        self.statement("SAVEPOINT write")?;
        let tx = Tx::new(&self.conn, self.shared.clock.now(), &self.shared.boot, &self.recorders);
        let verdict = write.run(&tx);
        if let Some(fault) = tx.take_fault() {
            return Err(fault);
        }
        // A full disk rolls the whole transaction back on its own, the neighbours' savepoints with it.
        if self.conn.is_autocommit() {
            return Err(StoreError::Io);
        }
        match verdict {
            Verdict::Keep => {
                for wake in tx.into_wakes() {
                    if !wakes.contains(&wake) {
                        wakes.push(wake);
                    }
                }
            }
            Verdict::Undo => self.statement("ROLLBACK TO write")?,
        }
        self.statement("RELEASE write")
    }

    fn give_up(&self, error: StoreError, ran: Vec<Box<dyn Queued>>) -> Failed {
        if !self.conn.is_autocommit() {
            // If even this fails the connection is of no use, and the next BEGIN says so.
            let _ = self.statement("ROLLBACK");
        }
        Failed { error, ran }
    }

    fn statement(&self, sql: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn look_around(&mut self) {
        self.looked_at = Instant::now();
        metrics::gauge!("pillarbox_write_queue").set(size_as_f64(self.queue.len()));
        if self.shared.health.is_damaged() {
            return;
        }
        self.shared.look_at_disk();
        match self.guard.look(&self.conn) {
            Ok(true) => self.shared.wakes.fire_all(),
            Ok(false) => {}
            Err(error) => self.shared.meet(&error),
        }
    }

    fn finish(self) {
        if self.shared.health.is_damaged() {
            self.guard.leave_file_alone(&self.conn);
            return;
        }
        // Both are housekeeping: what they would do is done at the next start or checkpoint.
        let _ = self.conn.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);");
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of queues, far below 2^52")]
fn size_as_f64(size: usize) -> f64 {
    size as f64
}

//! The writer thread: one connection, one batch of waiting writes per commit.
//!
//! A commit with `synchronous=FULL` costs a disk flush whatever is in it, so writes that wait at the same moment share
//! one, each in its own savepoint, and are answered after it. Measured best for async callers: a thread of its own
//! that is notified only when it sleeps. Between batches it looks around ten times a second: whether another process
//! has committed, whether the disk is low, whether the file is still the one we wrote, and whether the WAL is due to be
//! moved into it. Callers are answered before any of that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::guard::{self, FileGuard, OnClose, Trust};
use super::queue::{Queue, Queued, Taken, Verdict};
use super::{ProcessLock, Shared, StoreError, Tx, Wake, wal};

/// How often the writer looks around: a commit of another process is noticed within this time.
const TICK: Duration = Duration::from_millis(100);
/// A batch is committed when it has run this long, so that its first caller does not wait for its last.
const BATCH_TIME: Duration = Duration::from_millis(5);
/// And when it has this many writes, which bounds what one failed commit takes back.
const BATCH_WRITES: usize = 1024;

pub(super) struct Writer {
    /// Before `conn`: fields are dropped in their order, and the connection closed last tidies the WAL away.
    pub(super) guard: FileGuard,
    pub(super) conn: Connection,
    pub(super) queue: Arc<Queue>,
    pub(super) shared: Arc<Shared>,
    pub(super) checkpoints: wal::Schedule,
    pub(super) looked_at: Instant,
    /// The owner's, and the last to be let go of. A guest has none.
    pub(super) lock: Option<ProcessLock>,
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
        // Should this thread ever panic, nobody must wait for it.
        let _leaving = Leaving(Arc::clone(&self.queue));
        loop {
            match self.queue.take(TICK) {
                Taken::Writes(writes) => self.serve(writes),
                Taken::Idle => self.look_around_when_due(),
                Taken::Closed => break,
            }
        }
        self.finish();
    }

    fn serve(&mut self, mut waiting: VecDeque<Box<dyn Queued>>) {
        while !waiting.is_empty() {
            self.look_around_when_due();
            if let Some(why) = self.shared.health.stopped() {
                waiting.drain(..).for_each(|write| write.answer(Err(why.echo())));
                return;
            }
            let started = Instant::now();
            match self.batch(&mut waiting, started) {
                Ok(Committed { ran, wakes }) => {
                    let writes = ran.len();
                    metrics::histogram!("pillarbox_commit_batch_size").record(size_as_f64(writes));
                    metrics::histogram!("pillarbox_commit_seconds").record(started.elapsed().as_secs_f64());
                    self.shared.health.committed();
                    ran.into_iter().for_each(|write| write.answer(Ok(())));
                    self.shared.wakes.fire(&wakes);
                    if self.checkpoints.committed(writes) {
                        // A quick disk takes more than the threshold within a tick.
                        self.shared.look_at_disk();
                        self.checkpoint_when_due();
                    }
                }
                Err(failed) => {
                    let error = self.shared.meet(failed.error);
                    failed.ran.into_iter().for_each(|write| write.answer(Err(error.echo())));
                }
            }
        }
    }

    /// One transaction over as many of `waiting`, and of those that join meanwhile, as a batch may have.
    fn batch(&mut self, waiting: &mut VecDeque<Box<dyn Queued>>, started: Instant) -> Result<Committed, Failed> {
        let mut ran = Vec::with_capacity(waiting.len());
        let mut wakes = Vec::new();
        if let Err(error) = self.begin() {
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

    fn begin(&self) -> Result<(), StoreError> {
        if !self.conn.is_autocommit() {
            // The last batch could not even be rolled back; until that works nothing else will.
            self.statement("ROLLBACK")?;
        }
        self.statement("BEGIN IMMEDIATE")
    }

    /// Runs one write in its savepoint. An error means that the transaction as a whole no longer stands.
    fn one(&self, write: &mut dyn Queued, wakes: &mut Vec<Wake>) -> Result<(), StoreError> {
        self.statement("SAVEPOINT write")?;
        let tx = Tx::new(&self.conn, self.shared.clock.now(), &self.shared.boot, &self.shared.recorders);
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
            // If even this fails, the next batch tries again before it begins.
            let _ = self.statement("ROLLBACK");
        }
        Failed { error, ran }
    }

    fn statement(&self, sql: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Also between two batches: under load the thread never idles.
    fn look_around_when_due(&mut self) {
        if self.looked_at.elapsed() < TICK {
            return;
        }
        self.looked_at = Instant::now();
        metrics::gauge!("pillarbox_write_queue").set(size_as_f64(self.queue.len()));
        if self.shared.health.stopped().is_some() {
            return;
        }
        self.shared.look_at_disk();
        self.look_at_file();
        // Others write into the WAL too, and leave it to us.
        self.checkpoint_when_due();
    }

    /// Wakes everybody if another process has committed. Whether the file may be written.
    fn look_at_file(&mut self) -> Trust {
        match self.guard.look(&self.conn) {
            Ok(seen) => {
                if seen.foreign_commit {
                    self.shared.wakes.fire_all();
                }
                seen.trust
            }
            Err(error) => {
                self.shared.meet(error);
                Trust::Doubt
            }
        }
    }

    fn checkpoint_when_due(&mut self) {
        let due = wal::state(&self.conn).is_ok_and(|state| self.checkpoints.is_due(state));
        // A look right before: this is the one thing that writes the file.
        if !due || self.shared.health.stopped().is_some() || self.look_at_file() == Trust::Doubt {
            return;
        }
        match wal::checkpoint(&self.conn) {
            Ok(state) => {
                self.checkpoints.done(state);
                if let Err(error) = self.guard.checkpointed(&self.conn, state.backfilled) {
                    self.shared.meet(error);
                }
            }
            // A full disk cannot take the pages. They stay in the WAL, and the next write says what is wrong.
            Err(error) => tracing::debug!(%error, "a checkpoint failed"),
        }
    }

    /// Empties the WAL, unless the file is not to be written any more.
    fn finish(mut self) {
        let sure = self.shared.health.stopped().is_none() && self.look_at_file() == Trust::Sure;
        if !sure {
            tracing::warn!("the database file was left as it is, with its WAL");
            return;
        }
        // All housekeeping: what it would do is done at the next start or checkpoint. A guest leaves it to the server,
        // whose writes would wait meanwhile; if there is none, closing the last connection does it.
        if self.lock.is_some() {
            let _ = self.conn.execute_batch("PRAGMA optimize;");
            let _ = wal::empty(&self.conn);
        }
        let _ = guard::set_on_close(&self.conn, OnClose::Checkpoint);
    }
}

/// Turns everybody away once the writer thread is gone, however it went.
struct Leaving(Arc<Queue>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.close();
        self.0.take_more().into_iter().for_each(|write| write.answer(Err(StoreError::Closed)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of queues, far below 2^52")]
fn size_as_f64(size: usize) -> f64 {
    size as f64
}

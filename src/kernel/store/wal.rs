//! The WAL: how long it is, and when it is moved into the database file.
//!
//! SQLite's own automatic checkpoint runs inside a COMMIT: the callers of that commit wait for it, and nobody looks at
//! the file before it is written. So it is off, and the writer checkpoints between two batches.

use rusqlite::Connection;

use super::StoreError;

/// A checkpoint is due at so many pages (16 MB), four times SQLite's own: with a million waiting events every write of
/// a random subject touches another page, and those that were touched twice are moved once (measured: a fifth less time
/// an event; with few events waiting it makes no difference).
const DUE_AT: i64 = 4000;
/// A reader that keeps a checkpoint from finishing makes it due again only after so many further pages.
const AGAIN_AFTER: i64 = 250;
/// Asking for the length costs two microseconds; so many writes cannot make much more than `DUE_AT` pages.
const ASK_EVERY: usize = 100;

/// The WAL's length and how much of it is in the database file already, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) pages: i64,
    pub(super) backfilled: i64,
}

/// Looks without touching anything.
///
/// # Errors
/// The store's.
pub(super) fn state(conn: &Connection) -> Result<State, StoreError> {
    run(conn, "PRAGMA wal_checkpoint(NOOP)")
}

/// Moves what no reader still needs into the database file; waits for nobody.
///
/// # Errors
/// The store's: a full disk cannot take the pages, a damaged one must not be written.
pub(super) fn checkpoint(conn: &Connection) -> Result<State, StoreError> {
    run(conn, "PRAGMA wal_checkpoint(PASSIVE)")
}

/// Moves everything and empties the WAL, if the readers leave within the busy time-out.
///
/// # Errors
/// The store's.
pub(super) fn empty(conn: &Connection) -> Result<State, StoreError> {
    run(conn, "PRAGMA wal_checkpoint(TRUNCATE)")
}

fn run(conn: &Connection, pragma: &str) -> Result<State, StoreError> {
    let mut statement = conn.prepare_cached(pragma)?;
    Ok(statement.query_row([], |row| Ok(State { pages: row.get(1)?, backfilled: row.get(2)? }))?)
}

/// When the next checkpoint is due.
#[derive(Debug)]
pub(super) struct Schedule {
    unasked: usize,
    due_at: i64,
    seen: i64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { unasked: 0, due_at: DUE_AT, seen: 0 }
    }
}

impl Schedule {
    /// Notes `writes` committed; whether the length should be asked for.
    pub(super) fn committed(&mut self, writes: usize) -> bool {
        self.unasked += writes;
        self.unasked >= ASK_EVERY
    }

    /// Whether a WAL of this state is to be checkpointed.
    pub(super) fn is_due(&mut self, state: State) -> bool {
        self.unasked = 0;
        if std::mem::replace(&mut self.seen, state.pages) > state.pages {
            // It began anew: whoever held the last checkpoint up is gone.
            self.due_at = DUE_AT;
        }
        state.pages >= self.due_at && state.backfilled < state.pages
    }

    /// Notes how far a checkpoint came.
    pub(super) fn done(&mut self, state: State) {
        self.due_at = if state.backfilled < state.pages { state.pages + AGAIN_AFTER } else { DUE_AT };
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN_AFTER, DUE_AT, Schedule, State};

    fn wal(pages: i64, backfilled: i64) -> State {
        State { pages, backfilled }
    }

    #[test]
    fn a_checkpoint_is_due_at_a_length_and_not_again_at_once_when_a_reader_holds_it_up() {
        let mut schedule = Schedule::default();
        assert!(!schedule.is_due(wal(DUE_AT - 1, 0)));
        assert!(schedule.is_due(wal(DUE_AT, 0)));
        schedule.done(wal(DUE_AT, 10));
        assert!(!schedule.is_due(wal(DUE_AT + 1, 10)));
        assert!(schedule.is_due(wal(DUE_AT + AGAIN_AFTER, 10)));
    }

    #[test]
    fn nothing_is_due_once_everything_is_in_the_file() {
        let mut schedule = Schedule::default();
        schedule.done(wal(DUE_AT, DUE_AT));
        assert!(!schedule.is_due(wal(DUE_AT, DUE_AT)));
        assert!(!schedule.is_due(wal(3, 0)));
        assert!(schedule.is_due(wal(DUE_AT + 1, 0)));
    }

    #[test]
    fn a_wal_that_began_anew_is_due_at_the_usual_length() {
        let mut schedule = Schedule::default();
        assert!(schedule.is_due(wal(50_000, 0)));
        schedule.done(wal(50_000, 10));
        assert!(!schedule.is_due(wal(20, 0)));
        assert!(schedule.is_due(wal(DUE_AT, 0)));
    }
}

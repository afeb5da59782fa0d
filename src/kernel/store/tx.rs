//! What a closure of either door gets: one fixed `now`, statements, events and wakes.
//!
//! Domain functions take `&Tx` first and never open one, so that callers compose them into one transaction.

use std::cell::{Cell, RefCell};

use rusqlite::{CachedStatement, Connection, Params, Row};

use super::StoreError;
use crate::kernel::clock::UnixMs;
use crate::kernel::events::Event;

/// A topic of work. A committed transaction that named one wakes whoever subscribed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wake(pub &'static str);

/// A subsystem that records domain events, in the transaction that publishes them.
pub type Recorder = fn(&Tx<'_>, &Event) -> Result<(), StoreError>;

/// An open transaction. It cannot be committed or rolled back by its holder: the door does that.
pub struct Tx<'c> {
    conn: &'c Connection,
    now: UnixMs,
    boot: &'c str,
    recorders: &'c [Recorder],
    wakes: RefCell<Vec<Wake>>,
    fault: Cell<Option<StoreError>>,
}

impl<'c> Tx<'c> {
    pub(super) fn new(conn: &'c Connection, now: UnixMs, boot: &'c str, recorders: &'c [Recorder]) -> Self {
        Self { conn, now, boot, recorders, wakes: RefCell::new(Vec::new()), fault: Cell::new(None) }
    }

    /// The instant of this transaction; the same at every call.
    pub fn now(&self) -> UnixMs {
        self.now
    }

    /// The id of this process's start, which leases carry: those of another boot are void.
    pub fn boot(&self) -> &str {
        self.boot
    }

    /// Wakes the subscribers of `topic` once this transaction is committed.
    pub fn wake(&self, topic: Wake) {
        let mut wakes = self.wakes.borrow_mut();
        if !wakes.contains(&topic) {
            wakes.push(topic);
        }
    }

    /// Publishes a domain event: whoever records it does so in this transaction, so that a rollback takes it back.
    ///
    /// # Errors
    /// The store's, when a recorder could not write.
    pub fn publish(&self, event: &Event) -> Result<(), StoreError> {
        self.recorders.iter().try_for_each(|record| record(self, event))
    }

    /// A statement from the cache.
    ///
    /// # Errors
    /// When SQLite cannot prepare it.
    pub fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        self.note(self.conn.prepare_cached(sql))
    }

    /// Runs one statement; the number of rows it changed.
    ///
    /// # Errors
    /// The store's, or a constraint's.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        let mut statement = self.prepare(sql)?;
        self.note(statement.execute(params))
    }

    /// The first row, if there is one.
    ///
    /// # Errors
    /// The store's, or the mapping's.
    pub fn query_opt<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.query_one(sql, params, map) {
            Ok(row) => Ok(Some(row)),
            Err(StoreError::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first row.
    ///
    /// # Errors
    /// [`StoreError::NoRow`] when there is none; else the store's, or the mapping's.
    pub fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut statement = self.prepare(sql)?;
        self.note(statement.query_row(params, map))
    }

    /// Every row, in the statement's order. The statement bounds how many.
    ///
    /// # Errors
    /// The store's, or the mapping's.
    pub fn query_all<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.prepare(sql)?;
        let rows = self.note(statement.query_map(params, map))?;
        let rows: rusqlite::Result<Vec<T>> = rows.collect();
        self.note(rows)
    }

    /// Hands one row after the other to `visit`, in the statement's order, until it answers false.
    ///
    /// # Errors
    /// The store's, or the visit's.
    pub fn query_while(
        &self,
        sql: &str,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> Result<(), StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = self.note(statement.query(params))?;
        while let Some(row) = self.note(rows.next())? {
            if !self.note(visit(row))? {
                break;
            }
        }
        Ok(())
    }

    /// How SQLite would run the statement, step by step. Parameters need no values: the planner does not look at them.
    ///
    /// # Errors
    /// When SQLite cannot prepare it.
    #[cfg(test)]
    pub(crate) fn plan(&self, statement: &str) -> Result<String, StoreError> {
        let mut explain = self.prepare(&format!("EXPLAIN QUERY PLAN {statement}"))?;
        let mut rows = explain.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            steps.push(row.get::<_, String>("detail")?);
        }
        Ok(steps.join(" | "))
    }

    /// The rowid of the last insert of this connection.
    pub fn last_insert_id(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// Runs `work` in a savepoint of its own: its error takes back what it wrote, and only that. A panic in it is
    /// taken for an error too, as `panicked` makes one. What `work` woke or published is taken back with it.
    ///
    /// # Errors
    /// The store's, when the transaction as a whole no longer stands; the inner result is `work`'s own.
    pub fn attempt<T, E>(
        &self,
        panicked: impl FnOnce() -> E,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, StoreError> {
        let woken = self.wakes.borrow().len();
        self.savepoint("SAVEPOINT attempt")?;
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()));
        if let Some(fault) = self.take_fault() {
            self.fault.set(Some(fault.echo()));
            return Err(fault);
        }
        if done.is_err() {
            self.wakes.borrow_mut().truncate(woken);
            self.savepoint("ROLLBACK TO attempt")?;
        }
        self.savepoint("RELEASE attempt")?;
        Ok(done)
    }

    fn savepoint(&self, sql: &str) -> Result<(), StoreError> {
        self.execute(sql, []).map(|_| ())
    }

    /// The first failure of the store itself that a statement of this transaction met.
    pub(super) fn take_fault(&self) -> Option<StoreError> {
        self.fault.take()
    }

    pub(super) fn into_wakes(self) -> Vec<Wake> {
        self.wakes.into_inner()
    }

    /// Remembers a failure of the store, whatever the closure then makes of the error it was handed.
    fn note<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let error = StoreError::from(error);
            if error.is_store_fault() {
                self.fault.set(Some(error.echo()));
            }
            error
        })
    }
}

//! The outbox on a real file, with a clock that is moved; consumers do as they are told, and other programs write through
//! SQL of their own.

mod actors;
mod analytics;
mod lists;
mod model;
mod odd_rows;
mod outside;
mod plan;
mod post;
mod prune;
mod relay;
mod retry;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::actors::Actor;
use super::consumer::Consumer;
use super::relay::Report;
use super::{NewEvent, Posted, Relay};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::kernel::tenant::TenantId;

const START: i64 = 1_700_000_000_000;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A store of events.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
}

/// An event, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    id: i64,
    attempts: i64,
    next: Option<i64>,
    error: Option<String>,
    published: Option<i64>,
    failed: Option<i64>,
    acceptances: String,
}

impl World {
    async fn new() -> Self {
        let world = Self::open(tempfile::tempdir().unwrap(), Clock::stopped_at(START));
        // What inside consumers of these tests write.
        world.run("CREATE TABLE IF NOT EXISTS seen (consumer TEXT NOT NULL, event INTEGER NOT NULL) STRICT").await;
        world.run("INSERT INTO tenants (id, created_at) VALUES ('acme', 0), ('other', 0)").await;
        world
    }

    fn open(dir: tempfile::TempDir, clock: Clock) -> Self {
        let recorders: Vec<crate::kernel::store::Recorder> = vec![super::record];
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), recorders).unwrap();
        Self { dir, db, clock }
    }

    /// The same file in a process that starts now.
    async fn restart(self) -> Self {
        self.db.close().await;
        let Self { dir, clock, .. } = self;
        Self::open(dir, clock)
    }

    fn advance(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(ms.unsigned_abs()));
    }

    fn relay(&self, actors: &[&Actor]) -> Relay {
        let consumers = actors.iter().map(|actor| Box::new((*actor).clone()) as Box<dyn Consumer>).collect();
        Relay::new(self.db.clone(), consumers)
    }

    async fn write<T: Send + 'static>(&self, work: impl FnOnce(&Tx<'_>) -> T + Send + 'static) -> T {
        self.db.write(move |tx| Ok::<_, StoreError>(work(tx))).await.unwrap()
    }

    /// Posts within a transaction that an error takes back.
    async fn post(&self, posted: Posted) -> Result<Vec<String>, super::Error> {
        self.db.write(move |tx| super::post(tx, &posted)).await
    }

    /// Posts so many events of no interest.
    async fn fill(&self, count: usize) -> Vec<String> {
        let events = vec![event("order.paid", "{}"); count];
        let mut ids = Vec::new();
        for some in events.chunks(super::MOST_EVENTS) {
            ids.extend(self.post(posted(some.to_vec())).await.unwrap());
        }
        ids
    }

    /// Runs SQL of another program.
    async fn run(&self, sql: &str) -> usize {
        self.try_run(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"))
    }

    async fn try_run(&self, sql: &str) -> Result<usize, StoreError> {
        let sql = sql.to_owned();
        self.db.write(move |tx| tx.execute(&sql, [])).await
    }

    async fn rows(&self) -> Vec<Row> {
        let sql = "SELECT id, attempts, next_attempt_at, last_error, published_at, failed_at, acceptances
                   FROM outbox_events ORDER BY id";
        let read = move |tx: &Tx<'_>| {
            tx.query_all(sql, [], |row| {
                Ok(Row {
                    id: row.get(0)?,
                    attempts: row.get(1)?,
                    next: row.get(2)?,
                    error: row.get(3)?,
                    published: row.get(4)?,
                    failed: row.get(5)?,
                    acceptances: row.get(6)?,
                })
            })
        };
        self.db.read(read).await.unwrap()
    }

    async fn column(&self, sql: &'static str) -> Vec<String> {
        self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await.unwrap()
    }

    /// How many events are published.
    async fn published(&self) -> usize {
        self.rows().await.iter().filter(|row| row.published.is_some()).count()
    }
}

async fn pass(relay: &Relay) -> Report {
    relay.run_once(&CancellationToken::new()).await.unwrap()
}

fn acme() -> TenantId {
    TenantId::parse("acme").unwrap()
}

fn event(event_type: &str, payload: &str) -> NewEvent {
    NewEvent {
        event_id: None,
        event_type: event_type.into(),
        version: 1,
        aggregate_type: "order".into(),
        aggregate_id: "17".into(),
        occurred_at: None,
        payload: payload.into(),
    }
}

fn posted(events: Vec<NewEvent>) -> Posted {
    Posted { tenant: acme(), key: None, events, strict: false }
}

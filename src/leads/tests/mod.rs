//! The leads on a real file, with a clock that is moved; other programs write through SQL of their own.

mod claims;
mod model;
mod operator;
mod others;
mod plan;
mod summaries;

use std::time::Duration;

use super::{Ending, ErrorCode, Hands};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Recorder, Role, Settings, StoreError, Tx};

const START: i64 = 1_700_000_000_000;
const MINUTE: i64 = 60_000;

/// A store of leads, with the domain outbox.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    hands: Hands,
}

/// A lead, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    status: String,
    attempts: i64,
    cycle: i64,
    error: Option<String>,
    retries: i64,
    reason: Option<String>,
    updated_at: i64,
}

impl World {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), Clock::stopped_at(START), vec![crate::outbox::record])
    }

    fn open(dir: tempfile::TempDir, clock: Clock, recorders: Vec<Recorder>) -> Self {
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), recorders).unwrap();
        Self { dir, db, clock, hands: Hands::default() }
    }

    /// The same file in a process that starts now.
    async fn restart(self) -> Self {
        self.db.close().await;
        let Self { dir, clock, .. } = self;
        Self::open(dir, clock, vec![crate::outbox::record])
    }

    fn advance(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(ms.unsigned_abs()));
    }

    async fn write<T: Send + 'static>(&self, work: impl FnOnce(&Tx<'_>) -> T + Send + 'static) -> T {
        self.db.write(move |tx| Ok::<_, StoreError>(work(tx))).await.unwrap()
    }

    /// Runs SQL of another program.
    async fn run(&self, sql: &str) -> Result<usize, StoreError> {
        let sql = sql.to_owned();
        self.db.write(move |tx| tx.execute(&sql, [])).await
    }

    /// A waiting lead of another program, at the clock's time.
    async fn insert(&self, number: u32, status: &'static str) -> String {
        let lead_id = id(number);
        let (text, now) = (lead_id.clone(), self.clock.now());
        let insert = move |tx: &Tx<'_>| {
            tx.execute(
                "INSERT INTO broker_leads (id, request_id, phone, notification_status, created_at, updated_at)
                 VALUES (?1, ?2, '79001234567', ?3, ?4, ?4)",
                (&text, request(number), status, now),
            )
        };
        self.db.write(insert).await.unwrap();
        lead_id
    }

    async fn row(&self, lead_id: &str) -> Row {
        let lead_id = lead_id.to_owned();
        let sql = "SELECT notification_status, notification_attempt_count, notification_cycle_claims,
                          notification_last_error, notification_manual_retry_count,
                          notification_manual_retry_reason_code, updated_at
                   FROM broker_leads WHERE id = ?1";
        let read = move |tx: &Tx<'_>| {
            tx.query_one(sql, [&lead_id], |row| {
                Ok(Row {
                    status: row.get(0)?,
                    attempts: row.get(1)?,
                    cycle: row.get(2)?,
                    error: row.get(3)?,
                    retries: row.get(4)?,
                    reason: row.get(5)?,
                    updated_at: row.get(6)?,
                })
            })
        };
        self.db.read(read).await.unwrap()
    }

    /// Waits for a wake. One that does not come fails the test, which else would hang.
    async fn is_woken(&self, woken: &tokio::sync::Notify) -> bool {
        tokio::time::timeout(Duration::from_secs(10), woken.notified()).await.is_ok()
    }

    async fn column(&self, sql: &'static str) -> Vec<String> {
        self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await.unwrap()
    }

    async fn events(&self) -> Vec<String> {
        self.column("SELECT event_type || ' ' || payload FROM broker_lead_events ORDER BY id").await
    }

    async fn published(&self) -> Vec<String> {
        self.column("SELECT type || ' ' || aggregate_id FROM outbox_events ORDER BY id").await
    }
}

fn id(number: u32) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

fn request(number: u32) -> String {
    format!("IP-20231114-{number:06}")
}

fn failed(code: &'static str) -> Ending {
    Ending::Failed(ErrorCode::from_caller(Some(code)))
}

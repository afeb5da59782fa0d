//! The remote backend's client against a backend on a real socket that keeps the contract, breaks off, or lies.

mod acks;
mod calls;
mod faults;
mod members;
mod pages;
mod peer;
mod polling;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Pace, RemoteBackend};
use crate::config;
use crate::kernel::clock::Clock;
use crate::kernel::secret::Secret;
use crate::kernel::store::{Db, Role, Settings, StoreError};
use crate::onboarding::calls::Calls;
use crate::onboarding::consumer::Report;
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::{BackendError, Consumer};
use peer::Peer;

const SECRET: &str = "s3cret-S3CRET-s3cret";

/// 2026-11-30T09:00:00Z.
const NOW: i64 = 1_796_029_200_000;

/// A bot and the backend it takes its events from.
struct World {
    dir: TempDir,
    db: Db,
    clock: Clock,
    peer: Peer,
    remote: Arc<RemoteBackend>,
    consumer: Consumer,
    calls: Calls,
}

impl World {
    async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap(), Peer::start().await, NOW)
    }

    /// A bot on this directory, as it starts at this instant.
    fn at(dir: TempDir, peer: Peer, now: i64) -> Self {
        let clock = Clock::stopped_at(now);
        let db = open(dir.path(), clock.clone());
        let remote = Arc::new(remote(&db, &peer.url(), "shop"));
        let content = Arc::new(Content::shipped(Lang::Ru).unwrap());
        let consumer = Consumer::new(db.clone(), remote.clone(), content);
        let calls = Calls::new(db.clone(), remote.clone(), None);
        Self { dir, db, clock, peer, remote, consumer, calls }
    }

    async fn restart(self) -> Self {
        self.db.close().await;
        Self::at(self.dir, self.peer, self.clock.now())
    }

    async fn pass(&self) -> Result<Report, BackendError> {
        self.consumer.run_once(|| ()).await
    }

    async fn processed(&self) -> u64 {
        let report = self.pass().await.unwrap();
        assert_eq!(report.failed, 0);
        report.processed
    }

    async fn run(&self, sql: &'static str) {
        self.db.settle(move |tx| tx.execute(sql, []).map(|_| ())).await.unwrap();
    }

    /// The rows of a query of one column.
    async fn ids(&self, sql: &'static str) -> Vec<i64> {
        let rows = self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await;
        rows.unwrap_or_else(|error: StoreError| panic!("{error}"))
    }

    /// A person in chat `5`, in the first stage.
    async fn person(&self) {
        self.run("INSERT INTO bot_users (telegram_id, lang) VALUES (5, 'ru')").await;
    }

    async fn unacked(&self) -> Vec<i64> {
        self.ids("SELECT outbox_event_id FROM bot_processed_events WHERE acked_at IS NULL ORDER BY 1").await
    }
}

fn open(dir: &std::path::Path, clock: Clock) -> Db {
    let settings = Settings::small();
    Db::open(dir, Role::Owner("test"), &settings, clock, vec![]).unwrap()
}

fn config(url: &str, source: &str) -> config::RemoteBackend {
    config::RemoteBackend { url: url.parse().unwrap(), source: source.into(), secret: Secret::new(SECRET) }
}

fn remote(db: &Db, url: &str, source: &str) -> RemoteBackend {
    let pace = Pace {
        connect: Duration::from_millis(300),
        call: Duration::from_millis(400),
        pauses: [Duration::from_millis(1); 2],
        patience: Duration::from_secs(30),
    };
    RemoteBackend::paced(db.clone(), &config(url, source), pace).unwrap()
}

/// An event of chat `5`.
fn event(id: i64, event_type: &str) -> Value {
    json!({
        "id": id, "eventType": event_type, "telegramId": "5", "magnetUid": null, "payload": {},
        "createdAt": "2026-11-30T08:00:00.000Z", "attempts": 0,
    })
}

/// The event with other values of some fields.
fn with(mut event: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields") };
    event.as_object_mut().unwrap().extend(fields);
    event
}

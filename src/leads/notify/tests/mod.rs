//! The worker on a real file, with a clock that is moved and a messenger that answers as it is told.

mod attempts;
mod pass;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Post, Recipient, Report, Worker};
use crate::chat::{Access, FailureCode, Limiter, Limits, Messenger, Outcome, Rendered};
use crate::config::Delivery;
use crate::kernel::clock::Clock;
use crate::kernel::secret::Secret;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::leads::Hands;

const START: i64 = 1_700_000_000_000;
const CHAT: i64 = -42;
/// Real time after which a test that waits has failed; the clock of the worker stands still.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the messenger does with the next message.
enum Play {
    Answer(Outcome),
    Panic,
    /// Waits for [`Stage::release`], then delivers.
    Hang,
}

/// A messenger that delivers unless it is told otherwise, and notes what it was given.
#[derive(Default)]
struct Stage {
    plays: Mutex<VecDeque<Play>>,
    calls: Mutex<Vec<Rendered>>,
    /// How the next introductions are answered; then well.
    introductions: Mutex<VecDeque<Outcome>>,
    introduced: AtomicUsize,
    called: Notify,
    released: Notify,
}

impl Stage {
    fn will(&self, play: Play) {
        self.plays.lock().unwrap().push_back(play);
    }

    fn will_answer(&self, outcome: Outcome) {
        self.will(Play::Answer(outcome));
    }

    fn calls(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    fn chats(&self) -> Vec<i64> {
        self.calls.lock().unwrap().iter().map(|call| call.chat_id).collect()
    }

    /// Resolves once so many calls have been made.
    async fn called_times(&self, times: usize) {
        loop {
            let called = self.called.notified();
            tokio::pin!(called);
            called.as_mut().enable();
            if self.calls() >= times {
                return;
            }
            tokio::time::timeout(PATIENCE, called).await.expect("the messenger is called");
        }
    }
}

impl Messenger for Stage {
    fn introduce(&self) -> BoxFuture<'_, Outcome> {
        async move {
            self.introduced.fetch_add(1, Ordering::Relaxed);
            let answer = self.introductions.lock().unwrap().pop_front();
            answer.unwrap_or(Outcome::Delivered { message_id: None })
        }
        .boxed()
    }

    fn send<'a>(&'a self, message: &'a Rendered) -> BoxFuture<'a, Outcome> {
        async move {
            let released = self.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            self.calls.lock().unwrap().push(message.clone());
            let play = self.plays.lock().unwrap().pop_front();
            self.called.notify_waiters();
            match play {
                Some(Play::Answer(outcome)) => return outcome,
                Some(Play::Panic) => panic!("on purpose"),
                Some(Play::Hang) => released.await,
                None => {}
            }
            Outcome::Delivered { message_id: Some(1) }
        }
        .boxed()
    }
}

/// A file of its own, and what a worker is made of.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    stage: Arc<Stage>,
    limiter: Arc<Limiter>,
    access: Arc<Access>,
    hands: Hands,
    worker: Arc<Worker>,
    stop: CancellationToken,
}

/// A lead, as far as tests look at it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    status: String,
    attempts: i64,
    code: Option<String>,
}

impl World {
    async fn new() -> Self {
        Self::with(Delivery::Worker, CHAT).await
    }

    async fn with(delivery: Delivery, chat_id: i64) -> Self {
        Self::open(delivery, chat_id, &Settings::small())
    }

    fn open(delivery: Delivery, chat_id: i64, settings: &Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = Db::open(dir.path(), Role::Owner("test"), settings, clock.clone(), vec![]).unwrap();
        let limits = Limits {
            per_second: 1000,
            bulk_per_second: 1000,
            chat_interval: Duration::ZERO,
            group_per_minute: 20,
            max_in_flight: 16,
        };
        let (limiter, access) = (Limiter::new(limits, clock.clone()), Arc::<Access>::default());
        let (stage, hands, stop) = (Arc::<Stage>::default(), Hands::default(), CancellationToken::new());
        let post = Post {
            messenger: Arc::<Stage>::clone(&stage),
            recipient: Arc::new(Recipient::open(dir.path(), &Secret::new(chat_id.to_string())).unwrap()),
            limiter: Arc::clone(&limiter),
            access: Arc::clone(&access),
            clock: clock.clone(),
        };
        let worker = Arc::new(Worker::new(db.clone(), delivery, hands.clone(), Some(post)));
        Self { dir, db, clock, stage, limiter, access, hands, worker, stop }
    }

    /// A lead of another program; its id.
    async fn insert(&self, request_id: &str) -> String {
        let sql = "INSERT INTO broker_leads (request_id, client_name, phone, created_at)
                   VALUES (?1, 'Distinctive Name', '79990001122', ?2) RETURNING id";
        let (request_id, now) = (request_id.to_owned(), self.clock.now());
        let insert = move |tx: &Tx<'_>| tx.query_one(sql, (&request_id, now), |row| row.get(0));
        // A program of its own asks nobody how full the disk is.
        self.db.settle::<_, StoreError, _>(insert).await.unwrap()
    }

    async fn pass(&self) -> Report {
        self.worker.run_once(&self.stop).await.unwrap()
    }

    /// A pass that goes on beside the test.
    fn start_pass(&self) -> JoinHandle<Report> {
        let (worker, stop) = (Arc::clone(&self.worker), self.stop.clone());
        let pass = async move { worker.run_once(&stop).await.unwrap() };
        tokio::spawn(async { tokio::time::timeout(PATIENCE, pass).await.expect("the pass ends") })
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    async fn row(&self, id: &str) -> Row {
        let sql = "SELECT notification_status, notification_attempt_count, notification_last_error
                   FROM broker_leads WHERE id = ?1";
        let id = id.to_owned();
        let read = move |tx: &Tx<'_>| {
            tx.query_one(sql, [id], |row| Ok(Row { status: row.get(0)?, attempts: row.get(1)?, code: row.get(2)? }))
        };
        self.db.read::<_, StoreError>(read).await.unwrap()
    }

    /// How many leads have this status after so many claims.
    async fn count(&self, status: &'static str, attempts: i64) -> i64 {
        let sql =
            "SELECT count(*) FROM broker_leads WHERE notification_status = ?1 AND notification_attempt_count = ?2";
        let read = move |tx: &Tx<'_>| tx.query_one(sql, (status, attempts), |row| row.get(0));
        self.db.read::<_, StoreError>(read).await.unwrap()
    }

    /// The types of a lead's events, oldest first.
    async fn events(&self, id: &str) -> Vec<String> {
        let sql = "SELECT event_type FROM broker_lead_events WHERE lead_id = ?1 ORDER BY id";
        let id = id.to_owned();
        let read = move |tx: &Tx<'_>| tx.query_all(sql, [id], |row| row.get(0));
        self.db.read::<_, StoreError>(read).await.unwrap()
    }

    async fn run(&self, sql: &'static str) -> usize {
        self.db.write::<_, StoreError>(move |tx| tx.execute(sql, [])).await.unwrap()
    }
}

fn sent(attempts: i64) -> Row {
    Row { status: "sent".into(), attempts, code: None }
}

fn pending() -> Row {
    Row { status: "pending".into(), attempts: 0, code: None }
}

fn failed(attempts: i64, code: &str) -> Row {
    Row { status: "failed".into(), attempts, code: Some(code.into()) }
}

fn connect() -> Outcome {
    Outcome::Refused { class: crate::chat::Class::Later, code: FailureCode::Connect }
}

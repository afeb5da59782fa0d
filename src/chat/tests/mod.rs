//! The queue and its sender on a real file, with a clock that is moved and a messenger that answers as it is told.

mod bulk;
mod model;
mod operator;
mod order;
mod outcomes;
mod plan;
mod sending;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::addressee::End;
use super::kind::Lane;
use super::queue::Enqueued;
use super::sender::Report;
use super::{
    Access, Addressee, Asked, Closed, Error, Format, Keyboard, Kind, Limiter, Limits, Messenger, NewMessage, Outcome,
    Permit, Reason, Rendered, Sender, SenderParts, SenderSettings, enqueue,
};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError, Synchronous, Tx};

const START: i64 = 1_700_000_000_000;

/// What the messenger does with the next message to a chat.
#[derive(Clone, Debug)]
enum Play {
    Answer(Outcome),
    Panic,
    /// Waits for [`Stage::release`], then delivers.
    Hang,
}

/// A messenger that delivers unless it is told otherwise, and notes what it was given.
#[derive(Default)]
struct Stage {
    plays: Mutex<HashMap<i64, VecDeque<Play>>>,
    calls: Mutex<Vec<Rendered>>,
    called: Notify,
    released: Notify,
}

impl Stage {
    fn will(&self, chat_id: i64, play: Play) {
        self.plays.lock().unwrap().entry(chat_id).or_default().push_back(play);
    }

    fn will_answer(&self, chat_id: i64, outcome: Outcome) {
        self.will(chat_id, Play::Answer(outcome));
    }

    fn calls(&self) -> Vec<(i64, String)> {
        self.calls.lock().unwrap().iter().map(|call| (call.chat_id, call.text.clone())).collect()
    }

    fn texts(&self) -> Vec<String> {
        self.calls().into_iter().map(|(_, text)| text).collect()
    }

    /// Resolves once so many calls have been made.
    async fn called_times(&self, times: usize) {
        loop {
            let called = self.called.notified();
            tokio::pin!(called);
            called.as_mut().enable();
            if self.calls.lock().unwrap().len() >= times {
                return;
            }
            called.await;
        }
    }

    fn release(&self) {
        self.released.notify_waiters();
    }
}

impl Messenger for Stage {
    fn introduce(&self) -> BoxFuture<'_, Outcome> {
        async { Outcome::Delivered { message_id: None } }.boxed()
    }

    fn send<'a>(&'a self, message: &'a Rendered) -> BoxFuture<'a, Outcome> {
        async move {
            let released = self.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            let number = {
                let mut calls = self.calls.lock().unwrap();
                calls.push(message.clone());
                i64::try_from(calls.len()).unwrap()
            };
            let play = self.plays.lock().unwrap().get_mut(&message.chat_id).and_then(VecDeque::pop_front);
            self.called.notify_waiters();
            match play {
                Some(Play::Answer(outcome)) => outcome,
                Some(Play::Panic) => panic!("on purpose"),
                Some(Play::Hang) => {
                    released.await;
                    Outcome::Delivered { message_id: Some(number) }
                }
                None => Outcome::Delivered { message_id: Some(number) },
            }
        }
        .boxed()
    }
}

/// People as the queue sees them, kept in memory.
#[derive(Default)]
struct People {
    opted_out: Mutex<HashSet<(i64, &'static str)>>,
    unreachable: Mutex<HashMap<i64, Reason>>,
    not_before: Mutex<HashMap<i64, i64>>,
    fallbacks: Mutex<Vec<String>>,
    ends: Mutex<Vec<(i64, String, End)>>,
    moves: Mutex<Vec<(i64, i64)>>,
}

impl Addressee for People {
    fn permits(&self, tx: &Tx<'_>, asked: &Asked<'_>) -> Result<Permit, StoreError> {
        if self.unreachable.lock().unwrap().contains_key(&asked.chat_id) {
            return Ok(Permit::Unreachable);
        }
        if let Some(at) = self.not_before.lock().unwrap().get(&asked.chat_id).filter(|at| **at > tx.now()) {
            return Ok(Permit::NotYet(*at));
        }
        let is_out = self.opted_out.lock().unwrap().contains(&(asked.chat_id, asked.kind.as_str()));
        Ok(if is_out { Permit::OptedOut } else { Permit::Granted })
    }

    fn unreachable(&self, _tx: &Tx<'_>, chat_id: i64, reason: Reason) -> Result<(), StoreError> {
        self.unreachable.lock().unwrap().insert(chat_id, reason);
        Ok(())
    }

    fn fall_back(&self, _tx: &Tx<'_>, fallback: &str) -> Result<(), StoreError> {
        self.fallbacks.lock().unwrap().push(fallback.to_owned());
        Ok(())
    }

    fn closed(&self, _tx: &Tx<'_>, closed: &Closed<'_>) -> Result<(), StoreError> {
        self.ends.lock().unwrap().push((closed.id, closed.dedup_key.to_owned(), closed.end));
        Ok(())
    }

    fn moved(&self, _tx: &Tx<'_>, from: i64, to: i64) -> Result<(), StoreError> {
        self.moves.lock().unwrap().push((from, to));
        Ok(())
    }
}

/// A queue on a file of its own.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    stage: Arc<Stage>,
    people: Arc<People>,
    limiter: Arc<Limiter>,
    access: Arc<Access>,
    sender: Sender,
    stop: CancellationToken,
}

/// A row, as far as tests look at it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    status: String,
    attempts: i64,
    doubts: i64,
    code: Option<String>,
    due_in_ms: i64,
    chat_id: i64,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let (stage, people) = (Arc::new(Stage::default()), Arc::new(People::default()));
        Self::open(dir, clock, stage, people).await
    }

    /// The same file in a process that starts now. What was in flight stays as it is.
    async fn restart(self) -> Self {
        self.db.close().await;
        let Self { dir, db, clock, people, sender, .. } = self;
        drop((db, sender));
        Self::open(dir, clock, Arc::new(Stage::default()), people).await
    }

    async fn open(dir: tempfile::TempDir, clock: Clock, stage: Arc<Stage>, people: Arc<People>) -> Self {
        let settings = Settings {
            synchronous: Synchronous::Normal,
            readers: 2,
            queue: 1024,
            busy_timeout: Duration::from_secs(5),
            cache: 8 << 20,
            min_free: 0,
            ballast: 0,
        };
        let db = Db::open(dir.path(), Role::Owner("test"), &settings, clock.clone(), vec![]).unwrap();
        let limiter = Limiter::new(limits(), clock.clone());
        let access = Arc::new(Access::default());
        let parts = SenderParts {
            db: db.clone(),
            messenger: Arc::<Stage>::clone(&stage),
            addressee: Arc::<People>::clone(&people),
            limiter: Arc::clone(&limiter),
            access: Arc::clone(&access),
            settings: SenderSettings { give_up_after: Duration::from_secs(3_600), timeout: Duration::from_secs(15) },
        };
        let sender = Sender::open(parts).await.unwrap();
        Self { dir, db, clock, stage, people, limiter, access, sender, stop: CancellationToken::new() }
    }

    async fn queue(&self, message: NewMessage) -> i64 {
        match self.db.write(move |tx| enqueue(tx, &message)).await.unwrap() {
            Enqueued::New(id) => id,
            Enqueued::Known(id) => panic!("message {id} was queued before"),
        }
    }

    async fn pass(&self) -> Report {
        self.sender.run_once(&self.stop).await.unwrap()
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    async fn row(&self, id: i64) -> Row {
        let now = self.clock.now();
        let sql =
            "SELECT status, attempts, unknown_count, error_code, due_at, chat_id FROM telegram_messages WHERE id = ?1";
        let read = move |tx: &Tx<'_>| {
            Ok::<_, Error>(tx.query_one(sql, [id], |row| {
                Ok(Row {
                    status: row.get(0)?,
                    attempts: row.get(1)?,
                    doubts: row.get(2)?,
                    code: row.get(3)?,
                    due_in_ms: row.get::<_, i64>(4)? - now,
                    chat_id: row.get(5)?,
                })
            })?)
        };
        self.db.read(read).await.unwrap()
    }

    async fn status(&self, id: i64) -> String {
        self.row(id).await.status
    }

    async fn run(&self, sql: &'static str) -> usize {
        self.db.write(move |tx| Ok::<_, Error>(tx.execute(sql, [])?)).await.unwrap()
    }
}

fn limits() -> Limits {
    Limits {
        per_second: 25,
        bulk_per_second: 20,
        chat_interval: Duration::from_secs(1),
        group_per_minute: 20,
        max_in_flight: 16,
    }
}

fn message(chat_id: i64, kind: Kind, text: &str) -> NewMessage {
    NewMessage {
        chat_id,
        kind,
        text: text.into(),
        format: Format::Html,
        keyboard: Keyboard::default(),
        edit: None,
        dedup_key: format!("{}:{chat_id}:{text}", kind.as_str()),
        due_at: None,
        fallback: None,
    }
}

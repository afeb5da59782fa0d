//! The worker with conversations that fail in every way, on a real file with a clock that is moved by hand.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::worker::{Handle, Report, Worker};
use super::*;
use crate::chat::inbox::{self, Received};
use crate::chat::{Reader, Unreadable, What};
use crate::edge::telegram::UpdateReader;
use crate::kernel::clock::Clock;
use crate::kernel::contract::{Bound, ConnectLink, Leader, MemberState, WebNotification};
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::dialog::{Addresses, Dialog};
use crate::onboarding::{Backend, BackendError, Error, Fate, Finished, PageEvent};

const START: i64 = 1_800_000_000_000;

/// Knows nobody.
struct Nobody;

impl Backend for Nobody {
    fn source(&self) -> &'static str {
        "test"
    }
    fn next_page(&self, _: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>> {
        async { Ok(Vec::new()) }.boxed()
    }
    fn hold<'a>(&'a self, _: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }
    fn may_apply(&self, _: &Tx<'_>, _: i64) -> Result<bool, StoreError> {
        Ok(true)
    }
    fn close(&self, _: &Tx<'_>, _: i64) -> Result<(), StoreError> {
        Ok(())
    }
    fn put_off(&self, _: &Tx<'_>, _: i64, _: &str) -> Result<Fate, StoreError> {
        Ok(Fate::Theirs)
    }
    fn closes_at_once(&self) -> bool {
        false
    }
    fn finish<'a>(&'a self, _: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }
    fn notify(&self, _: &Tx<'_>, _: &WebNotification) -> Result<(), StoreError> {
        Ok(())
    }
    fn find_leader<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn find_account(&self, _: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn find_state(&self, _: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn connect_link(&self, _: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn bind(&self, _: &Tx<'_>, _: i64, _: i64) -> Result<Option<Bound>, StoreError> {
        Ok(Some(Bound::Refused))
    }
}

/// Leaves a row, and then does what the text says.
fn obey(tx: &Tx<'_>, _: &Dialog, arrived: &Arrived<'_>) -> Result<(), Error> {
    let What::Text { text, .. } = &arrived.input.what else { return Ok(()) };
    tx.execute("INSERT INTO job_requests (job, requested_at) VALUES (?1, ?2)", (text.as_str(), arrived.update))?;
    match text.as_str() {
        "panic" => panic!("on purpose"),
        "fail" => Err(Error::Content("menu.ru".to_owned())),
        "away" => Err(Error::Backend(BackendError::Unreachable("timeout".to_owned()))),
        _ => Ok(()),
    }
}

/// Reads as always, but holds on to chat 1 until it is let go.
struct Gate(Mutex<mpsc::Receiver<()>>);

impl Reader for Gate {
    fn read(&self, raw: &str) -> Result<Input, Unreadable> {
        let input = UpdateReader.read(raw)?;
        if input.chat_id == 1 {
            self.0.lock().unwrap().recv().unwrap();
        }
        Ok(input)
    }
}

struct World {
    db: Db,
    clock: Clock,
    worker: Worker,
    _dir: tempfile::TempDir,
}

impl World {
    fn with(reader: Arc<dyn Reader>, handle: Handle) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), vec![]).unwrap();
        let content = Arc::new(Content::shipped(Lang::Ru).unwrap());
        let dialog = Dialog { content, backend: Arc::new(Nobody), addresses: Addresses::default() };
        let worker = Worker::with(db.clone(), Arc::new(dialog), reader, handle);
        Self { db, clock, worker, _dir: dir }
    }

    fn new() -> Self {
        Self::with(Arc::new(UpdateReader), obey)
    }

    /// Stores a text of each chat, numbered on from `first`.
    async fn store(&self, first: i64, texts: &[(i64, &str)]) {
        let raws = texts.iter().map(|(chat, text)| {
            let chat = serde_json::json!({"id": chat, "type": "private"});
            serde_json::json!({"update_id": 1, "message": {"message_id": 1, "chat": chat, "text": text}}).to_string()
        });
        self.store_raw(first, texts.iter().map(|(chat, _)| *chat).zip(raws).collect()).await;
    }

    async fn store_raw(&self, first: i64, raws: Vec<(i64, String)>) {
        let batch: Vec<Received> = (first..)
            .zip(raws)
            .map(|(update_id, (chat_id, raw))| Received { update_id, chat_id, kind: "message".into(), raw, tap: None })
            .collect();
        self.db.write(move |tx| inbox::store(tx, 7, &batch, None)).await.unwrap();
    }

    /// A pass, without when it wants to be called again.
    async fn pass(&self) -> (u64, u64, u64) {
        let Report { handled, again, dead, .. } = self.worker.run_once(&CancellationToken::new()).await.unwrap();
        (handled, again, dead)
    }

    /// What was left in the file, in its order.
    async fn effects(&self) -> Vec<String> {
        let sql = "SELECT job FROM job_requests ORDER BY id";
        self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await.unwrap()
    }

    async fn listed(&self, id: i64) -> (String, i64, Option<String>) {
        let (listed, _) = self.db.read(move |tx| inbox::find(tx, id)).await.unwrap().unwrap();
        (listed.state, listed.failures, listed.error_code)
    }
}

#[tokio::test]
async fn a_pass_handles_each_chat_in_its_order_and_a_second_finds_nothing() {
    let world = World::new();
    let texts: Vec<(i64, String)> = (0..200).map(|n| (n % 40 + 1, n.to_string())).collect();
    world.store(1, &texts.iter().map(|(chat, text)| (*chat, text.as_str())).collect::<Vec<_>>()).await;
    assert_eq!(world.pass().await, (200, 0, 0));
    let effects: Vec<i64> = world.effects().await.iter().map(|text| text.parse().unwrap()).collect();
    for chat in 0..40 {
        let own: Vec<i64> = effects.iter().copied().filter(|n| n % 40 == chat).collect();
        assert_eq!(own, (0..5).map(|n| n * 40 + chat).collect::<Vec<_>>());
    }
    assert_eq!(world.pass().await, (0, 0, 0));
}

#[tokio::test]
async fn a_panicking_screen_is_a_dead_update_and_the_bot_lives() {
    let world = World::new();
    world.store(1, &[(1, "panic"), (1, "after it"), (2, "beside it")]).await;
    assert_eq!(world.pass().await, (1, 1, 0));
    for attempt in 1..=9 {
        assert_eq!(world.listed(1).await, ("pending".into(), attempt, Some("panicked".into())));
        world.clock.advance(Duration::from_secs(600));
        let dies = attempt == 9;
        assert_eq!(world.pass().await, (u64::from(dies), u64::from(!dies), u64::from(dies)));
    }
    assert_eq!(world.listed(1).await, ("dead".into(), 10, Some("panicked".into())));
    assert_eq!(world.effects().await, ["beside it", "after it"], "what panicked left nothing");
    world.store(4, &[(1, "hello")]).await;
    assert_eq!(world.pass().await, (1, 0, 0));
}

#[tokio::test]
async fn a_failing_screen_waits_with_its_chat_and_says_until_when() {
    let world = World::new();
    world.store(1, &[(1, "fail"), (1, "after it")]).await;
    let report = world.worker.run_once(&CancellationToken::new()).await.unwrap();
    assert_eq!((report.again, report.next), (1, Some(START + 2_000)));
    assert_eq!(world.listed(1).await, ("pending".into(), 1, Some("content".into())));
    assert_eq!(world.effects().await, [""; 0]);
}

#[tokio::test]
async fn a_backend_that_is_away_makes_the_chat_wait_and_counts_for_nothing() {
    let world = World::new();
    world.store(1, &[(1, "away")]).await;
    for _ in 0..12 {
        assert_eq!(world.pass().await, (0, 1, 0));
        assert_eq!(world.listed(1).await, ("pending".into(), 0, Some("backend".into())));
        world.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(world.effects().await, [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_read_is_dead_at_once_and_its_chat_goes_on() {
    let world = World::new();
    world.store_raw(1, vec![(1, "no JSON".to_owned()), (1, r#"{"update_id":2}"#.to_owned())]).await;
    world.store(3, &[(1, "hello")]).await;
    assert_eq!(world.pass().await, (1, 0, 2));
    assert_eq!(world.listed(1).await, ("dead".into(), 1, Some("unreadable".into())));
    assert_eq!(world.effects().await, ["hello"]);
}

#[tokio::test]
async fn a_reader_that_panics_is_a_failed_attempt() {
    struct Panics;
    impl Reader for Panics {
        fn read(&self, _: &str) -> Result<Input, Unreadable> {
            panic!("on purpose")
        }
    }
    let world = World::with(Arc::new(Panics), obey);
    world.store(1, &[(1, "hello")]).await;
    assert_eq!(world.pass().await, (0, 1, 0));
    assert_eq!(world.listed(1).await, ("pending".into(), 1, Some("panicked".into())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_chat_that_hangs_holds_up_nobody_else() {
    let (let_go, held) = mpsc::channel();
    let world = World::with(Arc::new(Gate(Mutex::new(held))), obey);
    world.store(1, &[(1, "slow"), (1, "slower"), (2, "a"), (3, "b"), (2, "c")]).await;
    assert_eq!(world.pass().await.0, 3, "the pass ends without the one that hangs");
    let mut beside = world.effects().await;
    beside.sort();
    assert_eq!(beside, ["a", "b", "c"]);
    world.store(6, &[(2, "d")]).await;
    assert_eq!(world.pass().await.0, 1, "and the next one does not take it up again");
    let_go.send(()).unwrap();
    let_go.send(()).unwrap();
    world.worker.drain().await;
    world.pass().await;
    assert_eq!(world.effects().await[4..], ["slow", "slower"]);
}

#[tokio::test]
async fn a_stop_leaves_what_is_not_begun() {
    let world = World::new();
    world.store(1, &[(1, "hello")]).await;
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(world.worker.run_once(&stop).await.unwrap(), Report { next: None, ..Report::default() });
    assert_eq!(world.listed(1).await.0, "pending");
}

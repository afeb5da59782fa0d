//! The worker on a real file, with a clock that is moved and receivers that are real sockets.

mod faults;
mod isolation;
mod probe;
mod restraint;
mod schedule;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{DeliverSettings, Deliverer, DelivererParts, Report};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::webhooks::delivery::{Jitter, Policy};
use crate::webhooks::egress::{Egress, EgressPolicy};
use crate::webhooks::resolve::{Resolver, Script};
use crate::webhooks::signature::{Key, sign};
use crate::webhooks::transport::tests::{listen, read_request};
use crate::webhooks::transport::{Transport, TransportSettings};
use crate::webhooks::vault::Vault;

const START: UnixMs = 1_700_000_000_000;
/// Real time after which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: [u8; 32] = [7; 32];
/// Answers after which an endpoint has all its slots.
const PROVEN: usize = 8;

/// How a receiver answers.
#[derive(Clone, Debug)]
enum Play {
    /// The head of an answer without a body, e.g. `503 X\r\nretry-after: 7`.
    Answer(&'static str),
    /// Nothing, until [`Receiver::release`]; then 200.
    Hang,
    /// The connection is closed.
    Close,
}

/// A request as a receiver got it.
#[derive(Clone, Debug)]
struct Got {
    headers: HashMap<String, String>,
    body: String,
}

impl Got {
    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    fn at_s(&self) -> i64 {
        self.headers["webhook-timestamp"].parse().unwrap()
    }

    /// Whether one of the signatures is that of these bytes, at a time that the receiver believes.
    fn is_signed_by(&self, secret: &[u8], now: UnixMs) -> bool {
        let key = Key::from_bytes(secret.to_vec()).unwrap();
        let ours = sign(&[key], self.id(), self.at_s(), self.body.as_bytes()).unwrap();
        let is_ours = self.headers["webhook-signature"].split(' ').any(|theirs| theirs == ours);
        is_ours && (now / 1000 - self.at_s()).abs() <= 300
    }
}

/// A receiver on a socket of its own.
struct Receiver {
    url: String,
    scene: Arc<Scene>,
}

struct Scene {
    play: Mutex<Play>,
    got: Mutex<Vec<Got>>,
    came: Notify,
    released: Semaphore,
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

impl Receiver {
    async fn that(play: Play) -> Self {
        let scene = Arc::new(Scene {
            play: Mutex::new(play),
            got: Mutex::default(),
            came: Notify::new(),
            released: Semaphore::new(0),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&scene);
        let (at, _) = listen("127.0.0.1", move |stream| Arc::clone(&shared).serve(stream)).await;
        Self { url: format!("http://{at}/hook"), scene }
    }

    fn plays(&self) -> Play {
        self.scene.play.lock().unwrap().clone()
    }

    fn will(&self, play: Play) {
        *self.scene.play.lock().unwrap() = play;
    }

    /// Lets so many of the requests that hang go on.
    fn release(&self, requests: usize) {
        self.scene.released.add_permits(requests);
    }

    fn got(&self) -> Vec<Got> {
        self.scene.got.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.scene.got.lock().unwrap().len()
    }

    /// The most requests that were under way at the same time.
    fn busiest(&self) -> usize {
        self.scene.busiest.load(Ordering::SeqCst)
    }

    /// Resolves once so many requests have come.
    async fn got_so_many(&self, requests: usize) {
        loop {
            let came = self.scene.came.notified();
            tokio::pin!(came);
            came.as_mut().enable();
            if self.count() >= requests {
                return;
            }
            tokio::time::timeout(PATIENCE, came).await.expect("requests come");
        }
    }
}

impl Scene {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        while let Some(request) = read_request(&mut stream).await {
            let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
            self.busiest.fetch_max(busy, Ordering::SeqCst);
            self.note(&String::from_utf8(request).unwrap());
            let play = self.play.lock().unwrap().clone();
            let head = match play {
                Play::Answer(head) => head,
                Play::Hang => {
                    self.released.acquire().await.unwrap().forget();
                    "200 OK"
                }
                Play::Close => return,
            };
            self.busy.fetch_sub(1, Ordering::SeqCst);
            let _ = stream.write_all(format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
        }
    }

    fn note(&self, request: &str) {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.got.lock().unwrap().push(Got { headers, body: body.to_owned() });
        self.came.notify_waiters();
    }
}

/// A delivery, as far as tests look at it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    status: String,
    attempts: i64,
    next_attempt_at: Option<i64>,
    last_error: Option<String>,
}

/// A file of its own, and a worker.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    vault: Vault,
    script: Arc<Script>,
    settings: DeliverSettings,
    timeout: Duration,
    worker: Arc<Deliverer>,
    stop: CancellationToken,
}

impl World {
    fn new() -> Self {
        Self::with(DeliverSettings { max_in_flight: 64, per_endpoint: 4, policy: exact() })
    }

    /// One whose requests may take a moment only.
    fn impatient() -> Self {
        let settings = DeliverSettings { max_in_flight: 64, per_endpoint: 4, policy: exact() };
        Self::waiting_for(Duration::from_millis(200), settings)
    }

    fn with(settings: DeliverSettings) -> Self {
        Self::waiting_for(PATIENCE, settings)
    }

    fn waiting_for(timeout: Duration, settings: DeliverSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = open(dir.path(), &clock);
        let vault = Vault::at(dir.path());
        let script = Arc::new(Script::default());
        let worker = Arc::new(Deliverer::open(parts(&db, &vault, &script, settings, timeout)));
        Self { dir, db, clock, vault, script, settings, timeout, worker, stop: CancellationToken::new() }
    }

    /// The process ends, whatever is under way, and another one begins.
    async fn restart(self) -> Self {
        self.db.close().await;
        let Self { dir, clock, settings, timeout, .. } = self;
        let db = open(dir.path(), &clock);
        let vault = Vault::at(dir.path());
        let script = Arc::new(Script::default());
        let worker = Arc::new(Deliverer::open(parts(&db, &vault, &script, settings, timeout)));
        Self { dir, db, clock, vault, script, settings, timeout, worker, stop: CancellationToken::new() }
    }

    fn parts(&self) -> DelivererParts {
        parts(&self.db, &self.vault, &self.script, self.settings, self.timeout)
    }

    /// An endpoint of that receiver which has answered promptly, and goes on as the receiver did before.
    async fn proven(&self, receiver: &Receiver) -> i64 {
        let endpoint = self.endpoint(&receiver.url).await;
        self.events(endpoint, PROVEN).await;
        let play = receiver.plays();
        receiver.will(Play::Answer("200 X"));
        while self.count("pending").await > 0 {
            self.run().await;
        }
        receiver.will(play);
        endpoint
    }

    async fn execute(&self, sql: &'static str, params: Vec<rusqlite::types::Value>) -> i64 {
        let run = move |tx: &Tx<'_>| -> Result<i64, StoreError> {
            tx.execute(sql, rusqlite::params_from_iter(params.clone()))?;
            Ok(tx.last_insert_id())
        };
        self.db.write(run).await.unwrap()
    }

    /// An endpoint with one secret; its row.
    async fn endpoint(&self, url: &str) -> i64 {
        let endpoint_id = format!("ep_{}", url.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        let sql = "INSERT INTO webhook_endpoints (endpoint_id, tenant_id, url, created_at, updated_at) VALUES (?1, 'default', ?2, 1, 1)";
        let row = self.execute(sql, vec![endpoint_id.clone().into(), url.to_owned().into()]).await;
        self.secret(row, &endpoint_id, &SECRET, None).await;
        row
    }

    async fn secret(&self, endpoint: i64, endpoint_id: &str, secret: &[u8], valid_until: Option<UnixMs>) {
        let sealed = self.vault.seal(endpoint_id, secret, true).unwrap();
        let sql = "INSERT INTO webhook_secrets (endpoint, sealed, last_four, created_at, valid_until) VALUES (?1, ?2, 'abcd', 1, ?3)";
        self.execute(sql, vec![endpoint.into(), sealed.into(), valid_until.into()]).await;
    }

    /// An event of that body with its delivery to each of the endpoints; the rows of the deliveries.
    async fn event(&self, id: &str, body: &str, endpoints: &[i64]) -> Vec<i64> {
        let sql = "INSERT INTO webhook_messages (tenant_id, event_id, type, body, created_at) VALUES ('default', ?1, 'a.b', ?2, ?3)";
        let now = self.clock.now();
        let message = self.execute(sql, vec![id.to_owned().into(), body.as_bytes().to_vec().into(), now.into()]).await;
        let mut rows = Vec::new();
        for endpoint in endpoints {
            let sql = "INSERT INTO webhook_deliveries (message, endpoint, status, next_attempt_at, created_at) VALUES (?1, ?2, 'pending', ?3, ?3)";
            rows.push(self.execute(sql, vec![message.into(), (*endpoint).into(), now.into()]).await);
        }
        rows
    }

    /// So many events for an endpoint; the rows of the deliveries.
    async fn events(&self, endpoint: i64, count: usize) -> Vec<i64> {
        let mut rows = Vec::new();
        for n in 0..count {
            rows.extend(self.event(&format!("evt_{endpoint}_{n}"), &format!("{{\"n\":{n}}}"), &[endpoint]).await);
        }
        rows
    }

    /// One event for an endpoint.
    async fn delivery(&self, endpoint: i64) -> i64 {
        self.events(endpoint, 1).await[0]
    }

    async fn run(&self) -> Report {
        let pass = self.worker.run_once(&self.stop);
        tokio::time::timeout(PATIENCE, pass).await.expect("a pass ends").unwrap()
    }

    /// Passes one after the other, as the driver makes them, until they are stopped.
    fn drive(&self) -> JoinHandle<()> {
        let (worker, stop) = (Arc::clone(&self.worker), self.stop.clone());
        tokio::spawn(async move {
            while !stop.is_cancelled() {
                worker.run_once(&stop).await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    }

    async fn row(&self, delivery: i64) -> Row {
        let read = move |tx: &Tx<'_>| {
            let sql = "SELECT status, attempts, next_attempt_at, last_error FROM webhook_deliveries WHERE id = ?1";
            tx.query_one(sql, [delivery], |row| {
                Ok(Row {
                    status: row.get("status")?,
                    attempts: row.get("attempts")?,
                    next_attempt_at: row.get("next_attempt_at")?,
                    last_error: row.get("last_error")?,
                })
            })
        };
        self.db.read(read).await.unwrap()
    }

    /// Whether a failure is held against the endpoint.
    async fn failing(&self, endpoint: i64) -> bool {
        let sql = "SELECT failing_since IS NOT NULL FROM webhook_endpoints WHERE id = ?1";
        self.db.read(move |tx: &Tx<'_>| tx.query_one(sql, [endpoint], |row| row.get(0))).await.unwrap()
    }

    async fn status(&self, delivery: i64) -> String {
        self.row(delivery).await.status
    }

    /// Attempts of a delivery: what was recorded as their error, in their order.
    async fn journal(&self, delivery: i64) -> Vec<Option<String>> {
        let read = move |tx: &Tx<'_>| {
            let sql = "SELECT error FROM webhook_attempts WHERE delivery = ?1 ORDER BY number";
            tx.query_all(sql, [delivery], |row| row.get("error"))
        };
        self.db.read(read).await.unwrap()
    }

    async fn count(&self, status: &'static str) -> i64 {
        let read = move |tx: &Tx<'_>| {
            tx.query_one("SELECT count(*) FROM webhook_deliveries WHERE status = ?1", [status], |row| row.get(0))
        };
        self.db.read(read).await.unwrap()
    }

    /// Resolves once the delivery has that status.
    async fn becomes(&self, delivery: i64, status: &str) {
        let wait = async {
            while self.status(delivery).await != status {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("it comes to that");
    }
}

/// The pauses to the millisecond.
fn exact() -> Policy {
    Policy { disable_after: Duration::from_secs(5 * 24 * 3600), jitter: Jitter::None }
}

fn open(dir: &std::path::Path, clock: &Clock) -> Db {
    Db::open(dir, Role::Owner("test"), &Settings::small(), clock.clone(), vec![]).unwrap()
}

fn parts(db: &Db, vault: &Vault, script: &Arc<Script>, settings: DeliverSettings, timeout: Duration) -> DelivererParts {
    let egress = Egress::new(EgressPolicy { allow_insecure: true, ..EgressPolicy::default() });
    let resolver = Resolver::Scripted(Arc::clone(script));
    let how = TransportSettings { timeout, idle_per_host: settings.per_endpoint, ca_file: None };
    let transport = Transport::new(&how, egress, resolver, db.clock().clone()).unwrap();
    DelivererParts { db: db.clone(), transport, vault: vault.clone(), settings }
}

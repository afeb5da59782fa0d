//! The HTTP edge, tested through a real socket on a real file; time is moved by hand.

mod bad_input;
mod bot_links;
mod bot_lookups;
mod conformance;
mod contract;
mod guard;
mod leads;
mod leads_health;
mod monitoring;
mod openapi;
mod rest;
mod rest_rights;
mod transport;
mod v1;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::keys::Keys;
use super::{Consumer, HttpState, Limits, ReadyCheck, Sections, WebhookTools, install_metrics, router, serve};
use crate::config::{Config, LogConfig, LogFormat, Sources};
use crate::edge::log::{self, Output};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::secret::Secret;
use crate::kernel::store::{Db, Recorder, Role, Settings, Synchronous};
use crate::leads::Hands;
use crate::webhooks::{Egress, EgressPolicy, Resolver, Transport, TransportSettings, Vault};

const SECRET: &str = "a-secret-of-the-tests-0123456789";
const SERVICE_KEY: &str = "the-service-key-of-the-tests";
const ANON_KEY: &str = "the-anon-key-of-the-tests";
/// 2027-01-15T08:00:00Z.
const START: UnixMs = 1_800_000_000_000;

/// A running server on a port and a directory of its own.
struct TestServer {
    address: SocketAddr,
    clock: Clock,
    db: Db,
    shutdown: CancellationToken,
    /// What it serves.
    routes: Router,
    served: tokio::task::JoinHandle<()>,
    _dir: tempfile::TempDir,
}

/// How a test's server differs from the usual one.
struct Setup {
    secret: Option<&'static str>,
    keys: Keys,
    hands: Hands,
    consumer: Consumer,
    checks: Vec<ReadyCheck>,
    others: Router,
    limits: fn(&mut Limits),
    /// Whether webhooks may go to this machine.
    allow_insecure: bool,
    /// Assignments over the default configuration.
    sets: &'static [&'static str],
    queue: usize,
    min_free: u64,
    /// Who records what handlers publish.
    recorders: Vec<Recorder>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            secret: Some(SECRET),
            keys: Keys::new(Some(Secret::new(SERVICE_KEY)), Some(Secret::new(ANON_KEY))),
            hands: Hands::default(),
            consumer: Consumer::Fetching,
            checks: vec![],
            others: Router::new(),
            limits: |_| {},
            allow_insecure: false,
            sets: &[],
            queue: 1024,
            min_free: 0,
            recorders: vec![],
        }
    }
}

impl TestServer {
    async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    async fn with(setup: Setup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let settings = Settings {
            synchronous: Synchronous::Normal,
            readers: 2,
            queue: setup.queue,
            busy_timeout: Duration::from_millis(100),
            cache: 4 << 20,
            min_free: setup.min_free,
            ballast: 0,
        };
        let db = Db::open(dir.path(), Role::Owner("test"), &settings, clock.clone(), setup.recorders).unwrap();
        let sources = setup.sets.iter().fold(Sources::empty(), |sources, assignment| sources.with_set(*assignment));
        let config = Config::load(sources).unwrap();
        let Config { bot, events, http, leads, .. } = &config;
        let policy = EgressPolicy { allow_insecure: setup.allow_insecure, ..EgressPolicy::default() };
        let egress = Egress::new(policy);
        let timeout = config.webhooks.timeout;
        let settings = TransportSettings { timeout, idle_per_host: 4, ca_file: None };
        let transport = Transport::new(&settings, egress.clone(), Resolver::system(), clock.clone()).unwrap();
        let tools = WebhookTools { egress, vault: Vault::at(dir.path()), transport };
        let sections = Sections { bot, events, http, leads };
        let mut state = HttpState::new(db.clone(), &sections, tools, recorded_metrics());
        state.keys = setup.keys;
        state.hands = setup.hands;
        state.bot_secret = setup.secret.map(Secret::new);
        state.consumer = setup.consumer;
        state.checks = setup.checks;
        (setup.limits)(&mut state.limits);
        let limits = state.limits;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let routes = router(state, setup.others);
        let served = tokio::spawn(serve(listener, routes.clone(), limits, shutdown.clone()));
        Self { address, clock, db, shutdown, routes, served, _dir: dir }
    }

    /// A request with the secret and, if there is one, a JSON body.
    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let text = body.map(Value::to_string);
        let auth = format!("Bearer {SECRET}");
        let mut headers = vec![("Authorization", auth.as_bytes())];
        if text.is_some() {
            headers.push(("Content-Type", b"application/json"));
        }
        self.send(method, path, &headers, text.as_deref().unwrap_or_default().as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(&body)).await
    }

    /// A request of exactly these headers, and what is needed to frame it. The answer is held to the document.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Answer {
        let mut raw = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n").into_bytes();
        for (name, value) in headers {
            raw.extend_from_slice(name.as_bytes());
            raw.extend_from_slice(b": ");
            raw.extend_from_slice(value);
            raw.extend_from_slice(b"\r\n");
        }
        if !body.is_empty() || method == "POST" {
            raw.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        raw.extend_from_slice(b"\r\n");
        raw.extend_from_slice(body);
        let answer = self.raw(&raw).await;
        conformance::check(self, method, path, &answer).await;
        answer
    }

    /// Sends bytes as they are and reads until the server closes.
    async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        Answer::parse(&all)
    }

    /// Emits an event and returns its id.
    async fn emit(&self, body: Value) -> i64 {
        let answer = self.post("/bot/events", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_i64().unwrap()
    }

    /// The ids of a page.
    async fn pending(&self, query: &str) -> Vec<i64> {
        let answer = self.get(&format!("/bot/events/pending{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["events"].as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()).collect()
    }

    /// Acknowledges and returns the counts, in the order processed, retried, abandoned, deadLettered, unknown.
    async fn ack(&self, body: Value) -> [i64; 5] {
        let answer = self.post("/bot/events/ack", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ["processed", "retried", "abandoned", "deadLettered", "unknown"].map(|key| answer.json()[key].as_i64().unwrap())
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// What is logged on this thread, where a test's server runs too, while the guard lives.
fn record_log() -> (Page, tracing::subscriber::DefaultGuard) {
    /// While there is one subscriber only, a thread without any that is the first to come by a line of the log decides
    /// that nobody ever wants that line. With this one there are always two.
    static SECOND: LazyLock<tracing::Dispatch> = LazyLock::new(|| subscriber(Page::default()).into());
    LazyLock::force(&SECOND);
    let page = Page::default();
    let guard = tracing::subscriber::set_default(subscriber(page.clone()));
    (page, guard)
}

fn subscriber(page: Page) -> impl tracing::Subscriber + Send + Sync {
    static CONFIG: LazyLock<LogConfig> =
        LazyLock::new(|| LogConfig { level: "info".to_owned(), format: LogFormat::Json });
    log::subscriber(&CONFIG, Output::Stream, move || page.clone())
}

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The recorder belongs to the process, so the tests share it.
fn recorded_metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| install_metrics().unwrap()).clone()
}

/// What came back.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.headers, self.text())
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    fn find_header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts a whole problem of this status and code; the fields it names.
    fn problem(&self, status: u16, code: &str) -> Vec<String> {
        assert_eq!(
            (self.status, self.find_header("content-type")),
            (status, Some("application/problem+json")),
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status);
        assert_eq!(body["type"], format!("urn:pillarbox:problem:{code}"));
        assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
        if status != 401 {
            assert_eq!(body["request_id"].as_str(), self.find_header("x-request-id"), "{body}");
        }
        let none = vec![];
        let errors = body["errors"].as_array().unwrap_or(&none);
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    }
}

fn wallet(uid: i64) -> Value {
    json!({"eventType": "wallet_connected", "magnetUid": uid})
}

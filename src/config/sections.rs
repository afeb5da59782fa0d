//! The checked sections. A component is handed its own section and never sees the others, nor any text to parse.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use super::value::Value;
use crate::kernel::secret::Secret;

/// `[store]`: the database file.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Directory of the database, its lock and its backups.
    pub data_dir: PathBuf,
    /// When a commit counts as done.
    pub synchronous: Synchronous,
    /// Connections that read at the same time.
    pub readers: u32,
    /// Writes that may wait before the next is refused.
    pub queue: usize,
    /// How long a write waits for another program's lock.
    pub busy_timeout: Duration,
    /// The writer's page cache, in bytes.
    pub cache_bytes: u64,
    /// Free space, in bytes, below which intake is refused.
    pub min_free_bytes: u64,
    /// Size of the file that is given up when the disk is full, in bytes; 0 for none.
    pub ballast_bytes: u64,
}

/// SQLite's `synchronous` pragma, of which two levels are offered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Synchronous {
    /// A commit is on the disk when it is answered.
    Full,
    /// A power cut may lose the last commits, never the file's consistency.
    Normal,
}

/// `[http]`: the HTTP server.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address and port; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// How long work in hand may take to end.
    pub shutdown_timeout: Duration,
    /// Largest body that is read, in bytes.
    pub body_limit_bytes: usize,
    /// Networks of the proxies whose word about a client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
}

/// `[log]`: what is logged and how.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Directives of the filter; they have been checked.
    pub level: String,
    /// The form of a line.
    pub format: LogFormat,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[jobs]`: schedules and retention.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    /// The zone of the schedules.
    pub time_zone: chrono_tz::Tz,
    /// How long the ledger remembers a handled event.
    pub ledger_retention: Duration,
}

/// The values that passed, by dotted name. While problems are being collected some may be missing.
pub(super) struct Checked(pub(super) std::collections::BTreeMap<String, Value>);

/// Why asking [`Checked`] for a key of the table cannot fail: every load asks for every key.
pub(super) const IN_THE_TABLE: &str = "the key is in KEYS, its kind is the one asked for, and its default parses";

impl Checked {
    pub(super) fn find_integer(&self, key: &str) -> Option<u32> {
        match self.0.get(key)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn find_duration(&self, key: &str) -> Option<Duration> {
        match self.0.get(key)? {
            Value::Duration(length) => Some(*length),
            _ => None,
        }
    }

    pub(super) fn find_size(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Size(bytes) => Some(*bytes),
            _ => None,
        }
    }

    pub(super) fn find_word(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn find_url(&self, key: &str) -> Option<Url> {
        match self.0.get(key)? {
            Value::Url(url) => Some(url.clone()),
            _ => None,
        }
    }

    pub(super) fn find_secret(&self, key: &str) -> Option<Secret> {
        match self.0.get(key)? {
            Value::Secret(secret) => Some(secret.clone()),
            _ => None,
        }
    }

    pub(super) fn find_path(&self, key: &str) -> Option<PathBuf> {
        match self.0.get(key)? {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    pub(super) fn switch(&self, key: &str) -> bool {
        match self.0.get(key) {
            Some(Value::Switch(is_on)) => *is_on,
            _ => unreachable!("{IN_THE_TABLE}"),
        }
    }

    pub(super) fn networks(&self, key: &str) -> Vec<IpNet> {
        match self.0.get(key) {
            Some(Value::Networks(networks)) => networks.clone(),
            _ => unreachable!("{IN_THE_TABLE}"),
        }
    }

    pub(super) fn integer(&self, key: &str) -> u32 {
        self.find_integer(key).expect(IN_THE_TABLE)
    }

    pub(super) fn count(&self, key: &str) -> usize {
        usize::try_from(self.integer(key)).expect("a number of 32 bits fits the machines we run on")
    }

    pub(super) fn duration(&self, key: &str) -> Duration {
        self.find_duration(key).expect(IN_THE_TABLE)
    }

    fn size(&self, key: &str) -> u64 {
        self.find_size(key).expect(IN_THE_TABLE)
    }

    pub(super) fn word(&self, key: &str) -> &str {
        self.find_word(key).expect(IN_THE_TABLE)
    }

    pub(super) fn store(&self) -> StoreConfig {
        StoreConfig {
            data_dir: self.find_path("store.data_dir").expect(IN_THE_TABLE),
            synchronous: if self.word("store.synchronous") == "full" { Synchronous::Full } else { Synchronous::Normal },
            readers: self.integer("store.readers"),
            queue: self.count("store.queue"),
            busy_timeout: self.duration("store.busy_timeout"),
            cache_bytes: self.size("store.cache"),
            min_free_bytes: self.size("store.min_free"),
            ballast_bytes: self.size("store.ballast"),
        }
    }

    pub(super) fn http(&self) -> HttpConfig {
        let Some(Value::Address(listen)) = self.0.get("http.listen") else { unreachable!("{IN_THE_TABLE}") };
        HttpConfig {
            listen: *listen,
            shutdown_timeout: self.duration("http.shutdown_timeout"),
            body_limit_bytes: usize::try_from(self.size("http.body_limit")).expect("its bound is 64 MB"),
            trusted_proxies: self.networks("http.trusted_proxies"),
        }
    }

    pub(super) fn log(&self) -> LogConfig {
        let format = match self.word("log.format") {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => LogFormat::Auto,
        };
        LogConfig { level: self.word("log.level").to_owned(), format }
    }

    pub(super) fn jobs(&self) -> JobsConfig {
        let Some(Value::Zone(time_zone)) = self.0.get("jobs.time_zone") else { unreachable!("{IN_THE_TABLE}") };
        JobsConfig { time_zone: *time_zone, ledger_retention: self.duration("jobs.ledger_retention") }
    }
}

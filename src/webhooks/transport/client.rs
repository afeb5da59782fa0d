//! The HTTP client and its connections. A connection leads to where its name led when it was dialled; so that this does
//! not hold for ever, all of them are given up together each minute, and what is sent next looks its name up again.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::connect::{self, Connector};
use super::guard::Guard;
use super::{TransportError, TransportSettings};

/// How long a connection without a request is kept. Shorter than what receivers commonly allow (five seconds is usual),
/// so that it is we who close it, and no request meets a connection that is just being closed.
pub(super) const IDLE: Duration = Duration::from_secs(4);

/// The longest that requests begin on the same connections, in real time, as names change in it.
const LONGEST: Duration = Duration::from_secs(60);

/// The most bytes of a head, and of what is read ahead. Servers and proxies commonly allow 8 KiB to 16 KiB; with more, a
/// single read could bring so many provisional answers that going through them takes long.
const LONGEST_HEAD: usize = 32 * 1024;

/// Follows no redirect, knows no proxy and no cookie, and decompresses nothing: it has none of these.
pub(super) type HttpClient = Client<Connector, Full<Bytes>>;

/// The client of now, and how the next one is made.
#[derive(Debug)]
pub(super) struct Clients {
    timeout: Duration,
    idle_per_host: usize,
    guard: Guard,
    tls: ClientConfig,
    current: Mutex<(Arc<HttpClient>, Instant)>,
}

impl Clients {
    /// # Errors
    /// The certificates, or what is not accepted of them.
    pub(super) fn new(settings: &TransportSettings, guard: Guard) -> Result<Self, TransportError> {
        let TransportSettings { timeout, idle_per_host, ca_file } = settings;
        let own = ca_file.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let tls = connect::tls(own).map_err(TransportError::Client)?;
        let made = client(Connector::new(guard.clone(), tls.clone(), *timeout), *idle_per_host);
        let current = Mutex::new((made, Instant::now()));
        Ok(Self { timeout: *timeout, idle_per_host: *idle_per_host, guard, tls, current })
    }

    /// A client whose connections are young enough. Those of the one before are closed, but what is under way on them ends.
    pub(super) fn current(&self) -> Arc<HttpClient> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.1.elapsed() >= LONGEST {
            let connector = Connector::new(self.guard.clone(), self.tls.clone(), self.timeout);
            *current = (client(connector, self.idle_per_host), Instant::now());
        }
        Arc::clone(&current.0)
    }

    /// As if the connections had been used for as long as they may be.
    #[cfg(test)]
    pub(super) fn grow_old(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.1 = Instant::now().checked_sub(LONGEST).expect("this machine runs for longer than a minute");
    }
}

/// One request at a time on a connection, as it speaks HTTP/1.1: a receiver that hangs holds up nobody else's.
fn client(connector: Connector, idle_per_host: usize) -> Arc<HttpClient> {
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(idle_per_host)
        .http1_max_buf_size(LONGEST_HEAD)
        .build(connector);
    Arc::new(client)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let read = std::fs::read(path);
    let text = read.map_err(|source| TransportError::CaFile { path: path.to_owned(), source })?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().unwrap_or_default();
    if found.is_empty() { Err(TransportError::NoCertificate { path: path.to_owned() }) } else { Ok(found) }
}

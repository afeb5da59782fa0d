//! The HTTP client and its connections. A connection leads to where its name led when it was dialled; so that this does
//! not hold for ever, all of them are given up together each minute, and what is sent next looks its name up again.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Certificate, Client};

use super::guard::Guard;
use super::{TransportError, TransportSettings, user_agent};

/// How long a connection without a request is kept. Shorter than what receivers commonly allow (five seconds is usual),
/// so that it is we who close it, and no request meets a connection that is just being closed.
pub(super) const IDLE: Duration = Duration::from_secs(4);

/// The longest that requests begin on the same connections, in real time, as names change in it.
const LONGEST: Duration = Duration::from_secs(60);

/// The client of now, and how the next one is made.
#[derive(Debug)]
pub(super) struct Clients {
    timeout: Duration,
    idle_per_host: usize,
    certificates: Vec<Certificate>,
    guard: Arc<Guard>,
    current: Mutex<(Client, Instant)>,
}

impl Clients {
    /// # Errors
    /// The certificates, or what the client does not accept of them.
    pub(super) fn new(settings: &TransportSettings, guard: Guard) -> Result<Self, TransportError> {
        let TransportSettings { timeout, idle_per_host, ca_file } = settings;
        let certificates = ca_file.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let guard = Arc::new(guard);
        let made = client(*timeout, *idle_per_host, &certificates, &guard).map_err(TransportError::Client)?;
        let current = Mutex::new((made, Instant::now()));
        Ok(Self { timeout: *timeout, idle_per_host: *idle_per_host, certificates, guard, current })
    }

    /// A client whose connections are young enough. Those of the one before are closed, but what is under way on them ends.
    ///
    /// # Errors
    /// The next client could not be made.
    pub(super) fn current(&self) -> Result<Client, reqwest::Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.1.elapsed() >= LONGEST {
            let made = client(self.timeout, self.idle_per_host, &self.certificates, &self.guard);
            *current = (made.inspect_err(|error| tracing::error!(%error, "webhooks cannot be sent"))?, Instant::now());
        }
        Ok(current.0.clone())
    }

    /// As if the connections had been used for as long as they may be.
    #[cfg(test)]
    pub(super) fn grow_old(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.1 = Instant::now().checked_sub(LONGEST).expect("this machine runs for longer than a minute");
    }
}

fn client(
    timeout: Duration,
    idle_per_host: usize,
    certificates: &[Certificate],
    guard: &Arc<Guard>,
) -> Result<Client, reqwest::Error> {
    let builder = Client::builder()
        .use_rustls_tls()
        .min_tls_version(reqwest::tls::Version::TLS_1_2)
        .user_agent(user_agent())
        .dns_resolver(Arc::clone(guard))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        // One request at a time on a connection: a receiver that hangs holds up nobody else's.
        .http1_only()
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(idle_per_host)
        // Shared out among the addresses of a name, so that one that does not answer leaves time for the next.
        .connect_timeout(timeout);
    certificates.iter().cloned().fold(builder, reqwest::ClientBuilder::add_root_certificate).build()
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, TransportError> {
    let read = std::fs::read(path);
    let text = read.map_err(|source| TransportError::CaFile { path: path.to_owned(), source })?;
    let found = Certificate::from_pem_bundle(&text).unwrap_or_default();
    if found.is_empty() { Err(TransportError::NoCertificate { path: path.to_owned() }) } else { Ok(found) }
}

//! The receiver of `pillarbox webhooks listen`: deliveries of a `dev` on this machine, shown as they arrive and handed on
//! to the program that is being written.
//!
//! **What.** One address on 127.0.0.1 with a path that nobody can guess. What is posted there is verified
//! ([`super::signature`]), handed on byte for byte ([`Forward`]) and told as an [`Arrival`].
//!
//! **States.** None but the count of arrivals of each id, which is the number of the attempt: the endpoint is this
//! receiver's own, so every attempt that gets through comes here. It is kept for the last [`LONGEST_MEMORY`] ids.
//!
//! **Guarantees.** Method, headers and body are handed on as they came, and the program's status is the answer, also when
//! it is a redirect: `src/dev/listen/tests.rs::method_headers_and_bytes_are_handed_on_and_the_status_comes_back`. A program
//! that cannot be reached is a 502: `src/dev/listen/tests.rs::a_program_that_is_not_there_is_a_502`. What is not verified
//! is told as such, and handed on all the same: whoever writes a receiver wants to see that it refuses it.
//!
//! **Windows.** Killed between the arrival and the answer: the sender tries again, as with any receiver. A sender that has
//! given up does not stop the handing-on:
//! `src/dev/listen/tests.rs::a_sender_that_hangs_up_does_not_take_the_delivery_from_the_program`.
//!
//! **Not here.** The endpoint in the database, which the command makes and deletes; TLS; other machines.

mod forward;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::get;
use rand::RngCore;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::forward::Forward;
use super::signature::{Fault, Key};
use super::{Error, guard};
use crate::kernel::clock::{Clock, UnixMs};

/// What a living receiver answers to a GET of its address.
const ALIVE: &str = "pillarbox webhooks listen";
/// How long it may take to say so; whoever is stopped in a debugger is alive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Ids whose arrivals are counted.
const LONGEST_MEMORY: usize = 10_000;
/// How long answers in flight may take after the stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A delivery that has come and been answered.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// When it came, by the clock of `dev`.
    pub(crate) at: UnixMs,
    /// Its `webhook-id`, if it has one.
    pub(crate) id: Option<String>,
    /// The event's type, if the body says one.
    pub(crate) event_type: Option<String>,
    /// Which arrival of this id it is, from one.
    pub(crate) attempt: u32,
    /// What is wrong with its signature.
    pub(crate) fault: Option<Fault>,
    /// From its last byte to the answer.
    pub(crate) took: Duration,
    pub(crate) answer: Answer,
    /// The sender had gone when the answer was there.
    pub(crate) is_late: bool,
    pub(crate) body: Bytes,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200, since it is handed on to nobody.
    Own,
    /// The program's own status.
    Forwarded(u16),
    /// 502, and why the program gave no answer.
    Unreachable(String),
}

/// A bound address that does not receive yet.
pub(crate) struct Receiver {
    listener: TcpListener,
    path: String,
}

/// What a receiver works with.
pub(crate) struct Desk {
    /// What deliveries are verified with.
    pub(crate) key: Key,
    pub(crate) clock: Clock,
    /// The program that they are handed on to.
    pub(crate) forward: Option<Forward>,
    /// Where arrivals are told.
    pub(crate) told: mpsc::Sender<Arrival>,
}

impl Receiver {
    /// Binds a free port of this machine.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub(crate) async fn bind() -> Result<Self, Error> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(listen).await.map_err(|source| Error::Bind { listen, source })?;
        let mut token = [0_u8; 16];
        rand::rng().fill_bytes(&mut token);
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { listener, path: format!("/listen/{token}") })
    }

    /// Where deliveries are to be sent.
    ///
    /// # Errors
    /// [`Error::Serve`] when the system does not say the port.
    pub(crate) fn url(&self) -> Result<String, Error> {
        let address = self.listener.local_addr().map_err(Error::Serve)?;
        Ok(format!("http://{address}{}", self.path))
    }

    /// Receives until `stop`, and answers what is in hand then.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub(crate) async fn serve(self, desk: Desk, stop: CancellationToken) -> Result<(), Error> {
        let office = Arc::new(Office { desk, counts: Mutex::default() });
        let route = get(|| async { ALIVE }).fallback(receive::receive);
        let router = guard::local_only(Router::new().route(&self.path, route).with_state(office));
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        let serving = axum::serve(self.listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::select! {
            served = serving.into_future() => served.map_err(Error::Serve),
            () = overdue => Ok(()),
        }
    }
}

/// Whether a receiver that was bound to this address is still there. One that does not answer in time is: only an
/// address where nobody listens, or somebody else, has been left behind.
///
/// # Errors
/// [`Error::Client`].
pub(crate) async fn is_alive(url: &str) -> Result<bool, Error> {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE);
    let said = async { client.build()?.get(url).send().await?.text().await }.await;
    match said {
        Ok(text) => Ok(text == ALIVE),
        Err(error) if error.is_builder() => Err(error.into()),
        Err(error) => Ok(error.is_timeout()),
    }
}

/// The desk, and what the receiver remembers.
struct Office {
    desk: Desk,
    counts: Mutex<Counts>,
}

/// How often each id has come.
#[derive(Default)]
struct Counts {
    of: HashMap<String, u32>,
    /// The ids, in the order in which they first came.
    order: VecDeque<String>,
}

impl Office {
    /// Counts an arrival of `id`; which one it is.
    fn count(&self, id: &str) -> u32 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.of.get_mut(id) {
            *count += 1;
            return *count;
        }
        if counts.order.len() >= LONGEST_MEMORY
            && let Some(oldest) = counts.order.pop_front()
        {
            counts.of.remove(&oldest);
        }
        counts.order.push_back(id.to_owned());
        counts.of.insert(id.to_owned(), 1);
        1
    }
}

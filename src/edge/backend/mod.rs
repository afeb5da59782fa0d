//! The remote backend: the contract spoken as a client, for a bot whose backend is another process.
//!
//! **What.** [`RemoteBackend`] fetches pages, puts them in order, and acknowledges what became of them. What the bot
//! wants of the backend is a row of `backend_calls` ([`calls`]), which this client is then asked to make.
//!
//! **Order.** Events of one person are one subject, by member or by chat; its ids ascend. Against a backend that serves
//! an event while an earlier one of that person waits for its retry, this holds within a page only.
//!
//! **Acknowledging.** One acknowledgement ends a page. If it is lost, the events are served again, and their marks in
//! the ledger answer for them. If it arrived and only its answer was lost, they are never served again: so a page that
//! is not full, and therefore shows all there is, closes the accounts of those it does not show. Nothing is
//! acknowledged by its id alone: after a backend was replaced or set back, the id may be another event's.
//! `retryIds` are sent once, since a backend may count them twice; unheard, the event is served and fails again. They
//! are plain ids, as the contract has them, unless the backend says that it takes reasons ([`TAKES_REASONS`]).
//!
//! **Not here.** What an event means (`onboarding`); the other side of the contract (`edge/http`).
//!
//! [`calls`]: crate::onboarding::calls
//! [`TAKES_REASONS`]: crate::kernel::contract::TAKES_REASONS

mod client;
mod order;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::config;
use crate::kernel::contract::{Bound, ConnectLink, Leader, MemberState, WebNotification};
use crate::kernel::store::{Db, StoreError, Tx};
use crate::onboarding::calls::{self, Call};
use crate::onboarding::{Backend, BackendError, Fate, Finished, PageEvent, Remote, ledger};
use client::Client;
use wire::{AckBody, Reasons};

/// How long things may take, in real time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    connect: Duration,
    /// A whole call.
    call: Duration,
    /// The pauses between the attempts to deliver one acknowledgement.
    pauses: [Duration; 2],
    /// No further attempt begins after this, so that a shutdown is not held up.
    patience: Duration,
}

const PACE: Pace = Pace {
    connect: Duration::from_secs(5),
    call: Duration::from_secs(15),
    pauses: [Duration::from_millis(250), Duration::from_secs(1)],
    patience: Duration::from_secs(3),
};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// The address is no http(s) address.
    #[error("bot.remote_url is not an http or https address")]
    Address,
    /// A header cannot carry the secret.
    #[error("bot.backend_secret has a character that no HTTP header can carry, such as a line break")]
    Secret,
    /// The HTTP client could not be set up: TLS roots, or the proxy that the environment names.
    #[error("the HTTP client could not be set up")]
    Transport,
}

/// A backend elsewhere.
pub(crate) struct RemoteBackend {
    db: Db,
    client: Client,
    source: String,
    pace: Pace,
    /// Whether the last page said that reasons are taken.
    takes_reasons: AtomicBool,
}

impl fmt::Debug for RemoteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBackend").field("source", &self.source).finish_non_exhaustive()
    }
}

impl RemoteBackend {
    /// A client of this backend. It makes no connection yet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) fn new(db: Db, remote: &config::RemoteBackend) -> Result<Self, ClientError> {
        Self::paced(db, remote, PACE)
    }

    fn paced(db: Db, remote: &config::RemoteBackend, pace: Pace) -> Result<Self, ClientError> {
        let client = Client::new(remote, pace.connect, pace.call)?;
        Ok(Self { db, client, source: remote.source.clone(), pace, takes_reasons: AtomicBool::new(false) })
    }

    async fn fetch(&self, limit: i64) -> Result<Vec<PageEvent>, BackendError> {
        let (page, reasons) = self.client.pending(limit).await?;
        self.takes_reasons.store(reasons == Reasons::Taken, Ordering::Relaxed);
        let shows_all = page.served < usize::try_from(limit).unwrap_or(usize::MAX);
        let (source, events) = (self.source.clone(), page.events);
        let read = move |tx: &Tx<'_>| {
            let mut closed = if shows_all { ledger::unacknowledged(tx, &source)? } else { Vec::new() };
            closed.retain(|id| !events.iter().any(|event| event.id == *id));
            Ok::<_, StoreError>((order::by_subject(tx, events)?, closed))
        };
        let (page, closed) = self.db.read(read).await?;
        if !closed.is_empty() {
            tracing::debug!(
                events = closed.len(),
                "events whose acknowledgement was unheard are closed at the backend"
            );
            self.close_accounts(closed).await?;
        }
        Ok(page)
    }

    async fn close_accounts(&self, ids: Vec<i64>) -> Result<(), StoreError> {
        let source = self.source.clone();
        self.db.settle(move |tx| ledger::acknowledged(tx, &source, &ids)).await
    }

    /// Delivers an acknowledgement, with a few attempts if need be.
    async fn acknowledge(&self, mut ack: AckBody) -> Result<(), BackendError> {
        let started = Instant::now();
        for pause in self.pace.pauses {
            match self.client.ack(&ack).await {
                Err(BackendError::Unreachable(code)) if started.elapsed() < self.pace.patience => {
                    if code != client::NO_CONNECTION {
                        ack.retry_ids.clear();
                    }
                    if ack.is_empty() {
                        return Err(BackendError::Unreachable(code));
                    }
                    tracing::debug!(code, "an acknowledgement was not answered and is sent again");
                    tokio::time::sleep(pause).await;
                }
                answered => return answered,
            }
        }
        self.client.ack(&ack).await
    }
}

impl Backend for RemoteBackend {
    fn source(&self) -> &str {
        &self.source
    }

    fn next_page(&self, limit: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>> {
        self.fetch(limit).boxed()
    }

    /// The contract has no lease: whoever serves the same events to two bots breaks the order.
    fn hold<'a>(&'a self, _: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }

    /// The page was in order when it was served, and nobody else takes from it.
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

    fn finish<'a>(&'a self, page: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            let reasons = if self.takes_reasons.load(Ordering::Relaxed) { Reasons::Taken } else { Reasons::NotTaken };
            let ack = AckBody::of(page, reasons);
            if ack.is_empty() {
                return Ok(());
            }
            self.acknowledge(ack).await?;
            Ok(self.close_accounts(page.processed.clone()).await?)
        }
        .boxed()
    }

    fn notify(&self, tx: &Tx<'_>, notification: &WebNotification) -> Result<(), StoreError> {
        calls::request(tx, &self.source, notification)
    }

    fn find_leader<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>> {
        self.client.leader(code).boxed()
    }

    fn find_account(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>> {
        self.client.account(telegram_id).boxed()
    }

    fn find_state(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>> {
        self.client.state(telegram_id).boxed()
    }

    fn connect_link(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>> {
        self.client.connect_link(telegram_id).boxed()
    }

    fn bind(&self, tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Option<Bound>, StoreError> {
        calls::request_bind(tx, &self.source, telegram_id, uid).map(|()| None)
    }
}

impl Remote for RemoteBackend {
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<Bound>, BackendError>> {
        match call {
            Call::Notification(notification) => {
                async move { self.client.notify(notification).await.map(|()| None) }.boxed()
            }
            Call::Bind(bind) => async move { self.client.bind(bind.telegram_id, bind.uid).await.map(Some) }.boxed(),
        }
    }
}

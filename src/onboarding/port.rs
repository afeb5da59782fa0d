//! The port to a backend: the contract as the consumer speaks it, whoever is on the other side.

use futures_util::future::BoxFuture;

use super::calls::Call;
use crate::kernel::contract::{BotEvent, Bound, ConnectLink, Leader, MemberState, WebNotification};
use crate::kernel::store::{StoreError, Tx};

/// An event of a page, with the subject whose order it is in.
#[derive(Clone, Debug)]
pub(crate) struct PageEvent {
    /// Events of one subject are applied in the order of their ids, and stop at the first that fails.
    pub(crate) subject: String,
    /// The event as the contract has it.
    pub(crate) event: BotEvent,
}

/// What counting a failed attempt did to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is tried again after its back-off.
    Waits,
    /// It was given up and closed.
    Abandoned,
    /// It was given up and kept for a person.
    DeadLettered,
    /// Whoever owns it decides when it is told.
    Theirs,
}

/// What became of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished {
    /// Applied, or found in the ledger.
    pub(crate) processed: Vec<i64>,
    /// How many of the processed were found in the ledger.
    pub(crate) repeats: usize,
    /// Failed, with the short reason and what follows from it.
    pub(crate) failed: Vec<(i64, String, Fate)>,
    /// Those of the failed whose id is in the ledger with another time of emission.
    pub(crate) reused: Vec<i64>,
    /// Not looked at: behind a failed one, or no longer first.
    pub(crate) left: Vec<i64>,
}

/// Why a backend could not be spoken to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BackendError {
    /// It cannot be reached, or answers that it cannot serve.
    #[error("the backend cannot be reached ({0})")]
    Unreachable(String),
    /// It does not accept our secret.
    #[error("the backend refuses the secret; check bot.backend_secret on both sides")]
    Unauthorized,
    /// It takes its events itself, and two consumers would break the order.
    #[error("the backend consumes its own events; set bot.event_source = \"off\" there, or stop consuming them here")]
    ConsumedThere,
    /// It understands the request and does not do it.
    #[error("the backend refuses the request ({0})")]
    Refused(String),
    /// It answers something the contract does not have.
    #[error("the backend answers outside the contract: {0}")]
    Contract(String),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackendError {
    /// The reason, short enough to be stored.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Unreachable(code) | Self::Refused(code) => code,
            Self::Unauthorized => "unauthorized",
            Self::ConsumedThere => "events_are_consumed_there",
            Self::Contract(_) => "outside_contract",
            Self::Store(_) => "store",
        }
    }
}

/// A backend, as the bot knows it.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The name under which its events are in the ledger.
    fn source(&self) -> &str;

    /// The next page, held for this consumer if the backend can do that. Empty when nothing is due.
    fn next_page(&self, limit: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>>;

    /// Holds on to a page that takes long.
    fn hold<'a>(&'a self, ids: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Whether the event may be applied now: it is still open, and still the first of its subject.
    ///
    /// # Errors
    /// The store's.
    fn may_apply(&self, tx: &Tx<'_>, id: i64) -> Result<bool, StoreError>;

    /// Closes an applied event in the transaction of its effects, where the backend is in this file.
    ///
    /// # Errors
    /// The store's.
    fn close(&self, tx: &Tx<'_>, id: i64) -> Result<(), StoreError>;

    /// Counts a failed attempt, where the backend is in this file.
    ///
    /// # Errors
    /// The store's.
    fn put_off(&self, tx: &Tx<'_>, id: i64, error: &str) -> Result<Fate, StoreError>;

    /// Whether the ledger marks of this backend's events are final when they are made.
    fn closes_at_once(&self) -> bool;

    /// Tells the backend what became of the page, after its commit.
    fn finish<'a>(&'a self, page: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Has a member told something in the web cabinet, in the caller's transaction.
    ///
    /// # Errors
    /// The store's.
    fn notify(&self, tx: &Tx<'_>, notification: &WebNotification) -> Result<(), StoreError>;

    /// The member whose link has this code.
    fn find_leader<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>>;

    /// The member whom this chat is bound to.
    fn find_account(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>>;

    /// What the member whom this chat is bound to has done.
    fn find_state(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>>;

    /// The way to the site for this chat; `None` if no site is known.
    fn connect_link(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>>;

    /// Binds this chat to the member, in the caller's transaction. `None`: a backend elsewhere was asked, and its answer
    /// comes later ([`super::dialog::bind::answered`]).
    ///
    /// # Errors
    /// The store's.
    fn bind(&self, tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Option<Bound>, StoreError>;
}

/// A backend elsewhere, which is written to by calls of their own.
pub(crate) trait Remote: Backend {
    /// Makes one call once; what became of a binding, for a call that asks for one. An error that leaves the outcome open is [`BackendError::Unreachable`] like any other: a
    /// call is repeated until it is answered.
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<Bound>, BackendError>>;
}

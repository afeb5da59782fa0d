//! The resolver inside the HTTP client: it hands out judged addresses only, so that what is checked is what is dialled.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::webhooks::egress::{Egress, Judgement};
use crate::webhooks::resolve::{Begun, NoAddress, Resolver};

/// What is noted of the request of a task.
#[derive(Debug, Default)]
struct Watch {
    /// The address that the client was given to dial. The client tells it only of requests that were answered.
    dialled: Cell<Option<IpAddr>>,
    /// The lookup that the client asked for last, and that has not ended.
    lookup: RefCell<Option<Begun>>,
}

tokio::task_local! {
    static WATCH: Watch;
}

/// Why the client got no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotDialled {
    /// The name leads nowhere.
    #[error("the name could not be looked up")]
    Unknown,
    /// It leads to an address that is not public.
    #[error("the name leads to an address that is not public")]
    NotPublic,
    /// This machine could not find out where it leads, or whether that is this machine itself.
    #[error("it could not be found out where the name leads")]
    Untold,
}

/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    egress: Egress,
    resolver: Resolver,
}

impl Guard {
    pub(super) fn new(egress: Egress, resolver: Resolver) -> Self {
        Self { egress, resolver }
    }

    async fn addresses(&self, name: &Name) -> Result<std::vec::IntoIter<SocketAddr>, NotDialled> {
        let begun = Begun::default();
        // A connection that nobody waits for any more is dialled in a task of its own.
        let _ = WATCH.try_with(|watch| watch.lookup.replace(Some(begun.clone())));
        let found = self.resolver.resolve(name.as_str(), &begun).await;
        let _ = WATCH.try_with(|watch| watch.lookup.take());
        let addresses = found.map_err(|why| match why {
            NoAddress::Unknown => NotDialled::Unknown,
            NoAddress::NotAsked => NotDialled::Untold,
        })?;
        // One that may not be dialled spoils the others: who mixes them is trying out which one we take.
        let judged: Vec<_> = addresses.iter().map(|address| self.egress.judge(*address)).collect();
        if judged.contains(&Judgement::Refused) {
            return Err(NotDialled::NotPublic);
        }
        if judged.contains(&Judgement::Untold) {
            return Err(NotDialled::Untold);
        }
        let _ = WATCH.try_with(|watch| watch.dialled.set(addresses.first().copied()));
        // Port 0 is replaced by that of the URL.
        let dialled: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
        Ok(dialled.into_iter())
    }
}

impl Service<Name> for Guard {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NotDialled;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NotDialled>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotDialled>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.clone();
        Box::pin(async move { guard.addresses(&name).await })
    }
}

/// Runs a request so that [`dialled`] and [`is_in_line`] can be asked at its end.
pub(super) fn watching<F: Future>(request: F) -> impl Future<Output = F::Output> {
    WATCH.scope(Watch::default(), request)
}

/// The first of the addresses that the client was given for this request; of several, it is the one tried first.
pub(super) fn dialled() -> Option<IpAddr> {
    WATCH.try_with(|watch| watch.dialled.get()).ok().flatten()
}

/// Whether this request waits for a lookup that has not begun.
pub(super) fn is_in_line() -> bool {
    WATCH.try_with(|watch| watch.lookup.borrow().as_ref().is_some_and(|begun| !begun.is_set())).unwrap_or_default()
}

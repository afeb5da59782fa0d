//! The resolver inside the HTTP client: it hands out judged addresses only, so that what is checked is what is dialled.

use std::cell::Cell;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::webhooks::egress::Egress;
use crate::webhooks::resolve::Resolver;

tokio::task_local! {
    /// The address that the client was given to dial for the request of this task. The client tells it only of requests
    /// that were answered.
    static DIALLED: Cell<Option<IpAddr>>;
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
}

#[derive(Debug)]
pub(super) struct Guard {
    egress: Egress,
    resolver: Resolver,
}

impl Guard {
    pub(super) fn new(egress: Egress, resolver: Resolver) -> Self {
        Self { egress, resolver }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, resolver) = (self.egress.clone(), self.resolver.clone());
        Box::pin(async move {
            let addresses = resolver.resolve(name.as_str()).await.map_err(|_| NotDialled::Unknown)?;
            // One that may not be dialled spoils the others: who mixes them is trying out which one we take.
            if !addresses.iter().all(|address| egress.permits(*address)) {
                return Err(NotDialled::NotPublic.into());
            }
            // A connection that nobody waits for any more is dialled in a task of its own.
            let _ = DIALLED.try_with(|dialled| dialled.set(addresses.first().copied()));
            // Port 0 is replaced by that of the URL.
            let dialled = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok::<Addrs, _>(Box::new(dialled))
        })
    }
}

/// Runs a request so that [`dialled`] can be asked at its end.
pub(super) fn watching<F: Future>(request: F) -> impl Future<Output = F::Output> {
    DIALLED.scope(Cell::new(None), request)
}

/// The first of the addresses that the client was given for this request; of several, it is the one tried first.
pub(super) fn dialled() -> Option<IpAddr> {
    DIALLED.try_with(Cell::get).ok().flatten()
}

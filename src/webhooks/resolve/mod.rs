//! Names into addresses for outgoing webhooks, on threads of their own. The system's resolver blocks for as long as a name
//! server likes; were it run where database reads are, somebody's broken name server would stop everything.
//!
//! **Guarantees.**
//! - Names that hang, however many and however new, leave threads to those that have answered quickly:
//!   `src/webhooks/resolve/lookups/tests.rs::sixteen_names_that_hang_for_the_first_time_do_not_keep_a_good_one_waiting`.
//! - Whoever waits for a lookup knows whether it has begun:
//!   `src/webhooks/resolve/lookups/tests.rs::names_that_are_not_known_to_be_quick_leave_half_of_the_threads_to_those_that_are`.
//!
//! **Windows.** After a start no name is known to be quick: while names hang then, those that are new wait for half of the
//! threads. What does not come to its turn is interrupted, and made again
//! (`src/webhooks/deliver/tests/faults.rs::a_lookup_that_never_began_is_not_the_endpoints_failure`). A name that has answered
//! quickly and then hangs holds one of the other threads, once.

mod lookups;
mod paces;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::lookups::Lookups;

/// Why a name led to no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAddress {
    /// It has none, or nobody could say.
    #[error("the name could not be looked up")]
    Unknown,
    /// Nobody was asked: this machine was short of what that takes.
    #[error("the name was not looked up")]
    NotAsked,
}

/// Whether a lookup has begun: until then it waits for others of ours, and whoever loses patience has nothing to hold
/// against the name. Clones are of the same lookup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<AtomicBool>);

impl Begun {
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it has.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Who looks names up; clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Resolver {
    /// The system.
    System(Lookups),
    /// A test's answers.
    #[cfg(test)]
    Scripted(Arc<Script>),
}

impl Resolver {
    /// The system's resolver, as every program of this machine uses it.
    pub(crate) fn system() -> Self {
        Self::System(Lookups::system())
    }

    /// Every address of the name, in the order in which they are to be tried; never none. May take as long as name
    /// servers do, after it has `begun`: the caller has the deadline.
    ///
    /// # Errors
    /// [`NoAddress`].
    pub(crate) async fn resolve(&self, name: &str, begun: &Begun) -> Result<Vec<IpAddr>, NoAddress> {
        let found = match self {
            Self::System(lookups) => lookups.find(name, begun).await?,
            #[cfg(test)]
            Self::Scripted(script) => script.next(name, begun).await?,
        };
        if found.is_empty() { Err(NoAddress::Unknown) } else { Ok(found) }
    }
}

/// What a test has names answer.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Script {
    answers: std::sync::Mutex<std::collections::HashMap<String, std::collections::VecDeque<Line>>>,
    asked: std::sync::Mutex<Vec<String>>,
}

/// One answer of a [`Script`]. The last one of a name goes on for ever.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Addresses(Vec<IpAddr>),
    Fails,
    Hangs,
    /// It never begins.
    Waits,
    Panics,
}

#[cfg(test)]
impl Script {
    pub(crate) fn will(&self, name: &str, line: Line) {
        self.answers.lock().unwrap().entry(name.to_owned()).or_default().push_back(line);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn next(&self, name: &str, begun: &Begun) -> Result<Vec<IpAddr>, NoAddress> {
        self.asked.lock().unwrap().push(name.to_owned());
        let line = {
            let mut answers = self.answers.lock().unwrap();
            let lines = answers.get_mut(name).ok_or(NoAddress::Unknown)?;
            if lines.len() > 1 { lines.pop_front() } else { lines.front().cloned() }
        };
        if !matches!(line, Some(Line::Waits)) {
            begun.set();
        }
        match line {
            Some(Line::Addresses(addresses)) => Ok(addresses),
            Some(Line::Panics) => panic!("on purpose"),
            Some(Line::Hangs | Line::Waits) => std::future::pending().await,
            Some(Line::Fails) | None => Err(NoAddress::Unknown),
        }
    }
}

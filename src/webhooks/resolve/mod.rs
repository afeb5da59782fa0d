//! Names into addresses for outgoing webhooks, on threads of their own. The system's resolver blocks for as long as a name
//! server likes; were it run where database reads are, somebody's broken name server would stop everything.

mod lookups;

use std::net::IpAddr;

use self::lookups::Lookups;

/// A name that led to no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name could not be looked up")]
pub(crate) struct NoAddress;

/// Who looks names up; clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Resolver {
    /// The system.
    System(Lookups),
    /// A test's answers.
    #[cfg(test)]
    Scripted(std::sync::Arc<Script>),
}

impl Resolver {
    /// The system's resolver, as every program of this machine uses it.
    pub(crate) fn system() -> Self {
        Self::System(Lookups::system())
    }

    /// Every address of the name, in the order in which they are to be tried; never none. May take as long as name
    /// servers do: the caller has the deadline.
    ///
    /// # Errors
    /// There is none, or nobody could say.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, NoAddress> {
        let found = match self {
            Self::System(lookups) => lookups.find(name).await?,
            #[cfg(test)]
            Self::Scripted(script) => script.next(name).await?,
        };
        if found.is_empty() { Err(NoAddress) } else { Ok(found) }
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

    async fn next(&self, name: &str) -> Result<Vec<IpAddr>, NoAddress> {
        self.asked.lock().unwrap().push(name.to_owned());
        let line = {
            let mut answers = self.answers.lock().unwrap();
            let lines = answers.get_mut(name).ok_or(NoAddress)?;
            if lines.len() > 1 { lines.pop_front() } else { lines.front().cloned() }
        };
        match line {
            Some(Line::Addresses(addresses)) => Ok(addresses),
            Some(Line::Panics) => panic!("on purpose"),
            Some(Line::Hangs) => std::future::pending().await,
            Some(Line::Fails) | None => Err(NoAddress),
        }
    }
}

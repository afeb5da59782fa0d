//! The threads that ask the system. A name server that hangs holds a thread for as long as the system has patience with
//! it (half a minute is usual), so nobody gets many of them: whoever asks for a name that is being looked up waits for
//! that answer, a domain has a few threads at most, and half of the threads are for names that have answered quickly
//! before. A name that nobody knows yet may be one that hangs, however many of them there are. One that was quick and then
//! hangs takes a thread of those, once: it is slow from then on.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::paces::{Pace, Paces};
use super::{Begun, NoAddress};
use crate::webhooks::shortage::{is_short_of_sockets, is_shortage};

/// Threads at most. They are started when they are needed and end when they are not.
const THREADS: usize = 16;
/// Of those, for names under one domain: each endpoint may make up names under its own.
const PER_DOMAIN: usize = 4;
/// Of those, for names that are not known to be quick.
const FOR_OTHERS: usize = THREADS / 2;
/// Of those, for names that were slow the last time: they leave some to names that are new.
const FOR_SLOW_NAMES: usize = FOR_OTHERS / 2;
/// A lookup that took longer makes its name a slow one. A healthy one takes milliseconds.
const SLOW: Duration = Duration::from_secs(2);
/// A thread without work for so long ends.
const IDLE: Duration = Duration::from_secs(10);
/// The system's resolver keeps its answers on the stack; this is several times what it takes.
const STACK_BYTES: usize = 512 * 1024;

type Answer = Result<Vec<IpAddr>, NoAddress>;
type Ask = dyn Fn(&str) -> std::io::Result<Vec<IpAddr>> + Send + Sync;

/// The lookups of a process; clones share them.
#[derive(Clone)]
pub(crate) struct Lookups(Arc<Shared>);

struct Shared {
    ask: Box<Ask>,
    desk: Mutex<Desk>,
    /// There is something new on the desk.
    changed: Condvar,
}

/// Somebody who wants to know.
struct Asker {
    answer: oneshot::Sender<Answer>,
    begun: Begun,
}

/// What waits, what is under way, and who wants to know.
#[derive(Default)]
struct Desk {
    waiting: VecDeque<String>,
    askers: HashMap<String, Vec<Asker>>,
    /// Names that are being looked up, each with what was known of it when that began.
    under_way: HashMap<String, Pace>,
    /// How many of them there are, by domain.
    domains: HashMap<String, usize>,
    paces: Paces,
    threads: usize,
    idle: usize,
}

impl std::fmt::Debug for Lookups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lookups").finish_non_exhaustive()
    }
}

impl Lookups {
    pub(super) fn system() -> Self {
        Self::by(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }

    fn by(ask: impl Fn(&str) -> std::io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { ask: Box::new(ask), desk: Mutex::default(), changed: Condvar::new() }))
    }

    pub(super) async fn find(&self, name: &str, begun: &Begun) -> Answer {
        let (asker, answer) = oneshot::channel();
        self.put(name, Asker { answer: asker, begun: begun.clone() });
        // Without an answer no thread could be started.
        answer.await.unwrap_or(Err(NoAddress::NotAsked))
    }

    fn put(&self, name: &str, asker: Asker) {
        let mut desk = self.0.desk();
        if desk.under_way.contains_key(name) {
            asker.begun.set();
        }
        if let Some(askers) = desk.askers.get_mut(name) {
            // Those who had no patience are not kept for as long as a name hangs.
            askers.retain(|asker| !asker.answer.is_closed());
            askers.push(asker);
            return;
        }
        desk.askers.insert(name.to_owned(), vec![asker]);
        desk.waiting.push_back(name.to_owned());
        if desk.idle < desk.waiting.len() && desk.threads < THREADS {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("webhook-dns".to_owned()).stack_size(STACK_BYTES);
            match thread.spawn(move || shared.work()) {
                Ok(_) => desk.threads += 1,
                Err(error) if desk.threads == 0 => {
                    tracing::error!(%error, "names of webhook receivers cannot be looked up");
                    desk.waiting.clear();
                    desk.askers.clear();
                }
                Err(_) => {}
            }
        }
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        let mut desk = self.desk();
        loop {
            if let Some(name) = desk.take() {
                drop(desk);
                let began = Instant::now();
                let answer = self.answer(&name);
                desk = self.desk();
                desk.finish(&name, answer, began.elapsed());
                // It may have stood in the way of more than one.
                self.changed.notify_all();
                continue;
            }
            desk.idle += 1;
            let (woken, waited) = self.changed.wait_timeout(desk, IDLE).unwrap_or_else(PoisonError::into_inner);
            desk = woken;
            desk.idle -= 1;
            if waited.timed_out() && desk.waiting.is_empty() {
                desk.threads -= 1;
                return;
            }
        }
    }

    fn answer(&self, name: &str) -> Answer {
        // A panic of the system's resolver would otherwise leave its askers waiting.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.ask)(name))) {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) if is_shortage(&error) || is_short_of_sockets() => Err(NoAddress::NotAsked),
            Ok(Err(_)) | Err(_) => Err(NoAddress::Unknown),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // What is done under the lock does not panic half-way.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// The first name that may be looked up now. What nobody waits for any more is dropped on the way.
    fn take(&mut self) -> Option<String> {
        let mut at = 0;
        while let Some(name) = self.waiting.get(at) {
            let askers = self.askers.get(name).map_or(&[][..], Vec::as_slice);
            let is_wanted = askers.iter().any(|asker| !asker.answer.is_closed());
            let pace = self.paces.of(name);
            if is_wanted && !self.may_go(name, pace) {
                at += 1;
                continue;
            }
            askers.iter().for_each(|asker| asker.begun.set());
            let name = self.waiting.remove(at)?;
            if !is_wanted {
                self.askers.remove(&name);
                continue;
            }
            *self.domains.entry(domain_of(&name).to_owned()).or_default() += 1;
            self.under_way.insert(name.clone(), pace);
            return Some(name);
        }
        None
    }

    fn may_go(&self, name: &str, pace: Pace) -> bool {
        let so_many = |counts: fn(Pace) -> bool| self.under_way.values().filter(|pace| counts(**pace)).count();
        let has_room = match pace {
            Pace::Quick => true,
            Pace::New => so_many(|pace| pace != Pace::Quick) < FOR_OTHERS,
            Pace::Slow => {
                so_many(|pace| pace != Pace::Quick) < FOR_OTHERS && so_many(|pace| pace == Pace::Slow) < FOR_SLOW_NAMES
            }
        };
        has_room && self.domains.get(domain_of(name)).copied().unwrap_or_default() < PER_DOMAIN
    }

    fn finish(&mut self, name: &str, answer: Answer, took: Duration) {
        let domain = domain_of(name);
        if let Some(under_way) = self.domains.get_mut(domain) {
            *under_way -= 1;
            if *under_way == 0 {
                self.domains.remove(domain);
            }
        }
        self.under_way.remove(name);
        // One that was not asked has not answered.
        if answer != Err(NoAddress::NotAsked) {
            self.paces.note(name, if took < SLOW { Pace::Quick } else { Pace::Slow });
        }
        for asker in self.askers.remove(name).unwrap_or_default() {
            let _ = asker.answer.send(answer.clone());
        }
    }
}

/// The last two labels: nearly always what somebody has registered. Where it is a registry's own (`co.uk`), strangers
/// share its few threads, which costs them nothing but while one of them hangs.
fn domain_of(name: &str) -> &str {
    name.rmatch_indices('.').nth(1).map_or(name, |(dot, _)| &name[dot + 1..])
}

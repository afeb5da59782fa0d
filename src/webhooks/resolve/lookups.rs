//! The threads that ask the system. A name server that hangs holds a thread for as long as the system has patience with
//! it (half a minute is usual), so nobody gets many of them: whoever asks for a name that is being looked up waits for
//! that answer, a domain has a few threads at most, and names that were slow before share half of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::NoAddress;

/// Threads at most. They are started when they are needed and end when they are not.
const THREADS: usize = 16;
/// Of those, for names under one domain: each endpoint may make up names under its own.
const PER_DOMAIN: usize = 4;
/// Of those, for names that were slow the last time.
const FOR_SLOW_NAMES: usize = THREADS / 2;
/// A lookup that took longer makes its name a slow one. A healthy one takes milliseconds.
const SLOW: Duration = Duration::from_secs(2);
/// Slow names that are remembered; with more, all are forgotten and found out anew.
const REMEMBERED: usize = 1024;
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

/// What waits, what is under way, and who wants to know.
#[derive(Default)]
struct Desk {
    waiting: VecDeque<String>,
    askers: HashMap<String, Vec<oneshot::Sender<Answer>>>,
    /// Lookups under way, by domain.
    domains: HashMap<String, usize>,
    slow_names: HashSet<String>,
    slow_under_way: usize,
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

    pub(super) async fn find(&self, name: &str) -> Answer {
        let (asker, answer) = oneshot::channel();
        self.put(name, asker);
        // Without an answer no thread could be started.
        answer.await.unwrap_or(Err(NoAddress))
    }

    fn put(&self, name: &str, asker: oneshot::Sender<Answer>) {
        let mut desk = self.0.desk();
        if let Some(askers) = desk.askers.get_mut(name) {
            // Those who had no patience are not kept for as long as a name hangs.
            askers.retain(|asker| !asker.is_closed());
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
                // A panic of the system's resolver would otherwise leave its askers waiting.
                let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.ask)(&name)));
                let answer = found.ok().and_then(Result::ok).ok_or(NoAddress);
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
            let is_wanted = self.askers.get(name).is_some_and(|askers| askers.iter().any(|asker| !asker.is_closed()));
            if is_wanted && !self.may_go(name) {
                at += 1;
                continue;
            }
            let name = self.waiting.remove(at)?;
            if !is_wanted {
                self.askers.remove(&name);
                continue;
            }
            *self.domains.entry(domain_of(&name).to_owned()).or_default() += 1;
            self.slow_under_way += usize::from(self.slow_names.contains(&name));
            return Some(name);
        }
        None
    }

    fn may_go(&self, name: &str) -> bool {
        let of_domain = self.domains.get(domain_of(name)).copied().unwrap_or_default();
        of_domain < PER_DOMAIN && (self.slow_under_way < FOR_SLOW_NAMES || !self.slow_names.contains(name))
    }

    fn finish(&mut self, name: &str, answer: Answer, took: Duration) {
        let domain = domain_of(name);
        if let Some(under_way) = self.domains.get_mut(domain) {
            *under_way -= 1;
            if *under_way == 0 {
                self.domains.remove(domain);
            }
        }
        if self.slow_names.contains(name) {
            self.slow_under_way -= 1;
        }
        self.remember(name, took);
        for asker in self.askers.remove(name).unwrap_or_default() {
            let _ = asker.send(answer.clone());
        }
    }

    fn remember(&mut self, name: &str, took: Duration) {
        if took < SLOW {
            self.slow_names.remove(name);
        } else if self.slow_names.len() < REMEMBERED || self.slow_under_way > 0 {
            self.slow_names.insert(name.to_owned());
        } else {
            // None of them is under way, so nothing counts on their being here.
            self.slow_names.clear();
        }
    }
}

/// The last two labels: nearly always what somebody has registered. Where it is a registry's own (`co.uk`), strangers
/// share its few threads, which costs them nothing but while one of them hangs.
fn domain_of(name: &str) -> &str {
    name.rmatch_indices('.').nth(1).map_or(name, |(dot, _)| &name[dot + 1..])
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Real time after which a test that waits has failed.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Lookups in which names that begin with `hang` hang until the sender is dropped, and `none` has no address. The
    /// receiver hears of each name that is asked for.
    fn lookups() -> (Lookups, mpsc::Sender<()>, mpsc::Receiver<String>) {
        let (release, held) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (held, tell) = (Mutex::new(held), Mutex::new(tell));
        let released = Arc::new((Mutex::new(false), Condvar::new()));
        let gate = Arc::clone(&released);
        std::thread::spawn(move || {
            let _ = held.into_inner().unwrap().recv();
            *gate.0.lock().unwrap() = true;
            gate.1.notify_all();
        });
        let ask = move |name: &str| {
            tell.lock().unwrap().send(name.to_owned()).unwrap();
            if name.starts_with("hang") {
                let open = released.0.lock().unwrap();
                drop(released.1.wait_while(open, |open| !*open).unwrap());
            }
            if name == "panic" {
                panic!("on purpose");
            }
            let address = "192.0.2.7".parse().unwrap();
            if name == "none" { Err(std::io::Error::other("no such name")) } else { Ok(vec![address]) }
        };
        (Lookups::by(ask), release, told)
    }

    async fn found(lookups: &Lookups, name: &str) -> Answer {
        tokio::time::timeout(PATIENCE, lookups.find(name)).await.expect("an answer in time")
    }

    #[tokio::test]
    async fn a_name_has_its_addresses_or_none() {
        let (lookups, _release, _told) = lookups();
        assert_eq!(found(&lookups, "a.example").await, Ok(vec!["192.0.2.7".parse().unwrap()]));
        assert_eq!(found(&lookups, "none").await, Err(NoAddress));
        assert_eq!(found(&lookups, "panic").await, Err(NoAddress));
        assert!(found(&lookups, "a.example").await.is_ok(), "the thread lives on");
    }

    #[tokio::test]
    async fn many_who_ask_for_one_name_share_one_lookup() {
        let (lookups, release, told) = lookups();
        let asking: Vec<_> = (0..100)
            .map(|_| {
                let lookups = lookups.clone();
                tokio::spawn(async move { found(&lookups, "hang.example").await })
            })
            .collect();
        while lookups.0.desk().askers.get("hang.example").is_none_or(|askers| askers.len() < 100) {
            tokio::task::yield_now().await;
        }
        assert!(found(&lookups, "b.example").await.is_ok(), "others go on");
        drop(release);
        for asking in asking {
            assert!(asking.await.unwrap().is_ok());
        }
        assert_eq!(told.iter().take(2).filter(|name| name == "hang.example").count(), 1);
    }

    #[tokio::test]
    async fn names_that_hang_under_one_domain_leave_threads_to_others() {
        let (lookups, release, told) = lookups();
        let names: Vec<String> = (0..50).map(|n| format!("hang{n}.evil.example")).collect();
        let hanging: Vec<_> = names.iter().map(|name| Box::pin(lookups.find(name))).collect();
        let mut hanging: futures_util::stream::FuturesUnordered<_> = hanging.into_iter().collect();
        assert!(futures_util::FutureExt::now_or_never(futures_util::StreamExt::next(&mut hanging)).is_none());
        assert!(found(&lookups, "good.example").await.is_ok());
        assert!(found(&lookups, "good.other").await.is_ok());
        let evil = told.try_iter().filter(|name| name.starts_with("hang")).count();
        assert!(evil <= PER_DOMAIN, "{evil}");
        drop(release);
    }

    #[test]
    fn names_that_were_slow_share_half_of_the_threads() {
        let mut desk = Desk::default();
        let mut wanted = Vec::new();
        let mut put = |desk: &mut Desk, name: String| {
            let (asker, answer) = oneshot::channel();
            wanted.push(answer);
            desk.askers.insert(name.clone(), vec![asker]);
            desk.waiting.push_back(name);
        };
        for n in 0..THREADS {
            let name = format!("slow{n}.example{n}");
            put(&mut desk, name.clone());
            assert_eq!(desk.take(), Some(name.clone()));
            desk.finish(&name, Err(NoAddress), SLOW);
        }
        for n in 0..THREADS {
            put(&mut desk, format!("slow{n}.example{n}"));
        }
        put(&mut desk, "good.example".to_owned());
        let taken: Vec<String> = std::iter::from_fn(|| desk.take()).collect();
        assert_eq!(taken.len(), FOR_SLOW_NAMES + 1);
        assert_eq!(taken.last().map(String::as_str), Some("good.example"));
        for name in taken {
            desk.finish(&name, Err(NoAddress), Duration::ZERO);
        }
        assert_eq!((desk.slow_under_way, desk.domains.len()), (0, 0));
        assert_eq!(desk.slow_names.len(), THREADS - FOR_SLOW_NAMES);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_looked_up() {
        let mut desk = Desk::default();
        let (asker, answer) = oneshot::channel();
        desk.askers.insert("a.example".to_owned(), vec![asker]);
        desk.waiting.push_back("a.example".to_owned());
        drop(answer);
        assert_eq!(desk.take(), None);
        assert!(desk.askers.is_empty() && desk.waiting.is_empty());
    }

    #[test]
    fn the_domain_is_what_somebody_registered() {
        assert_eq!(domain_of("a.b.example.org"), "example.org");
        assert_eq!(domain_of("example.org"), "example.org");
        assert_eq!(domain_of("localhost"), "localhost");
        assert_eq!(domain_of(""), "");
    }
}

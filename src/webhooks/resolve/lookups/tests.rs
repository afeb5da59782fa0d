//! Lookups that hang, fail and are shared, with real threads or by hand.

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
    tokio::time::timeout(PATIENCE, lookups.find(name, &Begun::default())).await.expect("an answer in time")
}

#[tokio::test]
async fn a_name_has_its_addresses_or_none() {
    let (lookups, _release, _told) = lookups();
    assert_eq!(found(&lookups, "a.example").await, Ok(vec!["192.0.2.7".parse().unwrap()]));
    assert_eq!(found(&lookups, "none").await, Err(NoAddress::Unknown));
    assert_eq!(found(&lookups, "panic").await, Err(NoAddress::Unknown));
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
    let begun = Begun::default();
    let hanging: Vec<_> = names.iter().map(|name| Box::pin(lookups.find(name, &begun))).collect();
    let mut hanging: futures_util::stream::FuturesUnordered<_> = hanging.into_iter().collect();
    assert!(futures_util::FutureExt::now_or_never(futures_util::StreamExt::next(&mut hanging)).is_none());
    assert!(found(&lookups, "good.example").await.is_ok());
    assert!(found(&lookups, "good.other").await.is_ok());
    let evil = told.try_iter().filter(|name| name.starts_with("hang")).count();
    assert!(evil <= PER_DOMAIN, "{evil}");
    drop(release);
}

/// Lookups that nobody looks up: a test takes and finishes them by hand.
#[derive(Default)]
struct ByHand {
    desk: Desk,
    wanted: Vec<oneshot::Receiver<Answer>>,
}

impl ByHand {
    fn put(&mut self, name: &str) -> Begun {
        let ((answer, wanted), begun) = (oneshot::channel(), Begun::default());
        self.wanted.push(wanted);
        self.desk.askers.entry(name.to_owned()).or_default().push(Asker { answer, begun: begun.clone() });
        self.desk.waiting.push_back(name.to_owned());
        begun
    }

    fn take_all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.desk.take()).collect()
    }

    /// Has the name looked up, which takes so long.
    fn look_up(&mut self, name: &str, took: Duration) {
        self.put(name);
        assert_eq!(self.take_all(), [name]);
        self.desk.finish(name, Err(NoAddress::Unknown), took);
    }
}

#[test]
fn names_that_are_not_known_to_be_quick_leave_half_of_the_threads_to_those_that_are() {
    let mut by_hand = ByHand::default();
    for n in 0..THREADS {
        by_hand.look_up(&format!("quick{n}.example{n}"), Duration::ZERO);
    }
    // Each under a domain of its own, and each for the first time.
    let fresh: Vec<Begun> = (0..THREADS).map(|n| by_hand.put(&format!("fresh{n}.evil{n}"))).collect();
    let taken = by_hand.take_all();
    assert_eq!(taken.len(), FOR_OTHERS);
    assert_eq!(fresh.iter().filter(|begun| begun.is_set()).count(), FOR_OTHERS, "the others are told that they wait");
    for n in 0..THREADS {
        by_hand.put(&format!("quick{n}.example{n}"));
    }
    assert_eq!(by_hand.take_all().len(), THREADS, "they may take whatever thread is free");
    for name in &taken {
        by_hand.desk.finish(name, Err(NoAddress::Unknown), SLOW);
    }
    assert_eq!(by_hand.take_all().len(), FOR_OTHERS, "the next ones");
}

#[test]
fn names_that_were_slow_leave_threads_to_those_that_are_new() {
    let mut by_hand = ByHand::default();
    for n in 0..THREADS {
        by_hand.look_up(&format!("slow{n}.example{n}"), SLOW);
    }
    for n in 0..THREADS {
        by_hand.put(&format!("slow{n}.example{n}"));
    }
    by_hand.put("new.example");
    let taken = by_hand.take_all();
    assert_eq!(taken.len(), FOR_SLOW_NAMES + 1);
    assert_eq!(taken.last().map(String::as_str), Some("new.example"));
    for name in taken {
        by_hand.desk.finish(&name, Err(NoAddress::Unknown), Duration::ZERO);
    }
    assert!(by_hand.desk.under_way.is_empty() && by_hand.desk.domains.is_empty());
    by_hand.put("slow0.example0");
    by_hand.take_all();
    assert_eq!(by_hand.desk.under_way.get("slow0.example0"), Some(&Pace::Quick), "it has answered since");
}

#[test]
fn a_name_that_was_not_asked_about_is_not_known_by_that() {
    let mut by_hand = ByHand::default();
    by_hand.put("a.example");
    by_hand.take_all();
    by_hand.desk.finish("a.example", Err(NoAddress::NotAsked), Duration::ZERO);
    assert_eq!(by_hand.desk.paces.of("a.example"), Pace::New);
}

#[tokio::test]
async fn sixteen_names_that_hang_for_the_first_time_do_not_keep_a_good_one_waiting() {
    let (lookups, release, _told) = lookups();
    assert!(found(&lookups, "good.example").await.is_ok());
    let begun: Vec<Begun> = (0..THREADS).map(|_| Begun::default()).collect();
    let names: Vec<String> = (0..THREADS).map(|n| format!("hang.evil{n}")).collect();
    let asked = names.iter().zip(&begun).map(|(name, begun)| Box::pin(lookups.find(name, begun)));
    let mut hanging: futures_util::stream::FuturesUnordered<_> = asked.collect();
    assert!(futures_util::FutureExt::now_or_never(futures_util::StreamExt::next(&mut hanging)).is_none());
    for _ in 0..3 {
        assert!(found(&lookups, "good.example").await.is_ok());
    }
    assert!(begun.iter().filter(|begun| begun.is_set()).count() <= FOR_OTHERS);
    drop(release);
}

#[tokio::test]
async fn whoever_joins_a_lookup_that_is_under_way_knows_that_it_has_begun() {
    let (lookups, release, told) = lookups();
    let (first, second) = (Begun::default(), Begun::default());
    let asked = lookups.find("hang.example", &first);
    tokio::pin!(asked);
    assert!(futures_util::FutureExt::now_or_never(asked.as_mut()).is_none());
    assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok("hang.example"));
    let joined = lookups.find("hang.example", &second);
    tokio::pin!(joined);
    assert!(futures_util::FutureExt::now_or_never(joined.as_mut()).is_none());
    assert!(first.is_set() && second.is_set());
    drop(release);
    assert!(asked.await.is_ok() && joined.await.is_ok());
}

#[test]
fn what_nobody_waits_for_any_more_is_not_looked_up() {
    let mut by_hand = ByHand::default();
    by_hand.put("a.example");
    by_hand.wanted.clear();
    assert!(by_hand.take_all().is_empty());
    assert!(by_hand.desk.askers.is_empty() && by_hand.desk.waiting.is_empty());
}

#[test]
fn the_domain_is_what_somebody_registered() {
    assert_eq!(domain_of("a.b.example.org"), "example.org");
    assert_eq!(domain_of("example.org"), "example.org");
    assert_eq!(domain_of("localhost"), "localhost");
    assert_eq!(domain_of(""), "");
}

//! Kills the real `serve` with SIGKILL at random moments while subsystems are under load, beside a living fake.
//!
//! One loop for all subsystems: each brings its [`Load`], which works against whatever process is up, remembers what was
//! acknowledged, and at the end compares that with the file. The seed is printed, and set by `PILLARBOX_SEED`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::Connection;
use serde_json::Value;

use super::http::{Answer, Client};
use super::{Place, Process, SECRET, file, find_url, setting, until_within};

/// How long everything that was left may take to come to rest after the last kill.
const QUIET_WITHIN: Duration = Duration::from_secs(180);

/// Whose pages may post leads, the chat that is told of them, and the key of whoever may ask for that again.
pub(crate) const ORIGIN: &str = "https://site.example";
pub(crate) const LEADS_CHAT: i64 = -100_200_300;
pub(crate) const SERVICE_KEY: &str = "the-service-role-key-of-the-tests-0123456789";

/// What a subsystem does under the kills, and what it then has to show.
pub(crate) trait Load: Sync {
    /// Its people and tables, before the first kill. The server is up.
    fn prepare(&self, site: &Site, conn: &Connection);

    /// How many threads work at the same time.
    fn threads(&self) -> usize;

    /// One thread's work, until [`Site::is_over`].
    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng);

    /// Whether nothing is left to be done. Asked after the last kill.
    fn is_quiet(&self, site: &Site, conn: &Connection) -> bool;

    /// Compares the file with what was acknowledged.
    fn check(&self, site: &Site, conn: &Connection);
}

/// Where the load finds the server of the moment.
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) fake: Client,
    pub(crate) seed: u64,
    /// How often it is killed in all.
    pub(crate) kills: u64,
    url: Mutex<Option<String>>,
    over: AtomicBool,
    refused: AtomicU64,
}

impl Site {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Posts until it is acknowledged, through every kill. The request must be one that may be repeated.
    pub(crate) fn post_until_acknowledged(&self, path: &str, body: &Value) -> Value {
        let answer = self.post_until_answered(path, body, |url| Client::new(url, Some(SECRET)));
        assert!((200..300).contains(&answer.status), "POST {path} {body}: {} {}", answer.status, answer.body);
        answer.json()
    }

    /// Posts until there is an answer, whatever it says, through every kill; by the client that speaks to the server of
    /// the moment.
    pub(crate) fn post_until_answered(&self, path: &str, body: &Value, client: impl Fn(&str) -> Client) -> Answer {
        self.send_until_answered("POST", path, Some(&body.to_string()), client)
    }

    /// The same by any method, with a body that is sent as it is written.
    pub(crate) fn send_until_answered(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        client: impl Fn(&str) -> Client,
    ) -> Answer {
        until_within(QUIET_WITHIN, "a server answers the request", || {
            let url = self.url.lock().expect("no panic under it").clone()?;
            match client(&url).send(method, path, body) {
                Ok(answer) => (answer.status != 503).then_some(answer),
                Err(_) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    None
                }
            }
        })
    }

    /// What the living fake accepted: chat and text, in order.
    pub(crate) fn accepted(&self) -> Vec<(i64, String)> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let page = self.fake.get(&format!("/dev/telegram/messages?after={after}")).json();
            let messages = page["messages"].as_array().expect("a list");
            let Some(last) = messages.last() else { return all };
            after = last["ordinal"].as_u64().expect("an ordinal");
            all.extend(messages.iter().map(|message| {
                (message["chat_id"].as_i64().expect("an id"), message["text"].as_str().expect("a text").to_owned())
            }));
        }
    }
}

/// How many kills: `PILLARBOX_SOAK_KILLS`, else a number that a test run can afford.
pub(crate) fn kills() -> u64 {
    setting("PILLARBOX_SOAK_KILLS").unwrap_or(25)
}

/// Runs the loads on `serve` under `kills` kills, and checks them.
pub(crate) fn run(loads: &[&dyn Load], kills: u64) {
    run_on(serve, loads, kills);
}

/// The same on another server: `launch` starts it in a place, beside the fake of this address.
pub(crate) fn run_on(launch: fn(&Place, &str) -> Process, loads: &[&dyn Load], kills: u64) {
    let seed = setting("PILLARBOX_SEED").unwrap_or_else(|| rand::rng().random());
    eprintln!("crash: PILLARBOX_SEED={seed}, {kills} kills");
    let place = Place::new();
    let (_fake, fake_url) = place.start_fake();
    let fake = Client::new(&fake_url, None);
    let (url, over, refused) = (Mutex::new(None), AtomicBool::new(false), AtomicU64::new(0));
    let site = Site { place, fake, seed, kills, url, over, refused };
    let mut server = launch(&site.place, &fake_url);
    *site.url.lock().expect("no panic under it") = Some(server.serving_url());
    let conn = file::writer(&site.place.data());
    loads.iter().for_each(|load| load.prepare(&site, &conn));
    std::thread::scope(|scope| {
        let _over = Over(&site);
        for (number, load) in loads.iter().enumerate() {
            for thread in 0..load.threads() {
                let (load, site) = (*load, &site);
                let mut rng = StdRng::seed_from_u64(seed ^ ((number as u64) << 32 | thread as u64));
                scope.spawn(move || load.work(site, thread, &mut rng));
            }
        }
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..kills {
            kill_somewhen(&site, &mut server, &mut rng);
            server = launch(&site.place, &fake_url);
        }
        *site.url.lock().expect("no panic under it") = Some(server.serving_url());
    });
    until_within(QUIET_WITHIN, "everything that was left comes to rest", || {
        loads.iter().all(|load| load.is_quiet(&site, &conn)).then_some(())
    });
    loads.iter().for_each(|load| load.check(&site, &conn));
    let sound: String = file::value(&conn, "PRAGMA integrity_check", []);
    assert_eq!(sound, "ok");
    eprintln!("crash: {} requests met no server or lost their answer", site.refused.load(Ordering::Relaxed));
    server.stop();
}

/// Ends the load however the scope is left: without it, a failed kill loop would wait for its threads for ever.
struct Over<'a>(&'a Site);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn serve(place: &Place, fake_url: &str) -> Process {
    let (origin, chat) = (format!("leads.allowed_origins={ORIGIN}"), format!("leads.chat_id={LEADS_CHAT}"));
    let key = format!("leads.service_role_key={SERVICE_KEY}");
    let settings = [
        "bot.event_source=local",
        "store.ballast=0",
        "telegram.timeout=2s",
        "telegram.connect_timeout=1s",
        "telegram.group_per_minute=60000",
        "leads.telegram_timeout=1s",
        &origin,
        &chat,
        &key,
    ];
    place.start_serve(fake_url, &settings)
}

/// Mostly under load, a little after it is ready; every fifth time while it still starts and recovers.
fn kill_somewhen(site: &Site, server: &mut Process, rng: &mut StdRng) {
    if rng.random_ratio(1, 5) {
        std::thread::sleep(Duration::from_millis(rng.random_range(0..60)));
        if let Some(url) = find_url(&server.log()) {
            *site.url.lock().expect("no panic under it") = Some(url);
        }
    } else {
        *site.url.lock().expect("no panic under it") = Some(server.serving_url());
        std::thread::sleep(Duration::from_millis(rng.random_range(30..400)));
    }
    assert!(server.has_ended().is_none(), "the server ended by itself:\n{}", server.log());
    server.kill();
    // The next one may have its port: nobody is to believe that this one still answers.
    *site.url.lock().expect("no panic under it") = None;
}

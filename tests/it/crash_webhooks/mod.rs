//! SIGKILL at random moments while tenants post events and receivers fail, hang and break: every acknowledged event
//! reaches every endpoint that wants it and ever says yes, as the same bytes under the same id, and is repeated after a
//! yes only where that yes was lost.

mod check;
mod kinds;

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rusqlite::Connection;
use serde_json::{Value, json};

use self::check::check_everything;
use self::kinds::{KINDS, Kind, dice};
use crate::harness::crash::{self, Load, Site};
use crate::harness::file::{self, rows, value};
use crate::harness::http::{Answer, Client};
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::{event_text, tempting};
use crate::harness::{Place, Process, text};

/// Threads that post over HTTP; beside them another program, a hand on the clock, and an operator.
const POSTERS: usize = 3;
const PACE_MS: std::ops::Range<u64> = 3..15;
/// With so many events there is enough to send until the last kill, and those who post slow down: what waits for the
/// receivers that hang must be over before the test's patience is, however many kills there are.
const ENOUGH: usize = 600;
const SLOW_PACE_MS: std::ops::Range<u64> = 1_000..2_000;
const TYPES: [&str; 5] = ["order.paid", "order.sent", "stock.low", "slow.one", "slow.two"];

/// Every claim and everything that was taken up as interrupted, with the start of the program whose claim it was.
const WITNESS: &str = "
    CREATE TABLE claim_witness (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, delivery INTEGER NOT NULL, boot TEXT NOT NULL, is_claim INTEGER NOT NULL
    ) STRICT;
    CREATE TRIGGER claim_witness_claims AFTER UPDATE OF lease_boot ON webhook_deliveries WHEN NEW.lease_boot IS NOT NULL
    BEGIN
      INSERT INTO claim_witness (delivery, boot, is_claim) VALUES (NEW.id, NEW.lease_boot, 1);
    END;
    CREATE TRIGGER claim_witness_cuts AFTER INSERT ON webhook_attempts WHEN NEW.error = 'interrupted'
    BEGIN
      INSERT INTO claim_witness (delivery, boot, is_claim)
      SELECT NEW.delivery, boot, 0 FROM claim_witness WHERE delivery = NEW.delivery ORDER BY seq DESC LIMIT 1;
    END;
    CREATE INDEX claim_witness_of ON claim_witness (delivery, seq);
    CREATE INDEX claim_witness_by ON claim_witness (boot, is_claim, seq)";

/// What was acknowledged: by HTTP, and by a commit of another program.
#[derive(Default)]
struct Acknowledged {
    /// Type and data by event id.
    events: BTreeMap<String, (String, String)>,
    /// How many leads another program has inserted: what is told of them is an event, too.
    leads: i64,
    taken_back: Vec<String>,
    repeated: u64,
    refused: u64,
    resends: u64,
    replays: u64,
    /// Every secret that was ever given to the first endpoint.
    secrets: Vec<String>,
}

/// An endpoint as it was made.
struct Made {
    id: String,
    secret: String,
    receiver: Receiver,
}

/// Events, their relay, and their deliveries.
#[derive(Default)]
struct WebhookLoad {
    acknowledged: Mutex<Acknowledged>,
    made: OnceLock<Vec<Made>>,
    key: OnceLock<String>,
}

impl WebhookLoad {
    fn acknowledged(&self) -> std::sync::MutexGuard<'_, Acknowledged> {
        self.acknowledged.lock().expect("no panic under it")
    }

    fn api(&self, url: &str) -> Client {
        Client::new(url, self.key.get().map(String::as_str))
    }

    fn call(&self, site: &Site, method: &str, path: &str, body: &Value) -> Answer {
        site.send_until_answered(method, path, Some(&body.to_string()), |url| self.api(url))
    }

    /// One event under an id of ours or a key, or many under a key; sometimes once more, sometimes with another body.
    fn post(&self, site: &Site, key: &str, rng: &mut StdRng) {
        let many = rng.random_ratio(1, 10);
        let events: Vec<(String, String)> = (0..if many { rng.random_range(2..20) } else { 1 })
            .map(|number| ((*TYPES.choose(rng).expect("not empty")).to_owned(), data(&format!("{key}-{number}"), rng)))
            .collect();
        let mut texts: Vec<String> = events.iter().map(|(event_type, data)| event_text(event_type, data)).collect();
        let names_itself = !many && rng.random_ratio(1, 2);
        if names_itself {
            texts[0].insert_str(1, &format!(r#""event_id": "{}", "#, uuid(rng)));
        }
        let (path, body) = match many {
            true => ("/v1/events/batch", format!(r#"{{"events": [{}]}}"#, texts.join(","))),
            false => ("/v1/events", texts.remove(0)),
        };
        let client = |url: &str| match names_itself {
            true => self.api(url),
            false => self.api(url).with_header("Idempotency-Key", key),
        };
        let send = |body: &str| site.send_until_answered("POST", path, Some(body), client);
        let ids = ids(&send(&body));
        assert_eq!(ids.len(), events.len(), "one id for each");
        if rng.random_ratio(1, 4) {
            assert_eq!(self::ids(&send(&body)), ids, "{key}: the same request has the same answer");
            self.acknowledged().repeated += 1;
        }
        if rng.random_ratio(1, 20) {
            let other = send(&body.replacen("\"version\": 1", "\"version\": 2", 1));
            assert_eq!(other.status, 409, "{}", other.body);
            self.acknowledged().refused += 1;
        }
        self.acknowledged().events.extend(ids.into_iter().zip(events));
    }

    /// Another program: a few events in one transaction, which it sometimes takes back.
    fn insert(&self, conn: &Connection, key: &str, rng: &mut StdRng) {
        let keeps = rng.random_ratio(4, 5);
        conn.execute_batch("BEGIN IMMEDIATE").expect("the lock comes within the time-out");
        let mut events = BTreeMap::new();
        for number in 0..rng.random_range(1..5) {
            let (id, event_type) = (uuid(rng), *TYPES.choose(rng).expect("not empty"));
            let data = data(&format!("{key}-{number}"), rng);
            let sql = "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
                       VALUES (?1, ?2, 'order', '7', ?3)";
            conn.execute(sql, (&id, event_type, &data)).expect("an event");
            events.insert(id, (event_type.to_owned(), data));
        }
        conn.execute("INSERT INTO broker_leads (request_id, phone) VALUES (?1, '79990001122')", [key]).expect("a lead");
        conn.execute_batch(if keeps { "COMMIT" } else { "ROLLBACK" }).expect("it ends");
        let mut acknowledged = self.acknowledged();
        match keeps {
            true => acknowledged.events.extend(events),
            false => acknowledged.taken_back.extend(events.into_keys()),
        }
        acknowledged.leads += i64::from(keeps);
    }

    /// What people do meanwhile, to endpoints that say yes.
    fn operate(&self, site: &Site, rng: &mut StdRng) {
        let made = self.made.get().expect("they are made");
        let path = |number: usize| format!("/v1/endpoints/{}", made[number].id);
        match rng.random_range(0..5) {
            0 => {
                let secret = format!("whsec_{}", base64(rng));
                self.acknowledged().secrets.push(secret.clone());
                let overlap = *[0, 60, 86_400].choose(rng).expect("not empty");
                let body = json!({"secret": secret, "overlap_seconds": overlap});
                let rotated = self.call(site, "POST", &format!("{}/rotate-secret", path(0)), &body);
                // One whose answer was lost may be refused when it comes again: the secret is the current one.
                assert!(matches!(rotated.status, 200 | 409 | 422), "{}", rotated.body);
            }
            1 => {
                for status in ["paused", "active"] {
                    let changed = self.call(site, "PATCH", &path(5), &json!({"status": status}));
                    assert_eq!(changed.status, 200, "{}", changed.body);
                    std::thread::sleep(Duration::from_millis(rng.random_range(0..100)));
                }
            }
            2 => {
                let list = format!("/v1/deliveries?status=delivered&endpoint_id={}&limit=20", made[1].id);
                let page = site.send_until_answered("GET", &list, None, |url| self.api(url)).json();
                let Some(delivery) = page["items"].as_array().expect("items").choose(rng) else { return };
                let path = format!("/v1/deliveries/{}/resend", delivery["id"].as_str().expect("an id"));
                assert_eq!(self.call(site, "POST", &path, &json!({})).status, 202);
                self.acknowledged().resends += 1;
            }
            3 => {
                let data = site.place.data();
                let disable = ["webhooks", "endpoints", "disable", &made[1].id, "--data-dir", text(&data)];
                let disabled = site.place.command(&disable).output().expect("the binary starts");
                assert!(disabled.status.success(), "{}", String::from_utf8_lossy(&disabled.stderr));
                std::thread::sleep(Duration::from_millis(rng.random_range(0..200)));
                self.replay(site);
                self.acknowledged().replays += 1;
            }
            _ => {
                let tried = self.call(site, "POST", &format!("{}/test", path(0)), &json!({}));
                assert_eq!(tried.status, 200, "{}", tried.body);
            }
        }
    }

    /// The endpoint that is disabled now and then is used again, and gets what it missed.
    fn replay(&self, site: &Site) {
        let path = format!("/v1/endpoints/{}", self.made.get().expect("they are made")[1].id);
        let active = self.call(site, "PATCH", &path, &json!({"status": "active"}));
        assert_eq!(active.status, 200, "{}", active.body);
        let ask = json!({"since": "2020-01-01T00:00:00Z"});
        loop {
            let queued = self.call(site, "POST", &format!("{path}/replay-skipped"), &ask);
            assert_eq!(queued.status, 202, "{}", queued.body);
            if queued.json()["complete"] == true {
                return;
            }
        }
    }

    fn advance(&self, site: &Site, by: Duration) {
        let by = json!({"seconds": by.as_secs_f64()});
        let moved = self.call(site, "POST", "/dev/clock/advance", &by);
        assert_eq!(moved.status, 200, "{}", moved.body);
    }
}

/// The ids of an answer that acknowledges.
fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 202, "{}", answer.body);
    let answer = answer.json();
    let one = std::slice::from_ref(&answer["event_id"]);
    let ids = answer["event_ids"].as_array().map_or(one, Vec::as_slice);
    ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

fn data(key: &str, rng: &mut StdRng) -> String {
    format!(r#"{{ "key":"{key}","as_it_came":{}}}"#, tempting().choose(rng).expect("not empty"))
}

fn uuid(rng: &mut StdRng) -> String {
    uuid::Builder::from_random_bytes(rng.random()).into_uuid().to_string()
}

/// 32 random bytes.
fn base64(rng: &mut StdRng) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text: String = (0..42).map(|_| char::from(DIGITS[rng.random_range(0..64)])).collect();
    // The last digit of 32 bytes carries four bits.
    text.push(char::from(DIGITS[rng.random_range(0..16) << 2]));
    text.push('=');
    text
}

impl Load for WebhookLoad {
    fn prepare(&self, site: &Site, conn: &Connection) {
        conn.execute_batch(WITNESS).expect("a program may have tables and triggers of its own");
        let keys = std::fs::read(site.place.data().join("dev/keys.json")).expect("dev has its keys");
        let keys: Value = serde_json::from_slice(&keys).expect("they are JSON");
        self.key.set(keys["api_key"].as_str().expect("a key").to_owned()).expect("it is prepared once");
        let make = |kind: &Kind| {
            let behaves = kind.behaves;
            let receiver = Receiver::start(move |came| {
                // What is no event of ours is the operator's test, or about endpoints.
                if came.text().contains(r#""type":"webhook."#) { Reply::Status(200) } else { behaves(came, dice(came)) }
            });
            let url = receiver.url(&format!("/{}?its=own", kind.name));
            let body = json!({"url": url, "event_types": kind.wants, "description": kind.name});
            let made = self.call(site, "POST", "/v1/endpoints", &body);
            assert_eq!(made.status, 201, "{}", made.body);
            let word = |name: &str| made.json()[name].as_str().expect("a word").to_owned();
            Made { id: word("id"), secret: word("secret"), receiver }
        };
        assert!(self.made.set(KINDS.iter().map(make).collect()).is_ok(), "it is prepared once");
    }

    fn threads(&self) -> usize {
        POSTERS + 3
    }

    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
        let conn = file::writer(&site.place.data());
        for number in 0.. {
            if site.is_over() {
                // What was disabled at the last kill, too.
                if thread + 1 == self.threads() {
                    self.replay(site);
                }
                return;
            }
            let key = format!("{:x}-{thread}-{number}", site.seed & 0xffff);
            match thread.checked_sub(POSTERS) {
                None => self.post(site, &key, rng),
                Some(0) => self.insert(&conn, &key, rng),
                Some(1) => {
                    let seconds = [rng.random_range(1..8), rng.random_range(60..400), rng.random_range(1_800..9_000)];
                    let weights = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2];
                    self.advance(site, Duration::from_secs(seconds[*weights.choose(rng).expect("not empty")]));
                }
                Some(_) => self.operate(site, rng),
            }
            let is_enough = thread <= POSTERS && self.acknowledged().events.len() >= ENOUGH;
            let pace = if is_enough { SLOW_PACE_MS } else { PACE_MS };
            let pause = rng.random_range(pace) * if thread < POSTERS || is_enough { 1 } else { 8 };
            std::thread::sleep(Duration::from_millis(pause));
        }
    }

    /// What is due is waited for; then the clock goes to what is due next.
    fn is_quiet(&self, site: &Site, conn: &Connection) -> bool {
        let now = site.send_until_answered("GET", "/dev/clock", None, |url| self.api(url)).json();
        let now = crate::harness::tenant::instant(&now["now"]);
        let due = "SELECT EXISTS (SELECT 1 FROM outbox_events
                     WHERE published_at IS NULL AND failed_at IS NULL AND COALESCE(next_attempt_at, 0) <= ?1)
                   OR EXISTS (SELECT 1 FROM broker_leads WHERE announced_at IS NULL)
                   OR EXISTS (SELECT 1 FROM webhook_deliveries WHERE status = 'sending' OR resend_requested_at IS NOT NULL)
                   OR EXISTS (SELECT 1 FROM webhook_deliveries AS d JOIN webhook_endpoints AS e ON e.id = d.endpoint
                     WHERE d.status = 'pending' AND max(d.next_attempt_at, COALESCE(e.held_until, 0)) <= ?1)";
        if value::<bool>(conn, due, [now]) {
            return false;
        }
        let next = "SELECT min(at) FROM (
                      SELECT next_attempt_at AS at FROM outbox_events WHERE published_at IS NULL AND failed_at IS NULL
                      UNION ALL SELECT max(d.next_attempt_at, COALESCE(e.held_until, 0))
                      FROM webhook_deliveries AS d JOIN webhook_endpoints AS e ON e.id = d.endpoint
                      WHERE d.status = 'pending')";
        let next: Vec<Option<i64>> = rows(conn, next, [], |row| row.get(0));
        let Some(next) = next[0] else { return true };
        // A little further than that: what fails for days is spread by jitter.
        let by = u64::try_from(next - now).unwrap_or_default() + 1_200_000;
        self.advance(site, Duration::from_millis(by));
        false
    }

    fn check(&self, site: &Site, conn: &Connection) {
        check_everything(self, site, conn);
    }
}

/// `dev`, so that its clock can be moved, with a deadline that a test can wait for.
fn launch(place: &Place, fake: &str) -> Process {
    let (data, analytics) = (place.data(), format!("analytics.dir={}", text(&place.path("analytics"))));
    let mut args = vec!["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo", "--fake", fake];
    for set in ["bot.event_source=off", "leads.delivery=off", "store.ballast=0", "webhooks.timeout=2s", &analytics] {
        args.extend(["--set", set]);
    }
    place.start(&args, &[])
}

#[test]
fn an_acknowledged_event_reaches_everyone_who_wants_it_as_the_same_bytes_through_every_kill() {
    crash::run_on(launch, &[&WebhookLoad::default()], crash::kills());
}

//! Updates as they come in: stored before they are acknowledged, handled once and in their order, and what is told when
//! they do not come.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::dev::Dev;
use crate::harness::file::{self, value};
use crate::harness::http::{Answer, Client};
use crate::harness::person::{Person, post};
use crate::harness::{Place, Process, SECRET, TOKEN, text, until};

const HEADER: &str = "X-Telegram-Bot-Api-Secret-Token";

fn status(conn: &Connection, update_id: u64) -> Option<(String, i64)> {
    let sql = "SELECT status, failures FROM telegram_updates WHERE update_id = ?1";
    conn.query_row(sql, [i64::try_from(update_id).unwrap()], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

fn until_update(conn: &Connection, update_id: u64, expected: (&str, i64)) {
    until(&format!("update {update_id} is {expected:?}"), || {
        let (status, failures) = status(conn, update_id)?;
        ((status.as_str(), failures) == expected).then_some(())
    });
}

fn queued(fake: &Client) -> usize {
    fake.get("/dev/telegram/updates").json()["updates"].as_array().unwrap().len()
}

fn replies(conn: &Connection, chat: i64) -> i64 {
    value(conn, "SELECT count(*) FROM telegram_messages WHERE chat_id = ?1 AND kind = 'reply'", [chat])
}

fn metric(http: &Client, line: &str) -> bool {
    http.get("/metrics").body.lines().any(|shown| shown == line)
}

/// What `/readyz` says of a check, once `is_wanted` likes it.
fn until_ready(http: &Client, name: &str, is_wanted: impl Fn(&Value) -> bool) -> (u16, Value) {
    until(&format!("readiness says it of {name}"), || {
        let answer = http.get("/readyz");
        let check = answer.json()["checks"][name].clone();
        is_wanted(&check).then_some((answer.status, check))
    })
}

#[test]
fn what_is_fetched_is_stored_before_it_is_confirmed() {
    let dev = Dev::start(&["store.busy_timeout=50ms"]);
    let (conn, ann) = (dev.reader(), Person::new(501, "Ann"));
    let other = dev.writer();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let update = ann.say(&dev.http, "/start");
    until("the store refuses the update", || {
        let line = "pillarbox_telegram_updates_total{kind=\"other\",outcome=\"refused\"}";
        dev.http.get("/metrics").body.lines().any(|shown| shown.starts_with(line)).then_some(())
    });
    assert_eq!((queued(&dev.http), status(&conn, update)), (1, None), "neither stored nor confirmed");
    other.execute_batch("ROLLBACK").unwrap();
    until_update(&conn, update, ("handled", 0));
    until("it is confirmed by the next fetch", || (queued(&dev.http) == 0).then_some(()));
    assert_eq!(replies(&conn, 501), 1);
    let raw: Option<String> = value(&conn, "SELECT raw FROM telegram_updates", []);
    assert_eq!(raw, None, "what a person wrote is not kept");
}

#[test]
fn a_redelivered_update_is_handled_once() {
    let dev = Dev::start(&[]);
    let (conn, ann) = (dev.reader(), Person::new(501, "Ann"));
    let update = ann.say(&dev.http, "/start");
    until_update(&conn, update, ("handled", 0));
    let mut again = ann.text("/start");
    again["update_id"] = json!(update);
    assert_eq!(post(&dev.http, &again), update);
    let line = "pillarbox_telegram_updates_total{kind=\"message\",outcome=\"known\"} 1";
    until("it is known", || metric(&dev.http, line).then_some(()));
    let all: i64 = value(&conn, "SELECT count(*) FROM telegram_updates", []);
    assert_eq!((all, replies(&conn, 501)), (1, 1));
}

#[test]
fn a_failing_update_holds_its_chat_dies_after_ten_and_is_replayed_by_hand() {
    let dev = Dev::start(&[]);
    let (conn, ann, bob) = (dev.reader(), Person::new(501, "Ann"), Person::new(502, "Bob"));
    let break_it = "CREATE TRIGGER broken BEFORE INSERT ON bot_users WHEN NEW.telegram_id = 501
                    BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    dev.writer().execute_batch(break_it).unwrap();
    let first = ann.say(&dev.http, "/start");
    until_update(&conn, first, ("pending", 1));
    let beside = bob.say(&dev.http, "/start");
    until_update(&conn, beside, ("handled", 0));
    let second = ann.say(&dev.http, "/menu");
    for failures in 2..=9 {
        dev.advance(Duration::from_secs(600));
        until_update(&conn, first, ("pending", failures));
        assert_eq!(status(&conn, second).map(|(_, failures)| failures).unwrap_or_default(), 0, "it waits behind");
    }
    dev.advance(Duration::from_secs(600));
    until_update(&conn, first, ("dead", 10));
    until_update(&conn, second, ("pending", 1));
    dev.writer().execute_batch("DROP TRIGGER broken").unwrap();
    dev.advance(Duration::from_secs(2));
    until_update(&conn, second, ("handled", 1));
    let listed = dev.command(&["updates", "list", "--state", "dead", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed["chatId"], &listed["errorCode"]), (&json!("501"), &json!("constraint")), "{listed}");
    let id = listed["id"].to_string();
    let raw = dev.command(&["updates", "show", &id, "--raw"]);
    assert!(String::from_utf8_lossy(&raw.stdout).contains("/start"), "{raw:?}");
    let before = replies(&conn, 501);
    assert!(dev.command(&["updates", "replay", &id]).status.success());
    until_update(&conn, first, ("handled", 0));
    assert!(replies(&conn, 501) > before);
    assert_eq!(dev.command(&["updates", "replay", &id]).status.code(), Some(1), "it is not dead any more");
    assert_eq!(dev.command(&["updates", "show", &id, "--raw"]).status.code(), Some(1), "nor is its text kept");
    assert_eq!(dev.command(&["updates", "replay", "--all-dead"]).status.code(), Some(2), "all of them want a yes");
    let stats = dev.command(&["updates", "stats", "--json"]);
    let expected = json!({"pending": 0, "waitingChats": 0, "dead": 0, "oldestAgeMs": null});
    assert_eq!(serde_json::from_slice::<Value>(&stats.stdout).unwrap(), expected);
}

#[test]
fn an_update_that_cannot_be_read_is_dead_and_the_next_is_handled() {
    let dev = Dev::start(&[]);
    let (conn, ann) = (dev.reader(), Person::new(501, "Ann"));
    let bad = post(&dev.http, &json!({"message": {"text": "of nobody"}}));
    let good = ann.say(&dev.http, "/start");
    until_update(&conn, good, ("handled", 0));
    until_update(&conn, bad, ("dead", 1));
    let shown = dev.http.get("/metrics").body;
    assert!(shown.contains("pillarbox_updates{state=\"dead\"} 1"), "{shown}");
    let (status, advice) = until_ready(&dev.http, "bot", |check| check["detail"].is_string());
    assert_eq!((status, &advice["ok"]), (200, &json!(true)), "a dead update is for a person, and the work goes on");
    assert!(advice["detail"].as_str().unwrap().contains("updates list --state dead"), "{advice}");
    assert!(dev.command(&["updates", "replay", "--all-dead", "--yes"]).status.success());
    let sql = "SELECT count(*) FROM telegram_updates WHERE status = 'dead' AND attempts = 2";
    until("it dies again", || (value::<i64>(&conn, sql, []) == 1).then_some(()));
}

#[test]
fn a_tap_is_answered_at_once_even_when_its_chat_waits() {
    let dev = Dev::start(&[]);
    let (conn, ann) = (dev.reader(), Person::new(501, "Ann"));
    let break_it = "CREATE TRIGGER broken BEFORE INSERT ON bot_users WHEN NEW.telegram_id = 501
                    BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    dev.writer().execute_batch(break_it).unwrap();
    let waits = ann.say(&dev.http, "/start");
    until_update(&conn, waits, ("pending", 1));
    ann.tap(&dev.http, "tap-1", 1, "m:menu");
    until("the tap is answered", || {
        let answers = dev.http.get("/dev/telegram/answers").json();
        (answers["answers"][0]["callback_query_id"] == "tap-1").then_some(())
    });
    assert_eq!(replies(&conn, 501), 0, "while the chat waits");
}

#[test]
fn only_what_is_wanted_is_subscribed_to_and_handled_numbers_are_not_kept_for_ever() {
    let dev = Dev::start(&[]);
    let (conn, ann) = (dev.reader(), Person::new(501, "Ann"));
    let first = ann.say(&dev.http, "/start");
    until_update(&conn, first, ("handled", 0));
    let edited = dev.http.done("/dev/telegram/updates", &json!({"edited_message": {"message_id": 1}}));
    assert_eq!(edited["queued"], false, "the bot did not ask for edits");
    until_update(&conn, ann.block(&dev.http), ("handled", 0));
    dev.advance(Duration::from_secs(8 * 86_400));
    dev.run_job("housekeeping");
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM telegram_updates", []), 0);
}

/// A fake on its own, and what to ask it.
fn start_fake(place: &Place) -> (Process, Client, String) {
    let (process, url) = place.start_fake();
    (process, Client::new(&url, None), url)
}

fn webhook_of(fake: &Client) -> String {
    let info = fake.post(&format!("/bot{TOKEN}/getWebhookInfo"), &json!({})).json();
    info["result"]["url"].as_str().unwrap().to_owned()
}

#[test]
fn a_foreign_webhook_is_left_alone_and_told_of() {
    let place = Place::new();
    let (_fake, fake, url) = start_fake(&place);
    fake.done(&format!("/bot{TOKEN}/setWebhook"), &json!({"url": "http://localhost:1/theirs"}));
    let mut serve = place.start_serve(&url, &["store.ballast=0"]);
    let http = Client::new(&serve.serving_url(), Some(SECRET));
    let (status, check) = until_ready(&http, "updates", |check| check["ok"] == false);
    let told = check["detail"].as_str().unwrap();
    assert!(status == 503 && told.contains("host localhost") && !told.contains("theirs"), "{status} {told}");
    assert_eq!(webhook_of(&fake), "http://localhost:1/theirs");
    serve.stop();
    assert_eq!(webhook_of(&fake), "http://localhost:1/theirs");
}

#[test]
fn a_second_poller_is_a_failure_of_readiness() {
    let dev = Dev::start(&[]);
    until_ready(&dev.http, "updates", |check| check["ok"] == true);
    let other = dev.http.clone();
    let conflict = until("another program has the bot", || {
        let poll = json!({"timeout": 2, "offset": 0});
        let handle = std::thread::spawn({
            let other = other.clone();
            move || other.post(&format!("/bot{TOKEN}/getUpdates"), &poll)
        });
        let check = dev.http.get("/readyz").json()["checks"]["updates"].clone();
        handle.join().unwrap();
        (check["ok"] == false).then_some(check)
    });
    assert!(conflict["detail"].as_str().unwrap().contains("another program fetches"), "{conflict}");
    until_ready(&dev.http, "updates", |check| check["ok"] == true);
}

#[test]
fn a_refused_token_is_a_failure_of_readiness() {
    let dev = Dev::start(&[]);
    let ann = Person::new(501, "Ann");
    until_update(&dev.reader(), ann.say(&dev.http, "/start"), ("handled", 0));
    dev.fault(&json!({"method": "getUpdates", "status": 401, "description": "Unauthorized", "times": 5}));
    ann.say(&dev.http, "/menu");
    let (status, check) = until_ready(&dev.http, "updates", |check| check["ok"] == false);
    assert!(status == 503 && check["detail"].as_str().unwrap().contains("telegram.token"), "{status} {check}");
}

/// `serve` with a webhook, at an address that is free at that moment.
struct Hooked {
    place: Place,
    fake_url: String,
    fake: Client,
    _fake: Process,
    address: String,
}

impl Hooked {
    fn new() -> Self {
        let place = Place::new();
        let (process, fake, fake_url) = start_fake(&place);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { place, fake_url, fake, _fake: process, address: free.to_string() }
    }

    fn start(&self, sets: &[&str]) -> (Process, Client) {
        let (data, api) = (self.place.data(), format!("telegram.api_url={}", self.fake_url));
        let mut args = vec!["serve", "--data-dir", text(&data), "--listen", &self.address, "--set", &api];
        for set in ["store.ballast=0", "telegram.chat_interval=0s", "store.busy_timeout=50ms"].iter().chain(sets) {
            args.extend(["--set", set]);
        }
        let mut process = self.place.start(&args, &[("TELEGRAM_BOT_TOKEN", TOKEN), ("BOT_TO_BACKEND_SECRET", SECRET)]);
        let http = Client::new(&process.serving_url(), Some(SECRET));
        (process, http)
    }

    fn start_with_webhook(&self) -> (Process, Client) {
        let url = format!("telegram.webhook_url={}", self.webhook());
        let started = self.start(&["telegram.updates=webhook", &url]);
        until("the webhook is set", || (webhook_of(&self.fake) == self.webhook()).then_some(()));
        started
    }

    fn webhook(&self) -> String {
        format!("http://{}/telegram/webhook", self.address)
    }

    /// Brings an update as Telegram would, with this secret.
    fn bring(&self, secret: Option<&str>, body: &str) -> Answer {
        let mut telegram = Client::new(&format!("http://{}", self.address), None);
        if let Some(secret) = secret {
            telegram = telegram.with_header(HEADER, secret);
        }
        telegram.send("POST", "/telegram/webhook", Some(body)).unwrap()
    }
}

/// What is brought with each update when nobody chose it.
fn derived_secret() -> String {
    let digest = Sha256::digest(format!("pillarbox-webhook:{TOKEN}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_webhook_brings_updates_and_is_taken_away_when_they_are_fetched_again() {
    let hooked = Hooked::new();
    let (mut serve, http) = hooked.start_with_webhook();
    let (conn, ann) = (file::reader(&hooked.place.data()), Person::new(501, "Ann"));
    until_ready(&http, "updates", |check| check["ok"] == true);
    let first = ann.say(&hooked.fake, "/start");
    until_update(&conn, first, ("handled", 0));
    ann.tap(&hooked.fake, "tap-1", 1, "m:menu");
    until("the tap is answered", || {
        let answers = hooked.fake.get("/dev/telegram/answers").json();
        (answers["answers"][0]["callback_query_id"] == "tap-1").then_some(())
    });
    serve.stop();
    assert_eq!(webhook_of(&hooked.fake), hooked.webhook(), "updates wait at Telegram meanwhile");
    let waits = ann.say(&hooked.fake, "/menu");
    let (_serve, http) = hooked.start(&[]);
    until_update(&conn, waits, ("handled", 0));
    assert_eq!(webhook_of(&hooked.fake), "", "it was ours");
    until_ready(&http, "updates", |check| check["ok"] == true);
}

#[test]
fn the_webhook_wants_its_secret() {
    let hooked = Hooked::new();
    let (_serve, http) = hooked.start_with_webhook();
    let (conn, secret) = (file::reader(&hooked.place.data()), derived_secret());
    let mut update = Person::new(501, "Ann").text("/start");
    update["update_id"] = json!(77);
    let body = update.to_string();
    for wrong in [None, Some(""), Some("x"), Some(&secret[1..]), Some(TOKEN)] {
        assert_eq!(hooked.bring(wrong, &body).status, 401, "{wrong:?}");
    }
    assert_eq!(status(&conn, 77), None);
    for (body, expected) in [("no JSON", 400), ("{}", 400), ("[1]", 400), ("{\"update_id\":\"7\"}", 400)] {
        assert_eq!(hooked.bring(Some(&secret), body).status, expected, "{body}");
    }
    let large = format!("{{\"update_id\":1,\"message\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(hooked.bring(Some(&secret), &large).status, 413);
    let taken = hooked.bring(Some(&secret), &body);
    assert_eq!((taken.status, taken.body.as_str()), (200, "{}"), "no answer in the answer");
    assert_eq!(hooked.bring(Some(&secret), &body).status, 200, "again is as good");
    until_update(&conn, 77, ("handled", 0));
    assert_eq!(replies(&conn, 501), 1);
    assert!(!http.get("/openapi.json").body.contains(&secret));
    assert!(!hooked.place.logs().contains(&secret) && !hooked.place.logs().contains(TOKEN));
}

#[test]
fn the_webhook_is_refused_while_the_store_cannot_and_brought_again() {
    let hooked = Hooked::new();
    let (_serve, _) = hooked.start_with_webhook();
    let (conn, secret, ann) = (file::reader(&hooked.place.data()), derived_secret(), Person::new(501, "Ann"));
    let other = file::writer(&hooked.place.data());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut update = ann.text("/start");
    update["update_id"] = json!(77);
    assert_eq!(hooked.bring(Some(&secret), &update.to_string()).status, 503);
    let brought = ann.say(&hooked.fake, "/start");
    other.execute_batch("ROLLBACK").unwrap();
    until_update(&conn, brought, ("handled", 0));
    assert_eq!(status(&conn, 77), None, "what was not acknowledged was not");
}

#[test]
fn without_webhook_mode_there_is_nothing_at_its_address() {
    let dev = Dev::start(&[]);
    let telegram = dev.http.clone().with_header(HEADER, &derived_secret());
    assert_eq!(telegram.post("/telegram/webhook", &json!({"update_id": 1})).status, 404);
}

//! SIGKILL at random moments while updates pour in, by a long poll and by a webhook: every update is handled once, and a
//! person sees each answer once, unless the outcome of its sending was unknown.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rusqlite::Connection;
use serde_json::json;

use crate::harness::crash::{self, Load, Site};
use crate::harness::file::{rows, value};
use crate::harness::person::{Person, post};
use crate::harness::{Place, Process, TOKEN, text};

const WRITERS: usize = 4;
/// People of each writer: enough that chats are handled beside each other, few enough that each has a queue.
const PEOPLE: i64 = 6;
const PACE_MS: std::ops::Range<u64> = 3..18;

/// Every mark of an update, in the transaction of its effects and gone with it when that is taken back, with how many
/// earlier updates of its chat were waiting then.
const WITNESS: &str = "
    CREATE TABLE update_witness (update_id INTEGER NOT NULL, earlier INTEGER NOT NULL) STRICT;
    CREATE TRIGGER update_witness_sees AFTER UPDATE OF status ON telegram_updates WHEN NEW.status <> 'pending'
    BEGIN
      INSERT INTO update_witness (update_id, earlier)
      SELECT NEW.update_id, count(*) FROM telegram_updates AS e
      WHERE e.chat_id = NEW.chat_id AND e.id < NEW.id AND e.status = 'pending';
    END;";

/// What people did, and in which order each.
#[derive(Default)]
struct Done {
    updates: Vec<(i64, i64)>,
    taps: u64,
}

/// People who write and press buttons.
#[derive(Default)]
struct PeopleLoad(Mutex<Done>);

impl PeopleLoad {
    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.0.lock().expect("no panic under it")
    }

    fn act(&self, site: &Site, person: &Person, name: &str, rng: &mut StdRng) {
        let data = ["l:en", "f:video", "f:watched", "m:menu", "m:settings", "s:digest:0", "of another version"];
        let update = match rng.random_range(0..5) {
            0 => person.text("/start"),
            1 => person.text("/menu"),
            2 => person.text("/settings"),
            _ => {
                self.done().taps += 1;
                let message_id = rng.random_range(1..200);
                person.pressed(name, message_id, data.choose(rng).expect("some"))
            }
        };
        let number = post(&site.fake, &update);
        self.done().updates.push((i64::try_from(number).expect("a number"), person.id));
    }
}

fn disturb(site: &Site, rng: &mut StdRng) {
    let faults = [
        json!({"method": "getUpdates", "status": 502, "body": "<html>"}),
        json!({"method": "getUpdates", "drop_response": true}),
        json!({"method": "answerCallbackQuery", "status": 502, "body": "<html>"}),
        json!({"method": "sendMessage", "drop_response": true}),
        json!({"method": "sendMessage", "delay_ms": 20, "times": 5}),
    ];
    site.fake.done("/dev/telegram/faults", faults.choose(rng).expect("some"));
}

impl Load for PeopleLoad {
    fn prepare(&self, _: &Site, conn: &Connection) {
        conn.execute_batch(WITNESS).expect("a program may have tables and triggers of its own");
    }

    fn threads(&self) -> usize {
        WRITERS
    }

    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
        let first = 1_000 + PEOPLE * i64::try_from(thread).expect("a few");
        let mut number = 0;
        while !site.is_over() {
            number += 1;
            let name = format!("{thread}-{number}");
            let id = first + rng.random_range(0..PEOPLE);
            // The first name is what the answers greet with: the newest one must be of the newest update.
            self.act(site, &Person::new(id, &name), &name, rng);
            if rng.random_ratio(1, 60) {
                disturb(site, rng);
            }
            std::thread::sleep(Duration::from_millis(rng.random_range(PACE_MS)));
        }
    }

    fn is_quiet(&self, site: &Site, conn: &Connection) -> bool {
        let queued = site.fake.get("/dev/telegram/updates").json();
        let waits = "SELECT (SELECT count(*) FROM telegram_updates WHERE status = 'pending')
                     + (SELECT count(*) FROM telegram_messages WHERE status IN ('pending', 'sending'))";
        queued["updates"] == json!([]) && value::<i64>(conn, waits, []) == 0
    }

    fn check(&self, site: &Site, conn: &Connection) {
        let done = self.done();
        let marks: Vec<(i64, i64)> =
            rows(conn, "SELECT update_id, earlier FROM update_witness", [], |row| Ok((row.get(0)?, row.get(1)?)));
        let mut marked: HashMap<i64, usize> = HashMap::new();
        for (update, earlier) in marks {
            *marked.entry(update).or_default() += 1;
            assert_eq!(earlier, 0, "update {update} was handled before an earlier one of its chat");
        }
        for (update, chat) in &done.updates {
            assert_eq!(marked.get(update), Some(&1), "update {update} of {chat} is handled once");
        }
        let odd: i64 = value(conn, "SELECT count(*) FROM telegram_updates WHERE status <> 'handled'", []);
        assert_eq!((marked.len(), odd), (done.updates.len(), 0), "no other, and none is dead");
        check_people(conn, &done);
        check_answers(site, conn);
        let taken: u64 = site.fake.get("/dev/telegram/answers").json()["answers"].as_array().map_or(0, Vec::len) as u64;
        eprintln!("crash: {} updates, {} taps of which {taken} were answered", done.updates.len(), done.taps);
        assert!(done.updates.len() as u64 > site.kills * 3, "there was a load");
    }
}

/// Each person's row is as their last update left it, whose nonce is their first name.
fn check_people(conn: &Connection, done: &Done) {
    let people: std::collections::BTreeSet<i64> = done.updates.iter().map(|(_, chat)| *chat).collect();
    let known: Vec<i64> = rows(conn, "SELECT telegram_id FROM bot_users ORDER BY 1", [], |row| row.get(0));
    assert_eq!(known, people.into_iter().collect::<Vec<_>>());
    let fell: i64 = value(
        conn,
        "SELECT count(*) FROM outbox_events AS later
         JOIN outbox_events AS earlier ON earlier.aggregate_id = later.aggregate_id AND earlier.id < later.id
         WHERE earlier.type = 'funnel.stage_advanced' AND later.type = 'funnel.stage_advanced'
           AND json_extract(later.payload, '$.to') <= json_extract(earlier.payload, '$.to')",
        [],
    );
    assert_eq!(fell, 0, "a stage is reached once and only rises");
}

/// Answers whose sending never was in doubt are in the fake's log as often as they are in the file.
fn check_answers(site: &Site, conn: &Connection) {
    // An edit that changes nothing is delivered and not shown.
    let sent: Vec<(i64, i64, i64)> = rows(
        conn,
        "SELECT chat_id, SUM(edit_message_id IS NULL), SUM(1 + unknown_count) FROM telegram_messages
         WHERE kind = 'reply' AND status = 'sent' GROUP BY chat_id",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    );
    let mut accepted: HashMap<i64, i64> = HashMap::new();
    for (chat, _) in site.accepted() {
        *accepted.entry(chat).or_default() += 1;
    }
    for (chat, least, most) in sent {
        let shown = accepted.get(&chat).copied().unwrap_or_default();
        assert!((least..=most).contains(&shown), "chat {chat} was shown {shown} answers, not {least} to {most}");
    }
    let unfinished: Vec<(String, Option<String>, i64)> = rows(
        conn,
        "SELECT status, error_code, count(*) FROM telegram_messages
         WHERE kind = 'reply' AND status NOT IN ('sent', 'cancelled') GROUP BY 1, 2",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    );
    assert_eq!(unfinished, [], "every answer arrived, or gave way to a newer one");
}

#[test]
fn every_update_is_handled_once_through_every_kill() {
    crash::run(&[&PeopleLoad::default()], crash::kills());
}

/// `serve` with a webhook. Its address must be the same through every kill.
fn serve_with_webhook(place: &Place, fake_url: &str) -> Process {
    let path = place.path("address");
    let address = std::fs::read_to_string(&path).unwrap_or_else(|_| {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        std::fs::write(&path, &free).unwrap();
        free
    });
    let (data, api) = (place.data(), format!("telegram.api_url={fake_url}"));
    let hook = format!("telegram.webhook_url=http://{address}/telegram/webhook");
    let mut args = vec!["serve", "--data-dir", text(&data), "--listen", &address];
    for set in [
        &api,
        &hook,
        "telegram.updates=webhook",
        "store.ballast=0",
        "telegram.per_second=1000",
        "telegram.chat_interval=0s",
        "telegram.max_in_flight=64",
        "telegram.timeout=2s",
        "telegram.connect_timeout=1s",
    ] {
        args.extend(["--set", set]);
    }
    place.start(&args, &[("TELEGRAM_BOT_TOKEN", TOKEN)])
}

#[test]
fn every_update_that_a_webhook_brings_is_handled_once_through_every_kill() {
    crash::run_on(serve_with_webhook, &[&PeopleLoad::default()], crash::kills().div_ceil(5));
}

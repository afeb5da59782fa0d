//! SIGKILL at random moments while leads come in: every acknowledged lead is stored once, is announced once, and the
//! broker's chat is told of it no more often than its claims without a definite end allow.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crash::BotLoad;
use crate::harness::crash::{self, LEADS_CHAT, Load, ORIGIN, SERVICE_KEY, Site};
use crate::harness::file::{self, column, rows, value};
use crate::harness::http::Client;

const POSTERS: usize = 4;
/// Between two steps of a thread.
const PACE_MS: std::ops::Range<u64> = 4..24;

/// Every change of a notification's state, in its own transaction and gone with it when that is taken back.
const WITNESS: &str = "
    CREATE TABLE lead_witness (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      lead_id TEXT NOT NULL, was TEXT NOT NULL, became TEXT NOT NULL, attempt INTEGER NOT NULL, retries INTEGER NOT NULL
    ) STRICT;
    CREATE TRIGGER lead_witness_sees AFTER UPDATE OF notification_status ON broker_leads
    BEGIN
      INSERT INTO lead_witness (lead_id, was, became, attempt, retries)
      VALUES (NEW.id, OLD.notification_status, NEW.notification_status, NEW.notification_attempt_count,
              NEW.notification_manual_retry_count - OLD.notification_manual_retry_count);
    END;";
/// Real time cannot wait 15 minutes for what a kill left `sending`: its claim becomes that old, now and then older than
/// the day after which it is given up. What the living process has in hand it keeps, however old.
const AGE_CLAIMS: &str = "
    UPDATE broker_leads
    SET notification_attempted_at = notification_attempted_at
                                    - CASE WHEN abs(random() % 8) = 0 THEN 25 * 3600000 ELSE 16 * 60000 END
    WHERE notification_status = 'sending'
      AND notification_attempted_at > CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) - 15 * 60000";

/// What was acknowledged: by HTTP, and by a commit of another program.
#[derive(Default)]
struct Acknowledged {
    posted: Vec<String>,
    repeated: u64,
    /// Spam and what is not valid.
    refused: Vec<String>,
    inserted: Vec<String>,
    taken_back: Vec<String>,
    retried: u64,
}

/// The intake of leads, their announcement and their notification.
#[derive(Default)]
struct LeadLoad(Mutex<Acknowledged>);

impl LeadLoad {
    fn acknowledged(&self) -> std::sync::MutexGuard<'_, Acknowledged> {
        self.0.lock().expect("no panic under it")
    }

    /// The form of a visitor: mostly good and with a preparation, sometimes sent twice.
    fn post(&self, site: &Site, key: &str, rng: &mut StdRng) {
        let mut lead = lead(key, rng);
        let expected = match rng.random_range(0..12) {
            0 => {
                lead["spam_check"]["likely_bot"] = json!(true);
                202
            }
            1 => {
                lead["consent"] = json!(false);
                422
            }
            _ => 201,
        };
        // Each visitor has an address: the limit on requests is not what is tested here.
        let [.., a, b, c] = rng.random::<u32>().to_be_bytes();
        let address = format!("10.{a}.{b}.{c}");
        let visitor =
            |url: &str| Client::new(url, None).with_header("Origin", ORIGIN).with_header("X-Forwarded-For", &address);
        let answer = site.post_until_answered("/leads", &lead, visitor);
        // One whose answer was lost is known when it is sent again.
        let is_expected = answer.status == expected || expected == 201 && answer.status == 200;
        assert!(is_expected, "{lead}: {} {}", answer.status, answer.body);
        if expected != 201 {
            return self.acknowledged().refused.push(key.to_owned());
        }
        assert_eq!(answer.json()["request_id"], key);
        self.acknowledged().posted.push(key.to_owned());
        if rng.random_ratio(1, 3) {
            let again = site.post_until_answered("/leads", &lead, visitor);
            assert_eq!((again.status, &again.json()["duplicate"]), (200, &json!(true)), "{key}: {}", again.body);
            self.acknowledged().repeated += 1;
        }
    }

    /// Another program: a few leads in one transaction, which it sometimes takes back.
    fn insert(&self, conn: &Connection, key: &str, rng: &mut StdRng) {
        let keeps = rng.random_ratio(4, 5);
        let keys: Vec<String> = (0..rng.random_range(1..6)).map(|number| format!("{key}-{number}")).collect();
        conn.execute_batch("BEGIN IMMEDIATE").expect("the lock comes within the time-out");
        for key in &keys {
            let sql = "INSERT INTO broker_leads (request_id, client_name, phone, raw_payload)
                       VALUES (?1, 'Boris', '79990001122', ?2)";
            let raw = json!({"preparation": preparation(rng)});
            conn.execute(sql, (key, raw.to_string())).expect("a lead");
        }
        conn.execute_batch(if keeps { "COMMIT" } else { "ROLLBACK" }).expect("it ends");
        let mut acknowledged = self.acknowledged();
        if keeps { &mut acknowledged.inserted } else { &mut acknowledged.taken_back }.extend(keys);
    }

    /// A person asks for some of those that failed again, and leaves the others alone.
    fn retry(&self, site: &Site, conn: &Connection) {
        let sql = "SELECT id, request_id FROM broker_leads
                   WHERE notification_status = 'failed' AND id GLOB '*[0-9]' ORDER BY random() LIMIT 1";
        let found: Vec<(String, String)> = rows(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
        for (id, request_id) in found {
            let ask = json!({"p_lead_id": id, "p_request_id": request_id, "p_reason_code": "telegram_temporary_error"});
            let path = "/rest/v1/rpc/request_broker_lead_notification_retry";
            let person = |url: &str| Client::new(url, Some(SERVICE_KEY)).with_header("apikey", SERVICE_KEY);
            let answer = site.post_until_answered(path, &ask, person);
            assert_eq!(answer.status, 200, "{}", answer.body);
            self.acknowledged().retried += 1;
        }
    }
}

/// What Telegram does to the next calls for leads.
fn disturb(site: &Site, rng: &mut StdRng) {
    let quick = [
        json!({"status": 403}),
        json!({"status": 400, "description": "Bad Request: chat not found", "times": 2}),
        json!({"status": 502, "body": "<html>"}),
        json!({"drop_response": true, "times": 2}),
        json!({"delay_ms": 20, "times": 5}),
    ];
    // Longer than most processes live here: a pause, and past the time-out, after it was accepted and without that.
    let slow = [
        json!({"status": 429, "retry_after": 1}),
        json!({"delay_ms": 1_500}),
        json!({"status": 500, "delay_ms": 1_500}),
    ];
    let faults = if rng.random_ratio(1, 8) { &slow[..] } else { &quick[..] };
    let mut fault = faults.choose(rng).expect("not empty").clone();
    fault["chat_id"] = json!(LEADS_CHAT);
    site.fake.done("/dev/telegram/faults", &fault);
}

fn lead(key: &str, rng: &mut StdRng) -> Value {
    let mut lead = json!({
        "schema_version": 1, "request_id": key, "form_version": "1", "form_fill_ms": 20_000,
        "client": {"name": "Анна", "phone": "+7 999 123-45-67", "city": "Казань"},
        "mortgage": {"scenario": "Отказал банк", "object_price": "5 000 000"},
        "consent": true, "personal_data_consent": "yes",
        "spam_check": {"honeypot_empty": true, "likely_bot": false},
    });
    if rng.random_ratio(2, 3) {
        lead["preparation"] = preparation(rng);
    }
    lead
}

fn preparation(rng: &mut StdRng) -> Value {
    let checks = ["diagnosis", "finances", "documents", "next_step", "unknown"];
    let chosen: Vec<&str> = (0..rng.random_range(0..5)).map(|_| *checks.choose(rng).expect("not empty")).collect();
    json!({"journey_type": "Отказ банка", "completed_checks": chosen, "completed_labels": ["Первое", "Второе"]})
}

impl Load for LeadLoad {
    fn prepare(&self, _: &Site, conn: &Connection) {
        conn.execute_batch(WITNESS).expect("a program may have tables and triggers of its own");
    }

    fn threads(&self) -> usize {
        POSTERS + 4
    }

    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
        let conn = file::writer(&site.place.data());
        for number in 0_u32.. {
            let (key, over) = (format!("IP-{number:08}-{:06}{thread}", site.seed % 1_000_000), site.is_over());
            match thread.checked_sub(POSTERS) {
                _ if over => break,
                None => self.post(site, &key, rng),
                Some(0) => self.insert(&conn, &key, rng),
                Some(1) => self.retry(site, &conn),
                Some(2) => disturb(site, rng),
                _ => {
                    conn.execute(AGE_CLAIMS, []).expect("an update");
                }
            }
            let pause = rng.random_range(PACE_MS) * if thread < POSTERS { 1 } else { 5 };
            std::thread::sleep(Duration::from_millis(pause));
        }
        let cleared = site.fake.try_call("DELETE", "/dev/telegram/faults", None).expect("the fake lives");
        assert_eq!(cleared.status / 100, 2, "{}", cleared.body);
    }

    fn is_quiet(&self, _: &Site, conn: &Connection) -> bool {
        conn.execute(AGE_CLAIMS, []).expect("an update");
        let open = "SELECT count(*) FROM broker_leads
                    WHERE notification_status IN ('pending', 'sending') OR announced_at IS NULL";
        value::<i64>(conn, open, []) == 0
    }

    fn check(&self, site: &Site, conn: &Connection) {
        let acknowledged = self.acknowledged();
        check_acknowledged(conn, &acknowledged);
        check_events(conn);
        check_transitions(conn);
        let accepted = site.accepted();
        let doubtful = check_messages(conn, &accepted);
        let status = |status: &str| {
            value::<i64>(conn, "SELECT count(*) FROM broker_leads WHERE notification_status = ?1", [status])
        };
        eprintln!(
            "crash: {} leads posted, {} repeated, {} refused, {} inserted, {} taken back, {} retries asked for; \
             {} sent, {} failed, {doubtful} claims in doubt",
            acknowledged.posted.len(),
            acknowledged.repeated,
            acknowledged.refused.len(),
            acknowledged.inserted.len(),
            acknowledged.taken_back.len(),
            acknowledged.retried,
            status("sent"),
            status("failed"),
        );
        let was_busy =
            acknowledged.posted.len() > 100 && acknowledged.retried > 0 && status("failed") > 0 && doubtful > 0;
        assert!(site.kills < 20 || was_busy, "there was no load to speak of");
    }
}

/// Nothing matches the query.
fn none(conn: &Connection, what: &str, sql: &str) {
    let found: Vec<String> = column(conn, sql, []);
    assert!(found.is_empty(), "{what}: {found:?}");
}

/// None lost, none invented, and what was refused or taken back is not there.
fn check_acknowledged(conn: &Connection, acknowledged: &Acknowledged) {
    let there = |key: &String| value::<i64>(conn, "SELECT count(*) FROM broker_leads WHERE request_id = ?1", [key]);
    for key in acknowledged.posted.iter().chain(&acknowledged.inserted) {
        assert_eq!(there(key), 1, "the lead {key} is in the file once");
    }
    for key in acknowledged.refused.iter().chain(&acknowledged.taken_back) {
        assert_eq!(there(key), 0, "the lead {key} was refused or taken back");
    }
    let all = value::<i64>(conn, "SELECT count(*) FROM broker_leads", []);
    assert_eq!(all.unsigned_abs(), (acknowledged.posted.len() + acknowledged.inserted.len()) as u64);
    none(
        conn,
        "labels of checks that are not known, or a preparation that was not read",
        "SELECT request_id FROM broker_leads
         WHERE (json_type(raw_payload, '$.preparation') IS NOT NULL) <> (journey_type IS NOT NULL)
            OR (SELECT count(DISTINCT value) FROM json_each(raw_payload, '$.preparation.completed_checks')
                WHERE value <> 'unknown') <> json_array_length(preparation_completed)",
    );
}

/// One `created` each, and what is recorded of a lead was published, in the same order.
fn check_events(conn: &Connection) {
    none(
        conn,
        "leads that were not created exactly once",
        "SELECT l.request_id FROM broker_leads AS l
         WHERE 1 <> (SELECT count(*) FROM broker_lead_events WHERE lead_id = l.id AND event_type = 'created')",
    );
    let recorded = "
        SELECT lead_id, CASE event_type WHEN 'created' THEN 'lead.received' ELSE 'lead.' || event_type END,
               json_extract(payload, '$.attempt'), json_extract(payload, '$.error_code')
        FROM broker_lead_events WHERE event_type <> 'notification_retry_requested' ORDER BY id";
    let published = "
        SELECT json_extract(payload, '$.lead_id'), type, json_extract(payload, '$.attempt'),
               json_extract(payload, '$.error_code')
        FROM outbox_events WHERE aggregate_type = 'lead' OR type LIKE 'lead.%' ORDER BY id";
    type Recorded = (String, String, Option<i64>, Option<String>);
    let read =
        |sql| -> Vec<Recorded> { rows(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))) };
    let (recorded, published) = (read(recorded), read(published));
    assert_eq!(recorded.len(), published.len(), "as much is published as is recorded");
    let differs = recorded.iter().zip(&published).find(|(one, other)| one != other);
    // A program's own `created` without its sweep would be out of step; nobody here writes one.
    assert_eq!(differs, None, "and in the same order");
}

/// Only steps that the rules have; each claim counts; whatever failed waits again only if a person asked for it.
fn check_transitions(conn: &Connection) {
    none(
        conn,
        "steps that no rule has",
        "SELECT lead_id || ': ' || was || ' > ' || became FROM lead_witness
         WHERE (was, became, retries) NOT IN (VALUES
           ('pending', 'sending', 0), ('sending', 'sending', 0), ('sending', 'sent', 0), ('sending', 'failed', 0),
           ('failed', 'pending', 1))",
    );
    none(
        conn,
        "leads whose attempts are not their claims",
        "SELECT l.request_id FROM broker_leads AS l WHERE notification_attempt_count <>
           (SELECT count(*) FROM lead_witness WHERE lead_id = l.id AND became = 'sending')",
    );
    none(
        conn,
        "leads whose retries are not recorded",
        "SELECT l.request_id FROM broker_leads AS l WHERE notification_manual_retry_count <>
           (SELECT count(*) FROM broker_lead_events WHERE lead_id = l.id AND event_type = 'notification_retry_requested')",
    );
    none(
        conn,
        "more than three claims without a person",
        "SELECT request_id FROM broker_leads
         WHERE notification_attempt_count > 3 * (1 + notification_manual_retry_count) OR notification_cycle_claims > 3",
    );
}

/// How often the chat may have been told of each lead: once for its claim that ended `sent`, and once for each that
/// ended without a definite answer. A refusal is one: after it the chat certainly was not told. The claims in doubt.
fn check_messages(conn: &Connection, accepted: &[(i64, String)]) -> i64 {
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for (chat, text) in accepted.iter().filter(|(chat, _)| *chat == LEADS_CHAT) {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "));
        *counts.entry(id.unwrap_or_else(|| panic!("{chat} was told without an ID: {text}"))).or_default() += 1;
    }
    let sql = "
        SELECT l.request_id, notification_status = 'sent', notification_attempt_count,
          (SELECT count(*) FROM broker_lead_events WHERE lead_id = l.id AND event_type = 'notification_sent'),
          (SELECT count(*) FROM broker_lead_events WHERE lead_id = l.id AND event_type = 'notification_failed'
             AND (json_extract(payload, '$.error_code') GLOB 'telegram_http_4*'
                  OR json_extract(payload, '$.error_code') = 'telegram_unreachable'))
        FROM broker_leads AS l";
    let found = rows(conn, sql, [], |row| {
        Ok((row.get::<_, String>(0)?, [1, 2, 3, 4].map(|at| row.get::<_, i64>(at).expect("a number"))))
    });
    let mut doubtful = 0;
    for (id, [is_sent, claims, sent, refused]) in found {
        assert_eq!(is_sent, sent, "{id} is sent, or was, and only once");
        let unknown = claims - sent - refused;
        let told = counts.remove(id.as_str()).unwrap_or_default();
        assert!(
            (sent..=sent + unknown).contains(&told),
            "{id}: told {told} times; of {claims} claims {sent} were confirmed, {refused} refused"
        );
        doubtful += unknown;
    }
    assert!(counts.is_empty(), "told, but never stored: {counts:?}");
    doubtful
}

#[test]
fn an_acknowledged_lead_is_stored_once_and_told_no_more_often_than_its_doubts_allow_through_every_kill() {
    crash::run(&[&LeadLoad::default()], crash::kills());
}

#[test]
fn leads_and_the_bots_events_share_a_server_through_a_few_kills() {
    crash::run(&[&BotLoad::default(), &LeadLoad::default()], crash::kills() / 5);
}

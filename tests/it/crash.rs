//! SIGKILL at random moments: every acknowledged event is handled exactly once in the file and in its order, and a
//! message is sent twice only where its outcome was unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::crash::{self, Load, Site};
use crate::harness::file::{self, add_chat, add_person, call_witness, column, disorder, rows, value};

/// Members who are bound to a chat.
const BOUND: std::ops::Range<i64> = 1..41;
/// Members whose chat has opened their connect link.
const PREVIEW: std::ops::Range<i64> = 41..49;
/// Members whom the bot does not know.
const STRANGERS: std::ops::Range<i64> = 49..53;
/// People whose chat is bound to the member in the middle of the run.
const LATE: std::ops::Range<i64> = 53..73;
/// Members whose first event cannot be handled until somebody repairs it.
const POISONED: std::ops::Range<i64> = 73..76;

const EMITTERS: usize = 5;
/// Between two requests of an emitter: what is emitted in a run has to be sent in a few seconds.
const PACE_MS: std::ops::Range<u64> = 2..12;

fn chat(uid: i64) -> i64 {
    100_000 + uid
}

/// What was acknowledged: by HTTP, and by a commit of another program.
#[derive(Default)]
struct Acknowledged {
    /// Dedup key and the id that was answered.
    emitted: Vec<(String, i64)>,
    inserted: Vec<String>,
    taken_back: Vec<String>,
}

/// The bot's outbox, its consumer and the send queue.
#[derive(Default)]
pub(crate) struct BotLoad(Mutex<Acknowledged>);

impl BotLoad {
    fn acknowledged(&self) -> std::sync::MutexGuard<'_, Acknowledged> {
        self.0.lock().expect("no panic under it")
    }

    fn emit(&self, site: &Site, key: String, rng: &mut StdRng) {
        let mut event = random_event(&key, rng);
        event["dedupKey"] = json!(key);
        let id = site.post_until_acknowledged("/bot/events", &event)["id"].as_i64().expect("an id");
        self.acknowledged().emitted.push((key, id));
        std::thread::sleep(Duration::from_millis(rng.random_range(PACE_MS)));
    }

    /// Another program: its own rows and their events in one transaction, some of which it takes back. Now and then it
    /// is many at once, so that a page has more in it than what the last wake brought.
    fn insert(&self, conn: &Connection, key: &str, rng: &mut StdRng) {
        let keeps = rng.random_ratio(4, 5);
        let many = if rng.random_ratio(1, 8) { 40 } else { 1 };
        let keys: Vec<String> = (0..many).map(|number| format!("{key}-{number}")).collect();
        conn.execute_batch("BEGIN IMMEDIATE").expect("the lock comes within the time-out");
        for key in &keys {
            conn.execute("INSERT INTO shop_orders (key) VALUES (?1)", [key]).expect("its own row");
            insert_event(conn, key, rng);
        }
        // A reminder as the bulk lane has it: at most once.
        let reminder = "INSERT INTO telegram_messages
                          (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at)
                        VALUES (?1, 'reminder', 'bulk', 'bulk ' || ?2, 'plain', 'reminder:' || ?2, 0, 0, 0)";
        conn.execute(reminder, (chat(rng.random_range(BOUND)), key)).expect("a message");
        conn.execute_batch(if keeps { "COMMIT" } else { "ROLLBACK" }).expect("it ends");
        let mut acknowledged = self.acknowledged();
        if keeps { &mut acknowledged.inserted } else { &mut acknowledged.taken_back }.extend(keys);
        drop(acknowledged);
        std::thread::sleep(Duration::from_millis(rng.random_range(PACE_MS) * 3));
    }
}

fn insert_event(conn: &Connection, key: &str, rng: &mut StdRng) {
    let event = random_event(key, rng);
    let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid, telegram_id, payload, dedup_key)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let telegram_id = event["telegramId"].as_str().map(|id| id.parse::<i64>().expect("digits"));
    let (event_type, uid) = (event["eventType"].as_str(), event["magnetUid"].as_i64());
    conn.execute(sql, (event_type, uid, telegram_id, event["payload"].to_string(), key)).expect("an event");
}

/// An event of somebody, named by uid, by chat, or by both.
fn random_event(key: &str, rng: &mut StdRng) -> Value {
    let uid = rng.random_range(BOUND.start..LATE.end);
    let partner = json!({"partnerUid": rng.random_range(1..1000), "partnerName": format!("name-{key}")});
    let kinds = [
        ("new_partner", partner.clone()),
        ("new_partner", partner),
        ("reactivation", json!({})),
        ("struct_overtake", json!({})),
        ("wallet_connected", json!({})),
        ("registered", json!({})),
        ("status_nft_activated", json!({"level": "lp1"})),
    ];
    let (event_type, mut payload) = kinds.choose(rng).expect("not empty").clone();
    if PREVIEW.contains(&uid) {
        payload["preview"] = json!(true);
        return event(event_type, Some(uid), Some(chat(uid)), &payload);
    }
    if LATE.contains(&uid) {
        return event(event_type, rng.random_bool(0.3).then_some(uid), Some(chat(uid)), &payload);
    }
    match rng.random_range(0..3) {
        0 => event(event_type, Some(uid), None, &payload),
        1 => event(event_type, None, Some(chat(uid)), &payload),
        _ => event(event_type, Some(uid), Some(chat(uid)), &payload),
    }
}

fn event(event_type: &str, uid: Option<i64>, telegram_id: Option<i64>, payload: &Value) -> Value {
    let mut event = json!({"eventType": event_type, "payload": payload});
    if let Some(uid) = uid {
        event["magnetUid"] = json!(uid);
    }
    if let Some(id) = telegram_id {
        event["telegramId"] = json!(id.to_string());
    }
    event
}

impl Load for BotLoad {
    fn prepare(&self, _: &Site, conn: &Connection) {
        conn.execute_batch("BEGIN; CREATE TABLE shop_orders (key TEXT PRIMARY KEY)").expect("a table of its own");
        BOUND.chain(POISONED).for_each(|uid| add_person(conn, uid, chat(uid)));
        for uid in PREVIEW.chain(LATE) {
            conn.execute("INSERT INTO members (uid) VALUES (?1)", [uid]).expect("a member");
            add_chat(conn, None, chat(uid));
        }
        call_witness(conn);
        for uid in POISONED {
            for (event_type, payload) in [("status_nft_activated", r#"{"level": "lp9"}"#), ("reactivation", "{}")] {
                let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid, payload) VALUES (?1, ?2, ?3)";
                conn.execute(sql, (event_type, uid, payload)).expect("an event");
            }
        }
        conn.execute_batch("COMMIT").expect("committed");
    }

    fn threads(&self) -> usize {
        EMITTERS + 2
    }

    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
        let conn = file::writer(&site.place.data());
        let mut late = LATE;
        for number in 0.. {
            if site.is_over() {
                return;
            }
            let key = format!("{:x}-{thread}-{number}", site.seed & 0xffff);
            match thread {
                0..EMITTERS => self.emit(site, key, rng),
                EMITTERS => self.insert(&conn, &key, rng),
                _ => match late.next() {
                    Some(uid) => {
                        std::thread::sleep(Duration::from_millis(rng.random_range(20..300)));
                        bind(&conn, uid);
                    }
                    None => return,
                },
            }
        }
    }

    fn is_quiet(&self, _: &Site, conn: &Connection) -> bool {
        let poisoned = format!("magnet_uid BETWEEN {} AND {}", POISONED.start, POISONED.end - 1);
        let events = format!(
            "SELECT count(*) FROM bot_event_outbox
             WHERE processed_at IS NULL AND dead_lettered_at IS NULL AND NOT {poisoned}"
        );
        let messages = "SELECT count(*) FROM telegram_messages WHERE status IN ('pending', 'sending')";
        if value::<i64>(conn, &events, []) > 0 || value::<i64>(conn, messages, []) > 0 {
            return false;
        }
        // All others are done: through every restart the poisoned ones held their subjects. Now they are repaired.
        let held = format!("SELECT count(*) FROM bot_event_outbox WHERE {poisoned} AND processed_at IS NULL");
        match value::<i64>(conn, &held, []) {
            0 => true,
            waiting => {
                assert_eq!(waiting, 6, "a subject is held by its failing head");
                let repair = "UPDATE bot_event_outbox SET payload = '{\"level\": \"lp1\"}', next_retry_at = NULL
                              WHERE payload LIKE '%lp9%'";
                conn.execute(repair, []).expect("repaired");
                crate::harness::until("the repaired events are handled", || {
                    (value::<i64>(conn, &held, []) == 0).then_some(())
                });
                false
            }
        }
    }

    fn check(&self, site: &Site, conn: &Connection) {
        let acknowledged = self.acknowledged();
        check_acknowledged(conn, &acknowledged);
        check_handled_once(conn);
        check_effects(conn);
        let mut accepted = site.accepted();
        accepted.retain(|(chat, _)| *chat != crash::LEADS_CHAT);
        let doubtful = check_messages(conn, &accepted);
        check_order_of_messages(conn, &accepted);
        eprintln!(
            "crash: {} emitted, {} inserted, {} taken back, {} messages accepted, {doubtful} attempts in doubt",
            acknowledged.emitted.len(),
            acknowledged.inserted.len(),
            acknowledged.taken_back.len(),
            accepted.len(),
        );
        let few = site.kills < 20;
        assert!(few || acknowledged.emitted.len() > 100 && doubtful > 0, "there was no load to speak of");
    }
}

fn bind(conn: &Connection, uid: i64) {
    conn.execute("UPDATE members SET telegram_id = ?2 WHERE uid = ?1", [uid, chat(uid)]).expect("bound");
}

/// None lost, none invented, and what was taken back is not there.
fn check_acknowledged(conn: &Connection, acknowledged: &Acknowledged) {
    let find = "SELECT COALESCE((SELECT id FROM bot_event_outbox WHERE dedup_key = ?1), 0)";
    for (key, id) in &acknowledged.emitted {
        assert_eq!(value::<i64>(conn, find, [key]), *id, "the event {key} is in the file under the answered id");
    }
    for key in &acknowledged.inserted {
        assert_ne!(value::<i64>(conn, find, [key]), 0, "the event {key} of another program is in the file");
    }
    for key in &acknowledged.taken_back {
        assert_eq!(value::<i64>(conn, find, [key]), 0, "the event {key} was rolled back");
    }
    let orders: i64 = value(conn, "SELECT count(*) FROM shop_orders", []);
    assert_eq!(orders, i64::try_from(acknowledged.inserted.len()).expect("few"));
}

/// Every event is closed as handled, has one mark, was marked once, and never before an earlier open one.
fn check_handled_once(conn: &Connection) {
    let none = |what: &str, sql: &str| {
        let found: Vec<i64> = column(conn, sql, []);
        assert!(found.is_empty(), "{what}: {found:?}");
    };
    none("not handled", "SELECT id FROM bot_event_outbox WHERE outcome IS NOT 'handled'");
    none(
        "without a mark",
        "SELECT id FROM bot_event_outbox AS e WHERE NOT EXISTS (
           SELECT 1 FROM bot_processed_events WHERE source = 'local' AND outbox_event_id = e.id)",
    );
    none(
        "marked for no event",
        "SELECT outbox_event_id FROM bot_processed_events EXCEPT SELECT id FROM bot_event_outbox",
    );
    none("marked more than once", "SELECT event_id FROM witness GROUP BY event_id HAVING count(*) > 1");
    none("not seen by the witness", "SELECT id FROM bot_event_outbox EXCEPT SELECT event_id FROM witness");
    assert_eq!(disorder(conn), [], "no event was handled before an earlier open one of its subject");
    none("lanes without events", "SELECT head_id FROM bot_event_lanes");
    none("chats without messages", "SELECT head_id FROM telegram_chat_lanes");
}

/// One queued message an event where one is owed, one notification where it is owed instead, and each rise of a stage
/// published once.
fn check_effects(conn: &Connection) {
    let owed = "
      SELECT e.id, (e.event_type IN ('new_partner', 'reactivation', 'struct_overtake')
                    OR COALESCE(json_extract(e.payload, '$.preview'), 0)
                       AND e.event_type IN ('wallet_connected', 'registered'))
             AND EXISTS (SELECT 1 FROM bot_users AS u WHERE u.telegram_id = e.telegram_id
                         OR e.telegram_id IS NULL AND u.magnet_uid = e.magnet_uid) AS owed,
             (SELECT count(*) FROM telegram_messages
              WHERE dedup_key = 'event:local:' || e.id || ':' || e.event_type) AS queued
      FROM bot_event_outbox AS e";
    let wrong: Vec<i64> = column(conn, &format!("SELECT id FROM ({owed}) WHERE owed <> queued"), []);
    assert!(wrong.is_empty(), "events with too few or too many messages: {wrong:?}");
    let strangers = "
      SELECT id FROM bot_event_outbox AS e WHERE event_type = 'new_partner' AND magnet_uid BETWEEN ?1 AND ?2
      AND 1 <> (SELECT count(*) FROM web_notifications WHERE dedup_key = 'event:local:' || e.id || ':new_partner')";
    let wrong: Vec<i64> = column(conn, strangers, [STRANGERS.start, STRANGERS.end - 1]);
    assert!(wrong.is_empty(), "strangers' events without their notification: {wrong:?}");
    let rises = "
      SELECT aggregate_id, json_extract(payload, '$.from'), json_extract(payload, '$.to') FROM outbox_events
      WHERE type = 'funnel.stage_advanced' ORDER BY id";
    let mut stages: HashMap<String, i64> = HashMap::new();
    for (person, from, to) in
        rows(conn, rises, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
    {
        let before = stages.insert(person, to).unwrap_or(1);
        assert_eq!(before, from, "each rise goes on from the last one");
        assert!(to > from, "a stage only rises");
    }
    for (person, stage) in rows(conn, "SELECT telegram_id, stage FROM bot_users", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    }) {
        assert_eq!(stages.get(&person.to_string()).copied().unwrap_or(1), stage, "the stage of {person}");
    }
}

/// Each message as often as it may be: once, and once more for each attempt whose outcome was unknown; bulk never.
fn check_messages(conn: &Connection, accepted: &[(i64, String)]) -> i64 {
    let mut counts: BTreeMap<(i64, String), i64> = BTreeMap::new();
    accepted.iter().cloned().for_each(|message| *counts.entry(message).or_default() += 1);
    let mut doubtful = 0;
    // Texts without markup, as the fake shows them; the same text to the same chat is counted together.
    let sql = "SELECT chat_id, replace(replace(text, '<b>', ''), '</b>', ''), count(*), sum(status = 'sent'),
                      sum(unknown_count), max(lane = 'bulk'), group_concat(DISTINCT status)
               FROM telegram_messages GROUP BY 1, 2";
    let found = rows(conn, sql, [], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            [2, 3, 4, 5].map(|n| row.get::<_, i64>(n).expect("a number")),
            row.get::<_, String>(6)?,
        ))
    });
    for (chat, text, [rows, sent, unknown, bulk], status) in found {
        let times = counts.remove(&(chat, text.clone())).unwrap_or_default();
        doubtful += unknown;
        assert!(times >= sent, "{text:?} to {chat}: {sent} sent, accepted {times} times");
        assert!(
            times <= rows + unknown,
            "{text:?} to {chat}: {rows} queued, {unknown} in doubt, accepted {times} times"
        );
        assert!(bulk == 0 || times <= rows, "{text:?} to {chat}: a reminder arrived {times} times");
        assert!(status.split(',').all(|one| one == "sent" || one == "unknown"), "{text:?} to {chat} is {status}");
    }
    assert!(counts.is_empty(), "accepted, but never queued: {counts:?}");
    doubtful
}

/// In a chat, the messages of a lane arrive in the order in which they were queued; a repeat stands beside the first.
fn check_order_of_messages(conn: &Connection, accepted: &[(i64, String)]) {
    let sql = "SELECT id, chat_id, replace(replace(text, '<b>', ''), '</b>', '') FROM telegram_messages
               WHERE lane = 'transactional' AND text LIKE '%name-%' ORDER BY id";
    let ids: HashMap<(i64, String), i64> =
        rows(conn, sql, [], |row| Ok(((row.get(1)?, row.get(2)?), row.get(0)?))).into_iter().collect();
    let mut newest: HashMap<i64, i64> = HashMap::new();
    for (chat, text) in accepted {
        let Some(id) = ids.get(&(*chat, text.clone())) else { continue };
        let before = newest.insert(*chat, *id).unwrap_or_default();
        assert!(before <= *id, "message {id} reached chat {chat} after message {before}");
    }
}

#[test]
fn what_was_acknowledged_is_handled_once_and_in_order_through_every_kill() {
    crash::run(&[&BotLoad::default()], crash::kills());
}

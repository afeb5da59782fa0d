//! What must hold of events, deliveries and receivers when everything has come to rest after the kills.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::Connection;
use serde_json::Value;

use super::kinds::{HOPELESS, KINDS, Kind};
use super::{Acknowledged, Made, WebhookLoad};
use crate::harness::crash::Site;
use crate::harness::file::{column, rows, value};
use crate::harness::receiver::Came;

/// A delivery and what its attempts came to.
struct Delivery {
    status: String,
    attempts: i64,
    /// Attempts that have no answer in the file: whoever was sent to may have answered all the same.
    doubtful: i64,
    delivered: i64,
    /// How often each status is in the file.
    statuses: HashMap<u16, i64>,
}

pub(super) fn check_everything(load: &WebhookLoad, site: &Site, conn: &Connection) {
    let acknowledged = load.acknowledged();
    let events = check_events(conn, &acknowledged);
    check_file(conn, site.kills);
    let (mut arrived, mut repeated) = (0, 0);
    for (kind, made) in KINDS.iter().zip(load.made.get().expect("they are made")) {
        let mut secrets = vec![made.secret.clone()];
        if kind.name == KINDS[0].name {
            secrets.extend(acknowledged.secrets.iter().cloned());
        }
        let counts = check_endpoint(conn, &events, (kind, made), &secrets);
        arrived += counts.0;
        repeated += counts.1;
    }
    let lines = check_analytics(site, conn);
    let interrupted: i64 = value(conn, "SELECT count(*) FROM webhook_attempts WHERE error = 'interrupted'", []);
    eprintln!(
        "crash: {} events, {} leads, {} asked for twice, {} refused, {} taken back; {arrived} requests at receivers, \
         {interrupted} attempts cut off, {repeated} repeated after a yes that was lost, {} resends, {} replays, \
         {} rotations, {lines} lines of analytics",
        acknowledged.events.len(),
        acknowledged.leads,
        acknowledged.repeated,
        acknowledged.refused,
        acknowledged.taken_back.len(),
        acknowledged.resends,
        acknowledged.replays,
        acknowledged.secrets.len(),
    );
    let was_busy = acknowledged.events.len() > 100 && acknowledged.refused > 0 && interrupted > 0;
    assert!(site.kills < 20 || was_busy, "there was no load to speak of");
}

/// Nothing matches the query.
fn none(conn: &Connection, what: &str, sql: &str) {
    let found: Vec<rusqlite::types::Value> = column(conn, sql, []);
    assert!(found.is_empty(), "{what}: {found:?}");
}

/// Type and payload of each event by its id.
type Events = BTreeMap<String, (String, String)>;

/// None lost, none invented, and what was taken back is not there. Every event of the file, the installation's own too.
fn check_events(conn: &Connection, acknowledged: &Acknowledged) -> Events {
    let sql = "SELECT event_id, type, payload FROM outbox_events";
    let stored: Events = rows(conn, sql, [], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).into_iter().collect();
    for (id, event) in &acknowledged.events {
        assert_eq!(stored.get(id), Some(event), "the event {id} is in the file as it was posted");
    }
    for id in &acknowledged.taken_back {
        assert_eq!(stored.get(id), None, "the event {id} was rolled back");
    }
    let own = |event_type: &str| event_type.starts_with("webhook.") || event_type.starts_with("lead.");
    let posted = stored.values().filter(|(event_type, _)| !own(event_type)).count();
    assert_eq!(posted, acknowledged.events.len(), "nothing was invented");
    let told: i64 = value(conn, "SELECT count(*) FROM outbox_events WHERE type = 'lead.received'", []);
    assert_eq!(told, acknowledged.leads, "one event for each lead");
    none(
        conn,
        "events that not every consumer has accepted, or that failed",
        "SELECT event_id FROM outbox_events WHERE published_at IS NULL OR failed_at IS NOT NULL
           OR json_extract(acceptances, '$.webhooks') IS NULL OR json_extract(acceptances, '$.analytics') IS NULL",
    );
    stored
}

/// Deliveries, attempts and endpoints agree with one another.
fn check_file(conn: &Connection, kills: u64) {
    none(
        conn,
        "deliveries that are not at their end",
        "SELECT id || ' ' || status FROM webhook_deliveries
         WHERE status IN ('pending', 'sending') OR resend_requested_at IS NOT NULL OR resumes IS NOT NULL",
    );
    none(
        conn,
        "deliveries whose attempts are not their journal, without a gap",
        "SELECT d.id FROM webhook_deliveries AS d LEFT JOIN webhook_attempts AS a ON a.delivery = d.id
         GROUP BY d.id HAVING d.attempts <> count(a.number) OR d.attempts <> COALESCE(max(a.number), 0)",
    );
    none(
        conn,
        "deliveries whose status is not what their attempts say",
        "SELECT d.id FROM webhook_deliveries AS d WHERE (status = 'delivered') <> EXISTS
           (SELECT 1 FROM webhook_attempts WHERE delivery = d.id AND error IS NULL)",
    );
    none(
        conn,
        "attempts whose class is not what their status says",
        "SELECT delivery || ' ' || number FROM webhook_attempts WHERE COALESCE(error, 'none') <> CASE http_status / 100
           WHEN 2 THEN 'none' WHEN 3 THEN 'http_3xx' WHEN 4 THEN 'http_4xx' WHEN 5 THEN 'http_5xx' ELSE error END",
    );
    none(
        conn,
        "deliveries that went on by the schedule after a yes",
        "SELECT d.id FROM webhook_deliveries AS d JOIN webhook_attempts AS yes ON yes.delivery = d.id AND yes.error IS NULL
         JOIN webhook_attempts AS later ON later.delivery = d.id AND later.number > yes.number AND later.trigger = 'schedule'",
    );
    none(
        conn,
        "deliveries that were given up before the schedule's nine attempts",
        "SELECT d.id FROM webhook_deliveries AS d WHERE status = 'failed' AND 9 >
           (SELECT count(*) FROM webhook_attempts WHERE delivery = d.id AND trigger = 'schedule')",
    );
    let most: i64 = value(
        conn,
        "SELECT COALESCE(max(n), 0) FROM (SELECT count(*) AS n FROM webhook_attempts WHERE error = 'interrupted'
         GROUP BY delivery)",
        [],
    );
    assert!(most.unsigned_abs() <= kills, "a delivery was interrupted {most} times by {kills} kills");
    none(
        conn,
        "attempts that were taken up as interrupted while the program that had them in hand was alive",
        "SELECT cut.delivery FROM claim_witness AS cut WHERE NOT cut.is_claim AND EXISTS
           (SELECT 1 FROM claim_witness WHERE boot = cut.boot AND is_claim = 1 AND seq > cut.seq)",
    );
    none(conn, "rows that refer to nothing", "SELECT \"table\" || ' ' || rowid FROM pragma_foreign_key_check");
}

fn wants(kind: &Kind, event_type: &str) -> bool {
    kind.wants.is_none_or(|patterns| {
        patterns.iter().any(|pattern| match pattern.strip_suffix(".*") {
            Some(prefix) => event_type.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')),
            None => event_type == *pattern,
        })
    })
}

/// Everything that one receiver saw, beside what the file says of it. Requests, and repeats after a yes.
fn check_endpoint(
    conn: &Connection,
    events: &Events,
    (kind, made): (&Kind, &Made),
    secrets: &[String],
) -> (usize, usize) {
    let name = kind.name;
    let mut came: HashMap<String, Vec<Came>> = HashMap::new();
    for one in made.receiver.came() {
        assert!(secrets.iter().any(|secret| one.is_signed_by(secret)), "{name}: nobody signed {one:?}");
        assert!(one.signatures().iter().all(|signature| signature.starts_with("v1,")), "{one:?}");
        came.entry(one.id().to_owned()).or_default().push(one);
    }
    let total = came.values().map(Vec::len).sum();
    let mut deliveries = deliveries(conn, &made.id);
    let mut repeated = 0;
    for (id, (event_type, data)) in events.iter().filter(|(_, (event_type, _))| wants(kind, event_type)) {
        let delivery = deliveries.remove(id).unwrap_or_else(|| panic!("{name}: {id} has no delivery"));
        let came = came.remove(id).unwrap_or_default();
        check_bytes(conn, id, (event_type, data), &came);
        repeated += check_delivery(&format!("{name}: {id}"), &delivery, &came);
        match name {
            HOPELESS => {
                assert!(matches!(&*delivery.status, "failed" | "skipped"), "{name}: {id} is {}", delivery.status)
            }
            _ => assert_eq!(delivery.status, "delivered", "{name}: {id}, after {} attempts", delivery.attempts),
        }
    }
    assert!(deliveries.is_empty(), "{name}: deliveries of what it does not want: {:?}", deliveries.keys());
    let is_test = |came: &Came| came.text().contains(r#""type":"webhook.test""#);
    let strangers = came.iter().filter(|(_, came)| !came.iter().all(is_test)).map(|(id, _)| id);
    let strangers: Vec<_> = strangers.collect();
    assert!(strangers.is_empty(), "{name}: got what nobody posted, or it does not want: {strangers:?}");
    (total, repeated)
}

fn deliveries(conn: &Connection, endpoint: &str) -> HashMap<String, Delivery> {
    let sql = "SELECT m.event_id, d.status, d.attempts, d.id FROM webhook_deliveries AS d
               JOIN webhook_messages AS m ON m.id = d.message JOIN webhook_endpoints AS e ON e.id = d.endpoint
               WHERE e.endpoint_id = ?1";
    let found = rows(conn, sql, [endpoint], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?)));
    let count = found.len();
    let each = found.into_iter().map(|(id, status, attempts, row)| {
        let sql = "SELECT http_status, error IS NULL FROM webhook_attempts WHERE delivery = ?1";
        let journal: Vec<(Option<u16>, bool)> = rows(conn, sql, [row], |row| Ok((row.get(0)?, row.get(1)?)));
        let mut statuses = HashMap::new();
        journal.iter().filter_map(|one| one.0).for_each(|status| *statuses.entry(status).or_default() += 1);
        let (mut doubtful, mut delivered) = (0, 0);
        for (status, is_delivered) in journal {
            doubtful += i64::from(status.is_none());
            delivered += i64::from(is_delivered);
        }
        (id, Delivery { status, attempts, doubtful, delivered, statuses })
    });
    let each: HashMap<String, Delivery> = each.collect();
    assert_eq!(each.len(), count, "an event has one delivery to an endpoint");
    each
}

/// The body is what was frozen, at every attempt, with the data as it came.
fn check_bytes(conn: &Connection, id: &str, (event_type, data): (&str, &str), came: &[Came]) {
    let frozen: Vec<u8> = value(conn, "SELECT body FROM webhook_messages WHERE event_id = ?1", [id]);
    let frozen = String::from_utf8(frozen).expect("UTF-8");
    let begins = format!(r#"{{"id":"{id}","type":"{event_type}","version":1,"tenant":"default","aggregate":{{"#);
    assert!(frozen.starts_with(&begins), "{frozen}");
    assert!(frozen.ends_with(&format!(r#","data":{data}}}"#)), "{frozen} does not end with {data}");
    for one in came {
        assert_eq!(one.text(), frozen, "{id}: the same bytes at every attempt and endpoint");
        assert_eq!(one.header("content-type"), "application/json");
    }
}

/// What came fits what is journaled; a repeat after a yes needs a doubt. How many such repeats there were.
fn check_delivery(what: &str, delivery: &Delivery, came: &[Came]) -> usize {
    let count = |is: &dyn Fn(&&Came) -> bool| i64::try_from(came.iter().filter(is).count()).expect("few");
    let arrived = count(&|_| true);
    assert!(arrived <= delivery.attempts, "{what}: {arrived} requests of {} attempts", delivery.attempts);
    for (status, journaled) in &delivery.statuses {
        let answered = count(&|came| came.reply.status() == Some(*status));
        assert!(
            *journaled <= answered,
            "{what}: {status} is journaled {journaled} times and was said {answered} times"
        );
    }
    let said_yes = count(&|came| came.reply.is_success());
    assert!(
        said_yes <= delivery.delivered + delivery.doubtful,
        "{what}: {said_yes} times yes, of which {} are journaled; {} attempts without an answer",
        delivery.delivered,
        delivery.doubtful
    );
    usize::try_from(said_yes - delivery.delivered).unwrap_or_default()
}

/// Each event is in the files of analytics, whole; a repeat is the same line.
fn check_analytics(site: &Site, conn: &Connection) -> usize {
    let folder = std::fs::read_dir(site.place.path("analytics")).expect("the folder of analytics");
    let text: String =
        folder.map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("UTF-8")).collect();
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut torn = 0;
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let Ok(event) = serde_json::from_str::<HashMap<String, Box<serde_json::value::RawValue>>>(line) else {
            torn += 1;
            continue;
        };
        let id: Value = serde_json::from_str(event["event_id"].get()).expect("a text");
        let before = seen.insert(id.as_str().expect("a text").to_owned(), line);
        assert!(before.is_none_or(|before| before == line), "a repeat differs: {line}");
    }
    assert!(torn <= site.kills, "{torn} lines that are not whole after {} kills", site.kills);
    let stored: HashSet<String> = column(conn, "SELECT event_id FROM outbox_events", []).into_iter().collect();
    let missing: Vec<_> = stored.iter().filter(|id| !seen.contains_key(*id)).collect();
    assert!(missing.is_empty(), "not in the files of analytics: {missing:?}");
    assert!(seen.keys().all(|id| stored.contains(id)), "in the files of analytics, but never stored");
    text.lines().count()
}

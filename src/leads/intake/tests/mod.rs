//! The intake on a file: what becomes of a request in its one transaction.

mod any_json;
mod fixtures;
mod preparation;

use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, Submission, Visitor, accept, prune_rate_limits};
use crate::config::{Delivery, LeadsConfig};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::leads::NotificationStatus::{Disabled, Pending};
use crate::leads::sql;
use crate::outbox;

/// 2027-01-15T08:00:00Z.
const START: UnixMs = 1_800_000_000_000;
const ID: &str = "IP-20270115-A1B2C3";

/// A store of its own, with a clock that is moved.
struct World {
    db: Db,
    clock: Clock,
    rules: LeadsConfig,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let role = Role::Owner("test");
        let db = Db::open(dir.path(), role, &Settings::small(), clock.clone(), vec![outbox::record]).unwrap();
        Self { db, clock, rules: rules(), _dir: dir }
    }

    async fn post(&self, body: &Value) -> Answer {
        self.send(body.to_string().as_bytes(), "192.0.2.1").await
    }

    async fn send(&self, body: &[u8], ip: &str) -> Answer {
        let visitor = Visitor { ip: ip.parse().unwrap(), user_agent: "Browser".to_owned() };
        let (submission, rules) = (Submission::parse(body, &self.rules).unwrap(), self.rules.clone());
        let accepted = self.db.write(move |tx| accept(tx, &submission, &visitor, &rules));
        accepted.await.unwrap()
    }

    /// A number that a query finds.
    async fn number(&self, sql: &'static str) -> i64 {
        self.db.read(move |tx| tx.query_one(sql, [], |row| row.get(0))).await.unwrap()
    }

    async fn text(&self, sql: &'static str) -> String {
        self.db.read(move |tx| tx.query_one(sql, [], |row| row.get(0))).await.unwrap()
    }
}

fn rules() -> LeadsConfig {
    LeadsConfig {
        delivery_is_chosen: true,
        allowed_origins: Vec::new(),
        allow_originless: true,
        rate_limit_per_hour: 8,
        min_fill_ms: 1500,
        max_body_bytes: 65_536,
        telegram_timeout: Duration::from_secs(5),
        chat_id: None,
        delivery: Delivery::Worker,
        service_role_key: None,
        anon_key: None,
        phone_region: "RU".to_owned(),
        retention_days: None,
    }
}

/// A request without anything that need not be there.
fn minimal() -> Value {
    json!({
        "schema_version": 1, "request_id": ID, "form_version": "1", "form_fill_ms": 1500,
        "client": {"name": "Анна", "phone": "9991234567", "city": "Казань"},
        "mortgage": {"scenario": "Вторичное жильё"},
        "consent": true, "personal_data_consent": "yes",
    })
}

fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut body = minimal();
    body[name] = value.into();
    body
}

fn stored() -> Answer {
    Answer::Stored { request_id: ID.to_owned(), status: Pending }
}

#[tokio::test]
async fn a_request_is_stored_once_with_its_events_and_only_an_unfinished_repeat_wakes() {
    let world = World::new();
    let woken = world.db.subscribe(crate::leads::LEADS);
    assert_eq!(world.post(&minimal()).await, stored());
    assert!(tokio::time::timeout(Duration::from_secs(5), woken.notified()).await.is_ok(), "the worker is woken");
    // A repeat need not be complete, and of whom it comes does not matter.
    let repeat = json!({"request_id": ID}).to_string();
    assert_eq!(
        world.send(repeat.as_bytes(), "192.0.2.2").await,
        Answer::Known { request_id: ID.to_owned(), status: Pending }
    );
    assert!(tokio::time::timeout(Duration::from_secs(5), woken.notified()).await.is_ok(), "and again");
    assert_eq!(world.number("SELECT count(*) FROM broker_leads WHERE announced_at = created_at").await, 1);
    assert_eq!(
        world.number("SELECT sum(attempt_count) FROM broker_lead_rate_limits").await,
        1,
        "a repeat costs nothing"
    );
    let event = "SELECT event_type || ' ' || payload FROM broker_lead_events WHERE request_id = 'IP-20270115-A1B2C3'";
    assert_eq!(world.text(event).await, r#"created {"source":"site","schema_version":1,"priority":"cold"}"#);
    let published =
        "SELECT type || ' ' || (payload ->> 'request_id') || ' ' || (aggregate_id = (SELECT id FROM broker_leads))
                     FROM outbox_events";
    assert_eq!(world.text(published).await, format!("lead.received {ID} 1"));
}

#[tokio::test]
async fn the_way_of_delivery_decides_where_the_notification_starts() {
    for (delivery, expected) in [(Delivery::Worker, Pending), (Delivery::Rpc, Pending), (Delivery::Off, Disabled)] {
        let mut world = World::new();
        world.rules.delivery = delivery;
        assert_eq!(world.post(&minimal()).await, Answer::Stored { request_id: ID.to_owned(), status: expected });
        let known = Answer::Known { request_id: ID.to_owned(), status: expected };
        assert_eq!(world.post(&minimal()).await, known);
    }
}

#[tokio::test]
async fn sixty_four_equal_requests_at_once_make_one_lead() {
    let world = World::new();
    let body = minimal();
    let posts = (0..64).map(|_| world.post(&body));
    let answers = futures_util::future::join_all(posts).await;
    let count = |wanted: &Answer| answers.iter().filter(|answer| *answer == wanted).count();
    let known = Answer::Known { request_id: ID.to_owned(), status: Pending };
    assert_eq!((count(&stored()), count(&known)), (1, 63));
    for table in ["broker_leads", "broker_lead_events WHERE event_type = 'created'", "outbox_events"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: i64 = world.db.read(move |tx| tx.query_one(&sql, [], |row| row.get(0))).await.unwrap();
        assert_eq!(rows, 1, "{table}");
    }
}

#[tokio::test]
async fn every_request_counts_but_a_repeat_and_the_ninth_of_an_hour_is_refused() {
    let world = World::new();
    world.clock.set(START + 1);
    let spam = with("spam_check", json!({"likely_bot": true}));
    assert_eq!(world.post(&minimal()).await, stored());
    for number in 0..7 {
        let body = if number % 2 == 0 { spam.clone() } else { minimal() };
        let mut body = body;
        body["request_id"] = json!(if number % 2 == 0 { "IP-20270115-SPAM01" } else { "" });
        let answer = world.post(&body).await;
        assert!(matches!(answer, Answer::Spam { .. } | Answer::Invalid { request_id: None, .. }), "{answer:?}");
        assert!(matches!(world.post(&minimal()).await, Answer::Known { .. }));
    }
    let next = with("request_id", "F47AC10B-58CC-4372-A567-0E02B2C3D479");
    let request_id = Some("F47AC10B-58CC-4372-A567-0E02B2C3D479".to_owned());
    let refused = Answer::RateLimited { request_id, retry_after_seconds: 3600 };
    assert_eq!(world.post(&next).await, refused);
    assert!(
        matches!(world.send(next.to_string().as_bytes(), "192.0.2.2").await, Answer::Stored { .. }),
        "another visitor"
    );
    world.clock.set(START + 3_599_500);
    let late = world.post(&spam_with_id("IP-20270115-SPAM02")).await;
    assert!(
        matches!(late, Answer::RateLimited { retry_after_seconds: 1, .. }),
        "before it is found to be spam: {late:?}"
    );
    assert_eq!(
        world.number("SELECT max(attempt_count) FROM broker_lead_rate_limits").await,
        10,
        "refused ones count too"
    );
    world.clock.set(START + 3_600_000);
    assert!(
        matches!(world.post(&with("request_id", "IP-20270115-NEXT01")).await, Answer::Stored { .. }),
        "the next hour"
    );
}

fn spam_with_id(request_id: &str) -> Value {
    let mut body = with("spam_check", json!({"honeypot_empty": false}));
    body["request_id"] = json!(request_id);
    body
}

#[tokio::test]
async fn counts_of_hours_that_are_over_are_forgotten_in_steps() {
    let world = World::new();
    for number in 0..5 {
        world.clock.set(START + number * 3_600_000);
        world.post(&spam_with_id("IP-20270115-SPAM01")).await;
    }
    let prune = |limit| world.db.settle(move |tx| prune_rate_limits(tx, START + 3 * 3_600_000, limit));
    assert_eq!((prune(2).await.unwrap(), prune(2).await.unwrap(), prune(2).await.unwrap()), (2, 1, 0));
    assert_eq!(world.number("SELECT count(*) FROM broker_lead_rate_limits").await, 2);
}

#[tokio::test]
async fn a_number_of_another_region_is_kept_in_its_own_form() {
    let mut world = World::new();
    world.rules.phone_region = "DE".to_owned();
    let mut body = minimal();
    body["client"]["phone"] = json!("030 12345-6");
    assert_eq!(world.post(&body).await, stored());
    assert_eq!(world.text("SELECT phone || ' ' || phone_normalized FROM broker_leads").await, "030 12345-6 4930123456");
    body["request_id"] = json!("IP-20270115-A1B2C4");
    body["client"]["phone"] = json!("12");
    let faults = vec!["invalid_phone"];
    assert_eq!(world.post(&body).await, Answer::Invalid { request_id: Some("IP-20270115-A1B2C4".to_owned()), faults });
}

#[tokio::test]
async fn every_repeated_statement_uses_the_index_made_for_it() {
    let world = World::new();
    for (statement, index) in sql::intake::plans() {
        let plan = world.db.read(move |tx| tx.plan(statement)).await.unwrap();
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{statement}: {plan}");
        assert!(!plan.split(" | ").any(|step| step.starts_with("SCAN")), "{statement}: {plan}");
    }
}

//! Rules against events, through the consumer's port and a real store.

use std::sync::Arc;

use super::Communications;
use crate::config::{Config, Sources};
use crate::kernel::clock::Clock;
use crate::kernel::events::CATALOGUE;
use crate::kernel::store::{Db, Role, Settings, Tx};
use crate::kernel::tenant::TenantId;
use crate::onboarding::content::{Content, Lang};
use crate::outbox::consumer::{Inside, Refusal, StoredEvent};

const LEAD: &str = r#"{"lead_id":"0198","request_id":"IP-1"}"#;

fn config(rules: &[(&str, &str, i64)], alert_chat: Option<i64>) -> Config {
    let mut text = String::from("[communications]\n");
    if let Some(chat) = alert_chat {
        text.push_str(&format!("alert_chat = {chat}\n"));
    }
    for (event, block, chat) in rules {
        text.push_str(&format!("[[communications.rule]]\nevent = \"{event}\"\nblock = \"{block}\"\nchat = {chat}\n"));
    }
    Config::load(Sources::empty().with_text("box.toml", text)).unwrap()
}

fn content() -> Arc<Content> {
    Arc::new(Content::shipped(Lang::En).unwrap())
}

fn opened(rules: &[(&str, &str, i64)], alert_chat: Option<i64>) -> Communications {
    Communications::open(&config(rules, alert_chat).communications, content()).unwrap().unwrap()
}

fn event(event_type: &str, payload: &str) -> StoredEvent {
    StoredEvent {
        row: 1,
        tenant: TenantId::installation(),
        event_id: "0190-a".to_owned(),
        event_type: event_type.to_owned(),
        version: 1,
        aggregate_type: "thing".to_owned(),
        aggregate_id: "<7>".to_owned(),
        occurred_at: 0,
        payload: payload.to_owned(),
        attempts: 0,
    }
}

struct Bench {
    db: Db,
    _dir: tempfile::TempDir,
}

impl Bench {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db =
            Db::open(dir.path(), Role::Owner("test"), &Settings::small(), Clock::stopped_at(1_000), vec![]).unwrap();
        Self { db, _dir: dir }
    }

    /// Hands the event over as the relay does: in a savepoint of its own.
    async fn hand_over(&self, to: &Arc<Communications>, event: StoredEvent) -> Result<(), Refusal> {
        let to = Arc::clone(to);
        let accept = move |tx: &Tx<'_>| tx.attempt(|| Refusal::Code("panicked"), || to.accept(tx, &event));
        self.db.settle(accept).await.unwrap()
    }

    /// Chat, kind and text of what is queued.
    async fn queued(&self) -> Vec<(i64, String, String)> {
        let rows = |tx: &Tx<'_>| {
            let sql = "SELECT chat_id, kind, text FROM telegram_messages ORDER BY id";
            tx.query_all(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        };
        self.db.read(rows).await.unwrap()
    }
}

fn message(chat_id: i64, kind: &str, text: &str) -> (i64, String, String) {
    (chat_id, kind.to_owned(), text.to_owned())
}

fn code(refused: Result<(), Refusal>) -> String {
    refused.unwrap_err().to_string()
}

#[tokio::test]
async fn every_rule_that_fits_sends_its_block_to_its_chat() {
    let bench = Bench::open();
    let to = Arc::new(opened(
        &[("lead.received", "event_lead_received", -5), ("lead.*", "event_any", 6), ("member.*", "event_any", 7)],
        None,
    ));
    bench.hand_over(&to, event("lead.received", LEAD)).await.unwrap();
    let any = "Event <b>lead.received</b> of thing <code>&lt;7&gt;</code>, 1970-01-01T00:00:00.000Z.";
    let expected = [message(-5, "communication", "A new lead: <code>IP-1</code>."), message(6, "communication", any)];
    assert_eq!(bench.queued().await, expected);
    bench.hand_over(&to, event("invoice.paid", "{}")).await.unwrap();
    assert_eq!(bench.queued().await.len(), 2, "nobody asked for that");
}

#[tokio::test]
async fn an_event_that_is_handed_over_again_queues_nothing_new() {
    let bench = Bench::open();
    let rules = [("lead.received", "event_lead_received", 5), ("lead.received", "event_any", 5)];
    let to = Arc::new(opened(&rules, None));
    bench.hand_over(&to, event("lead.received", LEAD)).await.unwrap();
    bench.hand_over(&to, event("lead.received", LEAD)).await.unwrap();
    // The file was edited meanwhile: the rules stand in another order, and there is one more.
    let edited = [rules[1], ("lead.*", "event_any", 5), rules[0]];
    bench.hand_over(&Arc::new(opened(&edited, None)), event("lead.received", LEAD)).await.unwrap();
    assert_eq!(bench.queued().await.len(), 3, "the new rule's, and each other's once");
}

#[tokio::test]
async fn events_of_other_tenants_tell_nobody_anything() {
    let bench = Bench::open();
    let to = Arc::new(opened(&[("lead.*", "event_any", 5)], Some(9)));
    for event_type in ["lead.received", "webhook.endpoint_disabled"] {
        let theirs = StoredEvent { tenant: TenantId::parse("acme").unwrap(), ..event(event_type, LEAD) };
        bench.hand_over(&to, theirs).await.unwrap();
    }
    assert!(bench.queued().await.is_empty());
}

#[tokio::test]
async fn a_block_that_cannot_be_written_is_a_refusal_with_a_code() {
    let bench = Bench::open();
    // What tenants post is not known at the start; the first rule would do.
    let to = Arc::new(opened(&[("invoice.*", "event_any", 5), ("invoice.*", "event_member_registered", 6)], None));
    for (payload, expected) in [
        (r#"{"amount": 5}"#, "block_not_rendered"),
        (r#"{"uid": [7], "parent_uid": 1}"#, "block_not_rendered"),
        (r#"{"uid": "\ud800", "parent_uid": 1}"#, "payload_unreadable"),
        ("[]", "payload_unreadable"),
    ] {
        assert_eq!(code(bench.hand_over(&to, event("invoice.paid", payload)).await), expected, "{payload}");
    }
    assert!(bench.queued().await.is_empty(), "all of an event's messages, or none");
    let partner = Arc::new(opened(&[("invoice.*", "new_partner", 5)], None));
    bench.hand_over(&partner, event("invoice.paid", r#"{"partner_name": "<b>&\u0007\"x"}"#)).await.unwrap();
    let text = &bench.queued().await[0].2;
    assert!(text.contains("<b>&lt;b&gt;&amp;&quot;x</b>"), "{text}");
}

#[tokio::test]
async fn values_stand_as_they_came_and_long_ones_are_cut() {
    let bench = Bench::open();
    let to = Arc::new(opened(&[("a.*", "event_member_registered", 5)], None));
    let payloads = [
        (r#"{"uid": 1e400, "parent_uid": null}"#, "Member 1e400 has registered."),
        (r#"{"uid": 0.10, "parent_uid": false}"#, "Member 0.10 has registered."),
        (r#"{"uid": "\u2028", "parent_uid": true}"#, "Member \u{2028} has registered under member true."),
    ];
    for (number, (payload, expected)) in payloads.into_iter().enumerate() {
        let event = StoredEvent { event_id: number.to_string(), ..event("a.b", payload) };
        bench.hand_over(&to, event).await.unwrap();
        assert_eq!(bench.queued().await[number].2, expected, "{payload}");
    }
    let deep = format!(
        r#"{{"uid": "{}", "parent_uid": 1, "x": {}1{}}}"#,
        "y".repeat(60_000),
        "[".repeat(2_000),
        "]".repeat(2_000)
    );
    bench.hand_over(&to, event("a.b", &deep)).await.unwrap();
    let text = bench.queued().await.pop().unwrap().2;
    assert!(text.contains(&format!("{}…", "y".repeat(1_000))) && text.len() < 1_100, "{text}");
}

#[tokio::test]
async fn the_alert_chat_is_told_of_failing_endpoints_without_a_rule() {
    let bench = Bench::open();
    let to = Arc::new(opened(&[], Some(9)));
    let payload =
        r#"{"endpoint_id":"ep_1","tenant":"acme","reason":"failing","failing_since":"2026-01-01T00:00:00.000Z"}"#;
    for event_type in ["webhook.endpoint_failing", "webhook.endpoint_disabled", "lead.received"] {
        bench
            .hand_over(&to, StoredEvent { event_id: event_type.to_owned(), ..event(event_type, payload) })
            .await
            .unwrap();
    }
    let told = bench.queued().await;
    assert!(
        told.len() == 2
            && told.iter().all(|(chat, kind, text)| {
                *chat == 9 && kind == "alert" && text.contains("ep_1") && text.contains("acme")
            }),
        "{told:?}"
    );
}

#[test]
fn rules_that_cannot_be_written_are_found_at_the_start() {
    let rules = [
        ("lead.received", "event_lead_recieved", 5),
        ("lead.*", "event_lead_notification_failed", 5),
        ("lead.notification_failed", "event_lead_notification_failed", 5),
        ("invoice.*", "event_member_registered", 5),
    ];
    let Err(refused) = Communications::open(&config(&rules, None).communications, content()) else { panic!("taken") };
    let told: Vec<_> = refused.problems().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    let unknown = "communications.rule.block = event_lead_recieved [box.toml:2]: there is no such content block; the nearest is `event_lead_received`";
    assert!(told[0].starts_with(unknown), "{told:#?}");
    assert!(told[1].contains("[box.toml:6]: this block names something that lead.received does not have"), "{told:#?}");
    assert!(told[1].contains("occurred_at, lead_id, request_id;"), "{told:#?}");
    assert!(Communications::open(&config(&[], None).communications, content()).unwrap().is_none());
}

#[test]
fn every_type_of_the_catalogue_has_a_shipped_block_that_its_fixture_can_be_written_with() {
    for lang in Lang::ALL {
        let content = Content::shipped(lang).unwrap();
        for entry in CATALOGUE {
            for block in [super::block_of(entry.name), "event_any".to_owned()] {
                let text = super::values::render_shipped(&content, &block, &event(entry.name, entry.example));
                assert!(text.is_ok(), "{block}: {:?}", text.err());
            }
        }
    }
}

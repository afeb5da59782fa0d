//! What an operator sees and may do: lists, one lead, numbers, health, deleting.

use super::super::health::{Alert, health};
use super::super::inspect::{COLUMNS, Filter, export_page, find, list, stats};
use super::super::keep::{Deleted, delete, delete_older_than};
use super::super::{CrmStatus, NotificationStatus};
use super::*;

async fn filled() -> World {
    let world = World::new();
    for (number, status) in [(1, "pending"), (2, "sent"), (3, "failed"), (4, "sent"), (5, "sending")] {
        world.insert(number, status).await;
        // Two come at the same time.
        if number != 2 {
            world.advance(1_000);
        }
    }
    world
}

fn of_five(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|&number| id(number)).collect()
}

#[tokio::test]
async fn pages_go_through_every_lead_in_both_orders() {
    let world = filled().await;
    let (mut down, mut up) = (Vec::new(), Vec::new());
    let mut filter = Filter { limit: 2, ..Filter::default() };
    loop {
        let page = filter.clone();
        let leads = world.write(move |tx| list(tx, &page).unwrap()).await;
        let Some(last) = leads.last() else { break };
        filter.after = Some(last.position.clone());
        down.extend(leads.into_iter().map(|lead| lead.id));
    }
    assert_eq!(down, of_five(&[5, 4, 3, 2, 1]));
    let mut filter = Filter { limit: 2, ..Filter::default() };
    loop {
        let page = filter.clone();
        let leads = world.write(move |tx| export_page(tx, &page).unwrap()).await;
        let Some(last) = leads.last() else { break };
        filter.after = Some(last.position.clone());
        up.extend(leads.into_iter().map(|lead| lead.position.id));
    }
    down.reverse();
    assert_eq!(up, down);
}

#[tokio::test]
async fn filters_hold_together() {
    let world = filled().await;
    world.run("UPDATE broker_leads SET status = 'closed' WHERE request_id LIKE '%4'").await.unwrap();
    let listed = async |filter: Filter| {
        let filter = Filter { limit: 99, ..filter };
        let both = move |tx: &Tx<'_>| {
            let down: Vec<_> = list(tx, &filter).unwrap().into_iter().map(|lead| lead.id).collect();
            let mut up: Vec<_> = export_page(tx, &filter).unwrap().into_iter().map(|lead| lead.position.id).collect();
            up.reverse();
            assert_eq!(up, down);
            down
        };
        world.write(both).await
    };
    let sent = Filter { notification: Some(NotificationStatus::Sent), ..Filter::default() };
    assert_eq!(listed(sent.clone()).await, of_five(&[4, 2]));
    let closed = Filter { status: Some(CrmStatus::parse("closed").unwrap()), ..sent };
    assert_eq!(listed(closed).await, of_five(&[4]));
    let between = Filter { from: Some(START + 1_000), to: Some(START + 2_000), ..Filter::default() };
    assert_eq!(listed(between).await, of_five(&[3, 2]), "from then, and before then");
    for status in NotificationStatus::ALL {
        let one = Filter { notification: Some(status), ..Filter::default() };
        let expected = [2, 1, 1, 1, 0][match status {
            NotificationStatus::Sent => 0,
            NotificationStatus::Disabled => 4,
            _ => 1,
        }];
        assert_eq!(listed(one).await.len(), expected, "{status:?}");
    }
}

#[tokio::test]
async fn a_lead_is_found_by_either_id_with_every_column() {
    let world = filled().await;
    let columns = world.column("SELECT name FROM pragma_table_info('broker_leads')").await;
    let mut exported: Vec<String> = COLUMNS.iter().map(|column| (*column).to_owned()).collect();
    let mut all = columns;
    exported.sort();
    all.sort();
    assert_eq!(exported, all, "an export leaves nothing out");
    world
        .run(
            "UPDATE broker_leads SET client_name = CAST(x'E9' AS TEXT), raw_payload = '{\"a\":\"\\ud800\"}',
                 tracking = '{\"b\":1}', has_matkapital = 1 WHERE request_id LIKE '%1'",
        )
        .await
        .unwrap();
    world
        .run("INSERT INTO broker_lead_events (lead_id, event_type) SELECT id, 'created' FROM broker_leads")
        .await
        .unwrap();
    for key in [id(1), request(1)] {
        let whole = world.write(move |tx| find(tx, &key).unwrap()).await.unwrap();
        let value = |column| whole.lead.value(column).cloned().unwrap();
        assert_eq!(value("client_name"), "\u{fffd}");
        assert_eq!(value("raw_payload"), r#"{"a":"\ud800"}"#);
        assert_eq!(value("tracking"), serde_json::json!({ "b": 1 }));
        assert_eq!(value("has_matkapital"), true);
        assert_eq!(value("created_at"), "2023-11-14T22:13:20.000Z");
        assert_eq!(whole.events.len(), 1);
        assert!(serde_json::to_string(&whole.lead).unwrap().starts_with(r#"{"id":"00000000-"#), "in their order");
    }
    assert!(world.write(|tx| find(tx, "nobody").unwrap()).await.is_none());
}

#[tokio::test]
async fn the_leads_in_numbers() {
    let world = filled().await;
    world.advance(24 * 60 * MINUTE);
    world.insert(6, "failed").await;
    let stats = world.write(|tx| stats(tx).unwrap()).await;
    assert_eq!(stats.looked_at, 6);
    let counts = |pairs: &[(&str, i64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(stats.by_notification_status, counts(&[("failed", 2), ("sent", 2), ("pending", 1), ("sending", 1)]));
    assert_eq!((stats.by_status, stats.by_source), (counts(&[("new", 6)]), counts(&[("site", 6)])));
    let days: Vec<_> = stats.by_day.iter().map(|day| (day.day.as_str(), day.received, day.sent, day.failed)).collect();
    assert_eq!(days, [("2023-11-15", 1, 0, 1), ("2023-11-14", 5, 2, 1)]);
}

#[tokio::test]
async fn health_raises_what_a_person_should_look_after() {
    let world = World::new();
    let alerts = async || world.write(|tx| health(tx).unwrap()).await.alerts;
    assert_eq!(alerts().await, []);
    world.insert(1, "pending").await;
    world.advance(15 * MINUTE);
    assert_eq!(alerts().await, []);
    world.advance(1);
    assert_eq!(alerts().await, [Alert::PendingBacklog]);
    // It was asked for again: it waits since then.
    world.run("UPDATE broker_leads SET notification_manual_retry_requested_at = created_at + 900000").await.unwrap();
    assert_eq!(alerts().await, []);
    let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                INSERT INTO broker_leads (phone, created_at) SELECT '7', 1700000900001 FROM n";
    world.run(many).await.unwrap();
    assert_eq!(alerts().await, [Alert::PendingBacklog], "more than a hundred");
    world
        .run("UPDATE broker_leads SET notification_status = 'sending', notification_attempted_at = 1700000900001")
        .await
        .unwrap();
    world.advance(15 * MINUTE);
    assert_eq!(alerts().await, []);
    world.advance(1);
    let health_now = world.write(|tx| health(tx).unwrap()).await;
    assert_eq!((health_now.alerts, health_now.stale_sending), (vec![Alert::StaleSending], 101));
    assert_eq!(health_now.sending.oldest_age_ms, Some(15 * MINUTE + 1));
    world.run("DELETE FROM broker_leads WHERE request_id IS NULL").await.unwrap();
    world.run("UPDATE broker_leads SET notification_status = 'failed'").await.unwrap();
    assert_eq!(alerts().await, [Alert::FailedPresent]);
    world.advance(24 * 60 * MINUTE);
    assert_eq!(alerts().await, [Alert::FailedPresent, Alert::FailedCritical]);
    let shown = world.write(|tx| serde_json::to_value(health(tx).unwrap()).unwrap()).await;
    assert_eq!(shown["alerts"], serde_json::json!(["failed_present", "failed_critical"]));
    assert_eq!(shown["pending"], serde_json::json!({ "count": 0, "oldest_at": null, "oldest_age_ms": null }));
    world.run("DELETE FROM broker_leads").await.unwrap();
    for number in 1..=10 {
        world.insert(number, "failed").await;
    }
    assert_eq!(alerts().await, [Alert::FailedPresent, Alert::FailedCritical], "ten are no accident");
}

#[tokio::test]
async fn deleting_takes_the_events_along_and_nothing_that_is_under_way() {
    let world = filled().await;
    world.run("UPDATE broker_leads SET notification_attempted_at = created_at").await.unwrap();
    world
        .run("INSERT INTO broker_lead_events (lead_id, event_type) SELECT id, 'created' FROM broker_leads")
        .await
        .unwrap();
    let delete_it = async |number| world.write(move |tx| delete(tx, &id(number)).unwrap()).await;
    assert_eq!(delete_it(2).await, Deleted::Gone(NotificationStatus::Sent));
    assert_eq!(delete_it(2).await, Deleted::Missing);
    assert_eq!(delete_it(5).await, Deleted::Sending);
    assert_eq!(world.events().await.len(), 4);
    let older = async |before| world.write(move |tx| delete_older_than(tx, before, 2).unwrap()).await;
    assert_eq!(older(START + 1_000).await, 0, "the only one is still to be told");
    assert_eq!((older(i64::MAX).await, older(i64::MAX).await), (2, 0));
    assert_eq!(world.column("SELECT id FROM broker_leads ORDER BY id").await, of_five(&[1, 5]));
    world.advance(16 * MINUTE);
    assert_eq!(delete_it(5).await, Deleted::Gone(NotificationStatus::Sending), "nobody comes back for it");
    assert_eq!(delete_it(1).await, Deleted::Gone(NotificationStatus::Pending));
    assert_eq!(world.events().await, [] as [String; 0]);
}

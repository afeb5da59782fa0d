//! Lists by page, one event whole, and the numbers.

use super::super::Error;
use super::super::health::{COUNT_CAP, Health, health};
use super::super::inspect::{Cursor, EventFilter, EventRow, EventStatus, Page, events, find};
use super::actors::Mood;
use super::*;

async fn page(world: &World, filter: &EventFilter, after: Option<&Cursor>, limit: i64) -> Page<EventRow> {
    let (filter, after) = (filter.clone(), after.cloned());
    world.db.read(move |tx| events(tx, &acme(), &filter, after.as_ref(), limit)).await.unwrap()
}

/// All pages of a list, and how many they were.
async fn all(world: &World, filter: &EventFilter, limit: i64) -> (Vec<String>, usize) {
    let (mut ids, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = page(world, filter, after.as_ref(), limit).await;
        ids.extend(page.items.into_iter().map(|event| event.event_id));
        pages += 1;
        let Some(next) = page.next else { return (ids, pages) };
        // As it goes to a client and comes back.
        after = Some(Cursor::parse(&next.to_string()).unwrap());
    }
}

fn only(status: Option<EventStatus>, event_type: Option<&str>) -> EventFilter {
    EventFilter { status, event_type: event_type.map(str::to_owned) }
}

/// Ten events: the first four published, the next three refused once, two fresh, the last one failed.
async fn mixed() -> (World, Vec<String>) {
    let world = World::new().await;
    let actor = Actor::inside("actor");
    let relay = world.relay(&[&actor]);
    let mut ids = world.fill(4).await;
    pass(&relay).await;
    actor.be(Mood::Refuses);
    for _ in 0..3 {
        world.advance(SECOND);
        ids.extend(world.fill(1).await);
        pass(&relay).await;
    }
    world.advance(SECOND);
    ids.extend(
        world
            .post(posted(vec![event("order.lost", "{}"), event("order.paid", "{}"), event("order.paid", "{}")]))
            .await
            .unwrap(),
    );
    world.run("UPDATE outbox_events SET failed_at = 1, attempts = 10 WHERE id = 10").await;
    let others = Posted { tenant: TenantId::parse("other").unwrap(), ..posted(vec![event("order.paid", "{}"); 3]) };
    world.post(others).await.unwrap();
    (world, ids)
}

#[tokio::test]
async fn every_list_shows_its_events_once_in_its_order_whatever_the_page() {
    let (world, ids) = mixed().await;
    let newest_first = |ids: &[String]| ids.iter().rev().cloned().collect::<Vec<_>>();
    let pending = [&ids[7..9], &ids[4..7]].concat();
    for limit in [1, 2, 3, 4, 200] {
        assert_eq!(all(&world, &only(None, None), limit).await.0, newest_first(&ids));
        let published = only(Some(EventStatus::Published), None);
        assert_eq!(all(&world, &published, limit).await.0, newest_first(&ids[..4]));
        assert_eq!(all(&world, &only(Some(EventStatus::Failed), None), limit).await.0, ids[9..]);
        // Those that nobody has refused are due at once; the others as they were put off.
        assert_eq!(all(&world, &only(Some(EventStatus::Pending), None), limit).await.0, pending, "{limit}");
        assert_eq!(all(&world, &only(None, Some("order.lost")), limit).await.0, ids[7..8]);
        let none = only(Some(EventStatus::Failed), Some("order.lost"));
        assert!(all(&world, &none, limit).await.0.is_empty());
    }
}

#[tokio::test]
async fn a_page_looks_at_so_many_rows_and_says_where_to_go_on() {
    let world = World::new().await;
    world.fill(2500).await;
    world.post(posted(vec![event("order.lost", "{}")])).await.unwrap();
    world.fill(2500).await;
    let (ids, pages) = all(&world, &only(None, Some("order.lost")), 200).await;
    assert_eq!((ids.len(), pages), (1, 6));
    let (ids, pages) = all(&world, &only(Some(EventStatus::Pending), Some("order.lost")), 200).await;
    assert_eq!((ids.len(), pages), (1, 6));
    let empty = page(&world, &only(Some(EventStatus::Published), None), None, 200).await;
    assert!(empty.items.is_empty() && empty.next.is_some());
    assert_eq!(page(&world, &only(None, None), None, i64::MAX).await.items.len(), 200);
    assert_eq!(page(&world, &only(None, None), None, -1).await.items.len(), 1);
}

#[tokio::test]
async fn a_tenant_finds_its_pending_events_behind_anothers_backlog() {
    let (world, ids) = mixed().await;
    // The later half of them has ids behind those of the tenant, and all of them are due before.
    let backlog = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
                   INSERT INTO outbox_events (id, tenant_id, event_id, type, aggregate_type, aggregate_id, payload)
                   SELECT -i, 'other', i, 'a', 'a', 'a', '{}' FROM n";
    world.run(backlog).await;
    let pending = only(Some(EventStatus::Pending), None);
    let newest_first: Vec<String> = ids[4..9].iter().rev().cloned().collect();
    assert_eq!(all(&world, &pending, 200).await, (newest_first.clone(), 1), "on the first page");
    for limit in [1, 2, 5] {
        assert_eq!(all(&world, &pending, limit).await.0, newest_first, "{limit}");
    }
    // A list that was begun keeps its order when the backlog is gone.
    let begun = page(&world, &pending, None, 2).await;
    world.run("DELETE FROM outbox_events WHERE id < 0").await;
    let rest = page(&world, &pending, begun.next.as_ref(), 200).await;
    let shown: Vec<String> = begun.items.into_iter().chain(rest.items).map(|event| event.event_id).collect();
    assert_eq!(shown, newest_first);
}

#[tokio::test]
async fn an_event_is_shown_whole_to_its_tenant_only() {
    let (world, ids) = mixed().await;
    let id = ids[4].clone();
    let look = |tenant: &'static str, id: String| {
        let tenant = TenantId::parse(tenant).unwrap();
        world.db.read(move |tx| find(tx, &tenant, &id))
    };
    let found = look("acme", id.to_uppercase()).await.unwrap().unwrap();
    let shown = serde_json::to_value(&found).unwrap();
    assert_eq!(
        shown,
        serde_json::json!({
            "event_id": id, "type": "order.paid", "version": 1, "aggregate": {"type": "order", "id": "17"},
            "occurred_at": "2023-11-14T22:13:21.000Z", "created_at": "2023-11-14T22:13:21.000Z", "status": "pending",
            "attempts": 1, "next_attempt_at": "2023-11-14T22:13:51.000Z", "last_error": "actor: no",
            "published_at": null, "failed_at": null, "acceptances": {}, "data": {},
        })
    );
    let published = look("acme", ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(published.event.acceptances["actor"], START);
    assert!(look("other", id).await.unwrap().is_none());
    assert!(look("acme", "none".into()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let world = World::new().await;
    let refuse = |status, after| {
        let filter = only(status, None);
        world.db.read(move |tx| events(tx, &acme(), &filter, Some(&after), 5))
    };
    let wrong = [(None, Cursor::Due(Some(5), 7)), (Some(EventStatus::Failed), Cursor::Due(None, 7))];
    for (status, after) in wrong {
        assert!(matches!(refuse(status, after).await, Err(Error::Invalid { index: None, field: "after", .. })));
    }
    for cursor in [Cursor::Due(Some(-5), 7), Cursor::Due(None, i64::MIN), Cursor::Id(vec![0xff, 0]), Cursor::Id(vec![])]
    {
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
    }
    for text in ["", "x", "!", "ZA", "ZDU", "ZCB4", "ZDEgMiAz"] {
        assert_eq!(Cursor::parse(text), None, "{text}");
    }
}

#[tokio::test]
async fn the_numbers_say_what_is_pending_refused_and_failed() {
    let (world, _) = mixed().await;
    let look = || world.db.read(health);
    let shown = look().await.unwrap();
    assert_eq!(shown, Health { pending: 8, refused: 3, oldest_pending_age_ms: Some(3 * SECOND), failed: 1 });
    world
        .run(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {COUNT_CAP})
         INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload, created_at)
         SELECT i, 'a', 'a', 'a', '{{}}', {} FROM n",
            START - HOUR
        ))
        .await;
    let shown = look().await.unwrap();
    assert_eq!((shown.pending, shown.oldest_pending_age_ms), (COUNT_CAP, Some(HOUR + 4 * SECOND)));
    world.run("DELETE FROM outbox_events").await;
    assert_eq!(look().await.unwrap(), Health::default());
}

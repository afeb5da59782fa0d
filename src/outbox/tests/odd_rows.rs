//! Rows of other programs: whatever is in them, the others are handed over.

use super::super::inspect::{Cursor, EventFilter, EventStatus, events, find};
use super::actors::Mood;
use super::*;

/// Inserts a row of another program, with the checks switched off when they would keep it out.
async fn insert(world: &World, columns: &str, values: &str) {
    let sql = format!(
        "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload{columns})
         SELECT 'odd-' || (SELECT count(*) FROM outbox_events), 'order.paid', 'order', '1', '{{}}'{values}"
    );
    world.run(&sql).await;
}

/// Changes the last row as a program does that has the checks switched off.
fn change_unchecked(world: &World, set: &str) {
    let conn = rusqlite::Connection::open(world.dir.path().join("pillarbox.db")).unwrap();
    conn.busy_timeout(Duration::from_secs(5)).unwrap();
    conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
    let sql = format!("UPDATE outbox_events SET {set} WHERE id = (SELECT max(id) FROM outbox_events)");
    assert_eq!(conn.execute(&sql, []).unwrap(), 1);
    // The process holds the file: closing another handle on it in the same process would drop its locks.
    std::mem::forget(conn);
}

#[tokio::test]
async fn odd_rows_stop_nobody() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let relay = world.relay(&[&taker]);
    let readable = [
        (", tenant_id", ", 'nobody'"),
        (", created_at", ", 9223372036854775807"),
        (", created_at", ", -9223372036854775808"),
        (", occurred_at", ", 9223372036854775807"),
        (", occurred_at", ", -9223372036854775808"),
        (", next_attempt_at", ", 9223372036854775807"),
        (", next_attempt_at", ", -9223372036854775808"),
        (", attempts", ", 9223372036854775807"),
        (", last_error", ", CAST(x'e9' AS TEXT)"),
        (", acceptances", ", '{\"else\":[1e999]}'"),
        (", schema_version", ", 9223372036854775807"),
        (", id", ", -5"),
    ];
    for (columns, values) in readable {
        insert(&world, columns, values).await;
    }
    insert(&world, "", "").await;
    change_unchecked(&world, "event_id = '', aggregate_type = char(0), aggregate_id = '.' || char(10)");
    let unreadable = [
        "tenant_id = 'Nobody At All'",
        "tenant_id = CAST(x'e9' AS TEXT)",
        "event_id = CAST(x'e9' AS TEXT)",
        "type = CAST(x'6f00e9' AS TEXT)",
        "type = 'order' || char(0) || '<b>'",
        "payload = CAST(x'7b2261223a22e9227d' AS TEXT)",
        "payload = '{}' || char(0) || ']'",
        "payload = '{not json'",
        "payload = '[]'",
        "aggregate_id = CAST(x'ff' AS TEXT)",
        "acceptances = '{{', tenant_id = ''",
    ];
    for set in unreadable {
        insert(&world, "", "").await;
        change_unchecked(&world, set);
    }
    world.fill(2).await;
    let report = pass(&relay).await;
    assert_eq!(report.published, readable.len() as u64 + 1 + 2);
    assert_eq!((report.retried, report.failed, report.stuck), (unreadable.len() as u64, 0, 0));
    let errors = world.column("SELECT last_error FROM outbox_events WHERE published_at IS NULL ORDER BY id").await;
    let codes = [
        "tenant", "encoding", "encoding", "encoding", "type", "encoding", "data", "data", "data", "encoding", "tenant",
    ];
    assert_eq!(errors, codes.map(|code| format!("relay: {code}")));
    let years: Vec<i64> = taker.events().iter().map(|event| event.occurred_at / (365 * DAY)).collect();
    assert!(years.iter().all(|year| (-2000..8100).contains(year)), "a time can be said in RFC 3339: {years:?}");
    for _ in 0..9 {
        world.advance(HOUR);
        pass(&relay).await;
    }
    assert_eq!(
        world.column("SELECT CAST(id AS TEXT) FROM outbox_events WHERE failed_at IS NOT NULL").await.len(),
        unreadable.len()
    );
}

#[tokio::test]
async fn odd_rows_can_be_looked_at() {
    let world = World::new().await;
    insert(&world, ", tenant_id, created_at, last_error", ", 'acme', 9223372036854775807, CAST(x'e9' AS TEXT)").await;
    insert(&world, ", tenant_id", ", 'acme'").await;
    change_unchecked(&world, "payload = '{not json', event_id = CAST(x'e9' AS TEXT)");
    insert(&world, ", tenant_id", ", 'acme'").await;
    change_unchecked(&world, "acceptances = 'x', payload = 'y'");
    let mut seen = Vec::new();
    for status in [None, Some(EventStatus::Pending)] {
        let (mut after, mut more) = (None, true);
        while more {
            let filter = EventFilter { status, event_type: None };
            let look = move |tx: &Tx<'_>| events(tx, &acme(), &filter, after.as_ref(), 1);
            let page = world.db.read(look).await.unwrap();
            seen.extend(page.items.iter().map(|event| serde_json::to_string(event).unwrap()));
            more = page.next.is_some();
            // As it goes to a client and comes back.
            after = page.next.map(|next| Cursor::parse(&next.to_string()).unwrap());
        }
    }
    let found = world.db.read(|tx| find(tx, &acme(), "odd-2")).await.unwrap();
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert_eq!(found.unwrap().data.get(), "null");
}

#[tokio::test]
async fn a_row_that_cannot_be_changed_is_left_alone_and_its_consumers_work_taken_back() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    world
        .run(
            "CREATE TRIGGER mine BEFORE UPDATE ON outbox_events WHEN OLD.id = 1 BEGIN SELECT RAISE(ABORT, 'mine'); END",
        )
        .await;
    world
        .run("CREATE TRIGGER quiet BEFORE UPDATE ON outbox_events WHEN OLD.id = 2 BEGIN SELECT RAISE(IGNORE); END")
        .await;
    for actors in [&[&inside][..], &[&inside, &outside]] {
        let relay = world.relay(actors);
        world.fill(2).await;
        let report = pass(&relay).await;
        assert_eq!(report.stuck, 2);
        assert_eq!(report.next, Some(world.clock.now() + 5 * MINUTE));
        let again = pass(&relay).await;
        assert_eq!((again.stuck, again.published), (0, 0), "they are left alone");
        world.advance(5 * MINUTE);
        assert_eq!(pass(&relay).await.stuck, 2);
    }
    assert_eq!(world.column("SELECT DISTINCT CAST(event AS TEXT) FROM seen ORDER BY event").await, ["3", "4"]);
    assert_eq!(world.published().await, 2);
    world.run("DROP TRIGGER mine").await;
    world.run("DROP TRIGGER quiet").await;
    inside.be(Mood::Takes);
    assert_eq!(pass(&world.relay(&[&inside])).await.published, 2);
    assert_eq!(world.column("SELECT CAST(count(*) AS TEXT) FROM seen").await, ["4"]);
}

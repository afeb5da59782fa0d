//! Events that other programs insert with plain SQL are relayed and delivered as if they had been posted.

use std::process::Command;

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::tempting;
use crate::harness::{text, until};

/// Runs SQL in Debian's shell, if it is installed; else on a connection of our own.
fn elsewhere(dev: &Dev, sql: &str) -> bool {
    let file = dev.place.data().join("pillarbox.db");
    match Command::new("sqlite3").args(["-batch", "-bail", "-cmd", ".timeout 20000", text(&file), sql]).output() {
        Ok(done) => done.status.success(),
        Err(_) => dev.writer().execute_batch(sql).is_ok(),
    }
}

fn insert(id: &str, payload: &str) -> String {
    let payload = payload.replace('\'', "''");
    format!(
        "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
         VALUES ('{id}', 'order.paid', 'order', '7', '{payload}');"
    )
}

#[test]
fn an_event_that_the_sqlite3_shell_inserts_is_delivered_byte_for_byte() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let events: Vec<(String, &str)> = tempting()
        .iter()
        .enumerate()
        .map(|(number, data)| (format!("0192f3a4-0000-7000-8000-{number:012}"), *data))
        .collect();
    let inserts: String = events.iter().map(|(id, data)| insert(id, data)).collect();
    assert!(elsewhere(&dev, &format!("CREATE TABLE shop (n); BEGIN; INSERT INTO shop VALUES (1); {inserts} COMMIT;")));
    for (id, data) in &events {
        let came = until("it arrives", || receiver.came().into_iter().find(|came| came.id() == id));
        assert!(came.text().ends_with(&format!(r#","data":{data}}}"#)), "{} for {data}", came.text());
        assert!(came.is_signed_by(&endpoint.secret), "{came:?}");
        dev.api.until_delivery(&endpoint, id, "delivered");
        // Not every JSON library can read what was inserted; it is shown as it is all the same.
        let shown = dev.api.get(&format!("/v1/events/{id}"));
        assert!(shown.status == 200 && shown.body.ends_with(&format!(r#","data":{data}}}"#)), "{}", shown.body);
    }
    assert!(!elsewhere(&dev, &insert(&events[0].0, "{}")), "an id counts once, whoever uses it");
    let taken_back = "0192f3a4-0000-7000-8000-999999999999";
    assert!(elsewhere(&dev, &format!("BEGIN; {} ROLLBACK;", insert(taken_back, "{}"))));
    let marker = dev.api.post_event("order.paid", "{}");
    dev.api.until_delivery(&endpoint, &marker, "delivered");
    assert!(receiver.came().iter().all(|came| came.id() != taken_back));
    assert_eq!(receiver.count(), events.len() + 1);
}

#[test]
fn an_insert_is_noticed_within_a_moment_and_without_anything_else_happening() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    dev.api.subscribe(&receiver.url("/"));
    let mut took_ms = Vec::new();
    for number in 0..5 {
        dev.writer().execute_batch(&insert(&format!("0192f3a4-0000-7000-8000-{number:012}"), "{}")).unwrap();
        let committed = std::time::Instant::now();
        until("it arrives", || (receiver.count() == number + 1).then_some(()));
        took_ms.push(committed.elapsed().as_millis());
    }
    took_ms.sort_unstable();
    // The jobs' own sweep is every five seconds; a busy machine may lose a second now and then.
    assert!(took_ms[2] < 3_000, "{took_ms:?}");
}

#[test]
fn a_row_that_cannot_be_sent_fails_by_itself_and_holds_up_nobody() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let conn = dev.writer();
    // An id that may not stand in a header or would confuse what is signed, and texts that are none.
    conn.execute_batch(
        "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload) VALUES
           ('with.dot', 'order.paid', 'a', '1', '{}'),
           ('with' || char(10) || 'line', 'order.paid', 'a', '1', '{}'),
           ('', 'order.paid', 'a', '1', '{}'),
           (CAST(x'e9' AS TEXT), 'order.paid', 'a', '1', '{}'),
           ('bad-payload', 'order.paid', 'a', '1', CAST(x'7b2261223a22e9227d' AS TEXT)),
           ('of-nobody', 'order.paid', 'a', '1', '{}');
         UPDATE outbox_events SET tenant_id = 'nobody' WHERE event_id = 'of-nobody'",
    )
    .unwrap();
    let good = dev.api.post_event("order.paid", "{}");
    dev.api.until_delivery(&endpoint, &good, "delivered");
    let open = "SELECT count(*) FROM outbox_events WHERE published_at IS NULL AND attempts = 0 AND last_error IS NULL";
    until("each has been looked at", || (value::<i64>(&conn, open, []) == 0).then_some(()));
    assert_eq!(receiver.count(), 1, "{:?}", receiver.came());
    let codes: Vec<String> = column(&conn, "SELECT last_error FROM outbox_events WHERE attempts > 0", []);
    assert!(codes.iter().all(|code| !code.contains("with")), "a short code, no text of the event: {codes:?}");
    assert!(dev.command(&["events", "list"]).status.success(), "they can be listed");
    assert_eq!(dev.api.get("/v1/events?status=pending").status, 200);
}

#[test]
fn an_event_of_another_tenant_is_for_its_own_endpoints_only() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let made = dev.command(&["tenants", "create", "acme"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let conn = dev.writer();
    let id = "0192f3a4-0000-7000-8000-000000000001";
    // The same id may be used by both.
    for tenant in ["acme", "default"] {
        let sql = "INSERT INTO outbox_events (tenant_id, event_id, type, aggregate_type, aggregate_id, payload)
                   VALUES (?1, ?2, 'order.paid', 'a', '1', json_object('of', ?1))";
        conn.execute(sql, [tenant, id]).unwrap();
    }
    dev.api.until_delivery(&endpoint, id, "delivered");
    let open = "SELECT count(*) FROM outbox_events WHERE published_at IS NULL";
    until("both are published", || (value::<i64>(&conn, open, []) == 0).then_some(()));
    let came = receiver.came();
    assert!(came.len() == 1 && came[0].text().contains(r#""tenant":"default""#), "{came:?}");
}

//! Pages of every list: complete, without repeats, also while rows come; and what is no page.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{World, event};
use crate::tenants::Role;

fn ids(rows: &[Value], name: &str) -> Vec<String> {
    rows.iter().map(|row| row[name].as_str().unwrap().to_owned()).collect()
}

/// Reads a list two rows at a time, and has `meanwhile` done between the pages. The rows that were there before have to
/// come exactly once, and nothing twice.
async fn assert_complete(world: &World, key: &str, (path, name): (&str, &str), meanwhile: impl AsyncFn(usize)) {
    let before: BTreeSet<_> = ids(&world.list(key, path, 200).await, name).into_iter().collect();
    assert!(before.len() >= 5, "{path} has too few rows for a test: {before:?}");
    let (mut seen, mut after) = (vec![], String::new());
    for turn in 0.. {
        let page = world.server.ask(key, "GET", &format!("{path}?limit=2{after}"), None).await.json();
        seen.extend(ids(page["items"].as_array().unwrap(), name));
        meanwhile(turn).await;
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    let distinct: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(distinct.len(), seen.len(), "{path} repeats rows: {seen:?}");
    assert!(before.is_subset(&distinct), "{path} misses {:?}", before.difference(&distinct));
}

#[tokio::test]
async fn lists_are_complete_and_repeat_nothing_while_rows_come() {
    let world = World::start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let other = world.server.key("other", Role::Admin).await;
    for key in [&key, &other] {
        world.endpoint(key).await;
        for _ in 0..4 {
            world.endpoint(key).await;
            world.post(key).await;
        }
        world.post(key).await;
        world.relay().await;
    }
    let more = async |turn: usize| {
        if turn < 3 {
            world.post(&key).await;
            world.post(&other).await;
            world.relay().await;
            world.endpoint(&key).await;
        }
    };
    assert_complete(&world, &key, ("/v1/events", "event_id"), more).await;
    assert_complete(&world, &key, ("/v1/deliveries", "id"), more).await;
    assert_complete(&world, &key, ("/v1/endpoints", "id"), more).await;
}

#[tokio::test]
async fn a_list_is_ordered_and_a_page_ends_where_the_next_begins() {
    let world = World::start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let mut endpoints = vec![];
    for _ in 0..3 {
        endpoints.push(world.endpoint(&key).await);
    }
    let mut posted = vec![];
    for _ in 0..5 {
        posted.push(world.post(&key).await);
        world.server.advance(1);
    }
    world.relay().await;
    for limit in [1, 2, 3, 5, 200] {
        assert_eq!(ids(&world.list(&key, "/v1/endpoints", limit).await, "id"), endpoints, "as they were made");
        let listed = world.list(&key, "/v1/events", limit).await;
        assert_eq!(ids(&listed, "event_id"), posted.iter().rev().cloned().collect::<Vec<_>>(), "the newest first");
        let deliveries = world.list(&key, "/v1/deliveries", limit).await;
        assert_eq!(deliveries.len(), 15);
        let made = ids(&deliveries, "event_id");
        let expected: Vec<_> = posted.iter().rev().flat_map(|id| [id.clone(), id.clone(), id.clone()]).collect();
        assert_eq!(made, expected, "the newest first");
    }
}

#[tokio::test]
async fn filters_choose_and_stay_with_their_pages() {
    let world = World::start().await;
    let key = world.server.key("acme", Role::Admin).await;
    let (first, _second) = (world.endpoint(&key).await, world.endpoint(&key).await);
    for n in 0..6 {
        let mut body = event();
        body["type"] = json!(if n % 2 == 0 { "order.paid" } else { "order.sent" });
        assert_eq!(world.server.ask(&key, "POST", "/v1/events", Some(&body)).await.status, 202);
        world.relay().await;
        world.server.advance(60);
    }
    let count = async |query: &str| world.list(&key, &format!("/v1/deliveries?{query}"), 2).await.len();
    assert_eq!(count("").await, 12);
    assert_eq!(count(&format!("endpoint_id={first}")).await, 6);
    assert_eq!(count("event_type=order.sent").await, 6);
    assert_eq!(count(&format!("endpoint_id={first}&event_type=order.sent&status=pending")).await, 3);
    assert_eq!(count("status=delivered").await, 0);
    assert_eq!(count("since=2027-01-15T08:02:00Z").await, 8);
    assert_eq!(count("until=2027-01-15T08:02:00Z").await, 4);
    assert_eq!(count("since=2027-01-15T11:01:00%2B03:00&until=2027-01-15T08:02:00Z").await, 2);
    assert_eq!(count("since=2030-01-01T00:00:00Z").await, 0);
    let events = async |query: &str| world.list(&key, &format!("/v1/events?{query}"), 2).await.len();
    assert_eq!(events("type=order.sent").await, 3);
    assert_eq!(events("status=published").await, 6);
    assert_eq!(events("status=published&type=order.paid").await, 3);
    assert_eq!(events("status=pending").await, 0);
    assert_eq!(events("status=failed").await, 0);
    assert_eq!(events("type=none").await, 0);
}

#[tokio::test]
async fn what_is_no_page_or_filter_is_a_400_that_names_it() {
    let world = World::start().await;
    let own = world.furnish("acme").await;
    world.post(&own.key).await;
    world.endpoint(&own.key).await;
    let attempts = format!("/v1/deliveries/{}/attempts", own.ids["delivery_id"]);
    let lists = ["/v1/events", "/v1/endpoints", "/v1/deliveries", attempts.as_str()];
    let cursor = |page: Value| page["next"].as_str().map(str::to_owned);
    let next = cursor(world.server.ask(&own.key, "GET", "/v1/endpoints?limit=1", None).await.json()).unwrap();
    for path in lists {
        let bad = |query: String, field: &'static str| (query, field);
        let mut table: Vec<(String, &str)> = vec![];
        for limit in ["", "0", "201", "-1", "+1", "1.5", "x", "99999999999999999999"] {
            table.push(bad(format!("limit={limit}"), "limit"));
        }
        for after in ["", "x", "1", "%00", "ZTE", "' OR 1=1", "AAAAAAAA"] {
            table.push(bad(format!("after={}", after.replace(' ', "%20")), "after"));
        }
        table.push(bad("page=2".to_owned(), "page"));
        table.push(bad("limit=1&limit=1".to_owned(), "limit"));
        table.push(bad("Limit=1".to_owned(), "Limit"));
        if path != "/v1/endpoints" {
            table.push(bad(format!("after={next}"), "after"));
        }
        for (query, field) in table {
            let refused = world.server.ask(&own.key, "GET", &format!("{path}?{query}"), None).await;
            assert_eq!(refused.problem(400, "invalid_query"), [field], "{path} {query}");
        }
    }
    for (path, field, value) in [
        ("/v1/events", "status", "Pending"),
        ("/v1/events", "status", ""),
        ("/v1/deliveries", "status", "waiting"),
        ("/v1/deliveries", "since", "yesterday"),
        ("/v1/deliveries", "until", "2027-01-15"),
        ("/v1/deliveries", "since", "1800000000"),
        ("/v1/deliveries", "type", "order.paid"),
        ("/v1/events", "event_type", "order.paid"),
    ] {
        let refused = world.server.ask(&own.key, "GET", &format!("{path}?{field}={value}"), None).await;
        assert_eq!(refused.problem(400, "invalid_query"), [field], "{path} {value}");
    }
    for (method, path) in [("GET", format!("/v1/events/{}", own.ids["event_id"])), ("POST", "/v1/events".to_owned())] {
        let refused = world.server.ask(&own.key, method, &format!("{path}?dry_run=1"), None).await;
        assert_eq!(refused.problem(400, "invalid_query"), ["dry_run"]);
    }
}

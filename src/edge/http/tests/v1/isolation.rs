//! What is another tenant's looks like what never was. The routes come from the document, so that a new one cannot be
//! forgotten: this test has to be told how to call it, and fails until it is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{JSON, World};
use crate::edge::http::tests::openapi::operations;
use crate::edge::http::tests::{Answer, TestServer};

/// A body that the operation takes; none for one that takes none.
fn body(name: &str) -> Option<Value> {
    match name {
        "update_endpoint" => Some(json!({"description": "another's"})),
        "rotate_endpoint_secret" => Some(json!({"overlap_seconds": 0})),
        "recover_endpoint" | "replay_skipped" => Some(json!({"since": "2020-01-01T00:00:00Z"})),
        "delete_endpoint"
        | "list_delivery_attempts"
        | "resend_delivery"
        | "retry_event"
        | "show_delivery"
        | "show_endpoint"
        | "show_event"
        | "test_endpoint"
        | "list_deliveries" => None,
        _ => panic!("how is {name} called? This test has to know, to look whether it keeps tenants apart"),
    }
}

/// An operation that names something of a tenant's, with its parameters.
struct Naming {
    name: String,
    method: String,
    path: String,
    parameters: Vec<(String, String)>,
}

/// Every operation of the document that takes an id, in its path or as a filter.
async fn operations_that_name(server: &TestServer) -> Vec<Naming> {
    let document = server.document().await;
    // Members are nobody's but the installation's: other tenants are let through to none of them.
    let is_tenants = |path: &str| path.starts_with("/v1/") && !path.starts_with("/v1/members/");
    let own = operations(&document).into_iter().filter(|((path, _), _)| is_tenants(path));
    let naming = own.filter_map(|((path, method), operation)| {
        let all = operation["parameters"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let parameters: Vec<_> = all
            .iter()
            .map(|parameter| (text(&parameter["in"]), text(&parameter["name"])))
            .filter(|(place, name)| place == "path" || name == "id" || name.ends_with("_id"))
            .collect();
        assert_eq!(path.matches('{').count(), parameters.iter().filter(|(place, _)| place == "path").count());
        let name = text(&operation["operationId"]);
        (!parameters.is_empty()).then(|| Naming { name, method: method.to_uppercase(), path, parameters })
    });
    naming.collect()
}

impl Naming {
    /// The address with these ids in it. Every id is by the name of its parameter.
    fn address(&self, ids: &BTreeMap<&str, String>) -> String {
        let mut address = self.path.clone();
        let mut query = String::new();
        for (place, name) in &self.parameters {
            let id =
                ids.get(name.as_str()).unwrap_or_else(|| panic!("what is {name}? This test needs one of each tenant"));
            match place.as_str() {
                "path" => address = address.replace(&format!("{{{name}}}"), id),
                "query" => query = format!("?{name}={id}"),
                _ => panic!("an id in a {place}?"),
            }
        }
        address + &query
    }

    async fn call(&self, server: &TestServer, key: &str, ids: &BTreeMap<&str, String>) -> Answer {
        let body = body(&self.name).map(|body| body.to_string());
        let id: [(&str, &[u8]); 1] = [("X-Request-Id", b"the-same")];
        let more = if body.is_some() || self.method == "GET" { &id[..] } else { &[id[0], JSON][..] };
        server.ask_bytes(key, (&self.method, &self.address(ids)), more, body.as_deref().map(str::as_bytes)).await
    }
}

/// Everything of an answer but its date.
fn compared(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| name != "date").cloned().collect();
    (answer.status, headers, answer.text())
}

#[tokio::test]
async fn what_is_anothers_looks_like_what_never_was() {
    let world = World::start().await;
    let (own, others) = (world.furnish("acme").await, world.furnish("other").await);
    let unknown = BTreeMap::from([
        ("event_id", "0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f".to_owned()),
        ("endpoint_id", "ep_0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f".to_owned()),
        ("delivery_id", "dlv_018bcfe5-6800-7000-8000-00000000ffff".to_owned()),
    ]);
    let before = world.everything().await;
    let naming = operations_that_name(&world.server).await;
    for operation in &naming {
        let theirs = operation.call(&world.server, &own.key, &others.ids).await;
        let nobodys = operation.call(&world.server, &own.key, &unknown).await;
        assert_eq!(compared(&theirs), compared(&nobodys), "{}", operation.name);
        assert_eq!(theirs.status, 404, "{}", operation.name);
    }
    assert_eq!(world.everything().await, before, "nothing of it changed anything");
    // What the owner gets shows that the calls were such as would have done something.
    for operation in naming.iter().filter(|operation| operation.name != "delete_endpoint") {
        let owners = operation.call(&world.server, &others.key, &others.ids).await;
        assert!(![400, 404, 422].contains(&owners.status), "{}: {owners:?}", operation.name);
    }
}

#[tokio::test]
async fn lists_show_ones_own_only() {
    let world = World::start().await;
    let (own, others) = (world.furnish("acme").await, world.furnish("other").await);
    let document = world.server.document().await;
    for ((path, method), operation) in operations(&document) {
        let is_list = operation["operationId"].as_str().unwrap().starts_with("list_");
        if !path.starts_with("/v1/") || method != "get" || !is_list || path.contains('{') {
            continue;
        }
        let listed = world.server.ask(&own.key, "GET", &path, None).await;
        assert!(!listed.json()["items"].as_array().unwrap().is_empty(), "{path}: {listed:?}");
        for id in others.ids.values() {
            assert!(!listed.text().contains(id), "{path} shows {id}");
        }
    }
}

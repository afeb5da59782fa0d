//! The document and the routes: neither has anything that the other does not have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::conformance::resolved;
use super::{SERVICE_KEY, TestServer, wallet};
use crate::edge::http::rest::function_names;
use crate::leads::health::Alert;

/// Addresses of which the document does not speak: they only say that there is nothing, in the shape of their surface.
const NOTHING_THERE: [&str; 2] = ["/rest/v1/rpc/{function}", "/rest/{*path}"];

/// Addresses that ask for no secret: forms post to one, machines look at the others.
const PUBLIC: [&str; 5] = ["/leads", "/livez", "/metrics", "/openapi.json", "/readyz"];

impl TestServer {
    /// The document as anybody gets it.
    pub(super) async fn document(&self) -> Value {
        let answer = self.send("GET", "/openapi.json", &[], b"").await;
        assert_eq!((answer.status, answer.find_header("content-type")), (200, Some("application/json")));
        answer.json()
    }

    /// Every path that the router knows. axum tells them only where it shows itself.
    fn routed_paths(&self) -> BTreeSet<String> {
        let shown = format!("{:?}", self.routes);
        let named = shown.split("RouteId(").filter_map(|part| part.split_once("): \"")?.1.split_once('"'));
        let paths: BTreeSet<String> = named.map(|(path, _)| path.to_owned()).filter(|path| is_ours(path)).collect();
        assert!(paths.contains("/livez"), "the router shows its paths in another way: {shown}");
        paths
    }
}

/// The fallback has two paths of axum's own.
fn is_ours(path: &str) -> bool {
    path != "/" && !path.contains("__private")
}

/// Every operation with its path and method.
pub(super) fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let paths = document["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().unwrap();
        operations.iter().map(move |(method, operation)| ((path.clone(), method.clone()), operation.clone()))
    });
    each.collect()
}

#[tokio::test]
async fn every_route_is_in_the_document_and_the_other_way_round() {
    let server = TestServer::start().await;
    let document = server.document().await;
    assert_eq!(document["openapi"], "3.1.0");
    let documented: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let mut routed = server.routed_paths();
    for path in NOTHING_THERE {
        assert!(routed.remove(path), "{path} is no exception any more");
    }
    assert_eq!(routed, documented);
}

#[tokio::test]
async fn an_operation_has_a_name_of_its_own_and_says_who_may_call_it_and_what_it_answers() {
    let server = TestServer::start().await;
    let document = server.document().await;
    let mut names = BTreeSet::new();
    for (at, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} is the name of two operations");
        assert!(operation["summary"].is_string() && operation["tags"][0].is_string(), "{at:?}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{at:?}");
        for (status, response) in responses {
            let response = resolved(&document, response);
            assert!(response["description"].is_string(), "{at:?} {status}");
            assert!(response["headers"]["X-Request-Id"].is_object(), "{at:?} {status}");
        }
    }
}

#[tokio::test]
async fn every_reference_refers_to_something() {
    fn look(document: &Value, value: &Value) {
        if value["$ref"].is_string() {
            resolved(document, value);
        }
        for member in value.as_object().into_iter().flat_map(|members| members.values()) {
            look(document, member);
        }
        for member in value.as_array().into_iter().flatten() {
            look(document, member);
        }
    }
    let document = TestServer::start().await.document().await;
    look(&document, &document);
}

/// Asserts that the object has the members that the schema of this name gives it, no more and no fewer.
#[track_caller]
fn assert_described(document: &Value, schema: &str, value: &Value) {
    let names = |members: &Value| members.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(value), names(&document["components"]["schemas"][schema]["properties"]), "{schema}");
}

#[tokio::test]
async fn what_the_domain_writes_itself_has_the_members_that_are_described() {
    let server = TestServer::start().await;
    let document = server.document().await;
    server.emit(wallet(1)).await;
    let page = server.get("/bot/events/pending").await.json();
    assert_described(&document, "PendingBotEvents", &page);
    assert_described(&document, "BotEvent", &page["events"][0]);
    let done = server.post("/bot/events/ack", json!({"processedIds": [1]})).await.json();
    assert_described(&document, "AcknowledgedBotEvents", &done);
    let health = server.send("GET", "/v1/leads/health", &[("apikey", SERVICE_KEY.as_bytes())], b"").await.json();
    assert_described(&document, "LeadsHealth", &health);
    assert_described(&document, "LeadsQueue", &health["pending"]);
}

#[tokio::test]
async fn every_alert_of_the_leads_is_described() {
    let document = TestServer::start().await.document().await;
    let all = [Alert::StaleSending, Alert::FailedPresent, Alert::FailedCritical, Alert::PendingBacklog];
    assert_eq!(document["components"]["schemas"]["LeadsAlert"]["enum"], json!(all));
}

#[tokio::test]
async fn every_function_that_can_be_called_is_described() {
    let document = TestServer::start().await.document().await;
    let paths = document["paths"].as_object().unwrap().keys();
    let described: BTreeSet<&str> = paths.filter_map(|path| path.strip_prefix("/rest/v1/rpc/")).collect();
    assert_eq!(described, function_names().collect());
}

#[tokio::test]
async fn a_parameter_is_there_or_not_and_never_null() {
    let document = TestServer::start().await.document().await;
    let mut seen = 0;
    for (at, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["schema"]["type"].is_string(), "{at:?} {parameter}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// An operation that names no secret asks for none, and the other way round.
#[tokio::test]
async fn every_operation_but_the_public_ones_refuses_whoever_has_no_secret() {
    let server = TestServer::start().await;
    let document = server.document().await;
    for ((path, method), operation) in operations(&document) {
        let answer = server.send(&method.to_uppercase(), &path, &[], b"").await;
        let is_public = operation["security"].is_null();
        assert_eq!(is_public, PUBLIC.contains(&path.as_str()), "{method} {path}");
        // Without webhook mode there is nothing at Telegram's address, whoever asks.
        let refused = if path == "/telegram/webhook" { 404 } else { 401 };
        assert_eq!(answer.status == refused, !is_public, "{method} {path}: {answer:?}");
        let documented = operation["responses"].as_object().unwrap();
        assert!(documented.contains_key(&answer.status.to_string()), "{method} {path}: {answer:?}");
    }
}

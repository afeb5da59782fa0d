//! Endpoints and their secrets.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::JSON;
use crate::edge::http::tests::{Setup, TestServer};
use crate::kernel::tenant::TenantId;
use crate::tenants::Role;
use crate::webhooks::resolve::{Line, Script};
use crate::webhooks::{self, Egress, EgressPolicy, NewEndpoint, Resolver, Vault};

const PATH: &str = "/v1/endpoints";
/// 32 bytes.
const OWN_SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

fn new() -> Value {
    json!({"url": "https://hooks.example.com/in?a=b"})
}

fn new_with(field: &str, value: Value) -> Value {
    let mut body = new();
    body[field] = value;
    body
}

async fn create(server: &TestServer, key: &str, body: &Value) -> Value {
    let made = server.ask(key, "POST", PATH, Some(body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()
}

fn address(endpoint: &Value) -> String {
    format!("{PATH}/{}", endpoint["id"].as_str().unwrap())
}

#[tokio::test]
async fn an_endpoint_shows_its_secret_when_it_is_made_and_never_again() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let asked = json!({
        "url": "https://Hooks.Example.com:443/in?a=b", "description": "Orders", "event_types": ["order.*", "lead.received"],
        "rate_per_second": 5, "secret": OWN_SECRET,
    });
    let mut made = create(&server, &key, &asked).await;
    assert_eq!(made["secret"], OWN_SECRET);
    let expected = json!({
        "id": made["id"], "url": "https://hooks.example.com/in?a=b", "description": "Orders",
        "event_types": ["order.*", "lead.received"], "rate_per_second": 5, "status": "active", "disabled_reason": null,
        "held_until": null, "failing_since": null, "secret_last_four": "ZWY=",
        "created_at": "2027-01-15T08:00:00.000Z", "updated_at": "2027-01-15T08:00:00.000Z",
    });
    made.as_object_mut().unwrap().remove("secret");
    assert_eq!(made, expected);
    let shown = server.ask(&key, "GET", &address(&made), None).await;
    assert_eq!((shown.status, shown.json()), (200, expected.clone()));
    let listed = server.ask(&key, "GET", PATH, None).await;
    assert_eq!(listed.json(), json!({"items": [expected], "next": null}));
    let plain = create(&server, &key, &new()).await;
    let secret = plain["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    assert!(secret.ends_with(plain["secret_last_four"].as_str().unwrap()));
    assert_eq!(
        (&plain["event_types"], &plain["rate_per_second"], &plain["description"]),
        (&json!(null), &json!(null), &json!(""))
    );
}

#[tokio::test]
async fn a_change_changes_what_it_names_and_null_is_a_value() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let mut body = new_with("event_types", json!(["order.paid"]));
    body["rate_per_second"] = json!(5.0);
    body["description"] = json!("Orders");
    let made = create(&server, &key, &body).await;
    let at = address(&made);
    let change = async |body: Value| {
        let changed = server.ask(&key, "PATCH", &at, Some(&body)).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        changed.json()
    };
    server.advance(60);
    let same = change(json!({})).await;
    assert_eq!(
        (&same["event_types"], &same["rate_per_second"], &same["description"]),
        (&json!(["order.paid"]), &json!(5), &json!("Orders"))
    );
    let paused = change(json!({"status": "paused", "url": "https://other.example.com/"})).await;
    assert_eq!((&paused["status"], &paused["url"]), (&json!("paused"), &json!("https://other.example.com/")));
    assert_eq!(paused["updated_at"], "2027-01-15T08:01:00.000Z");
    let cleared = change(json!({"event_types": null, "rate_per_second": null, "description": null})).await;
    assert_eq!(
        (&cleared["event_types"], &cleared["rate_per_second"], &cleared["description"]),
        (&json!(null), &json!(null), &json!(""))
    );
    assert_eq!(change(json!({"status": "active"})).await["status"], "active");
    assert_eq!(server.ask(&key, "GET", &at, None).await.json()["url"], "https://other.example.com/");
}

#[tokio::test]
async fn a_removed_endpoint_is_one_that_never_was() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let made = create(&server, &key, &new()).await;
    let gone = server.ask(&key, "DELETE", &address(&made), None).await;
    assert_eq!((gone.status, gone.text().as_str()), (204, ""));
    for method in ["GET", "DELETE"] {
        server.ask(&key, method, &address(&made), None).await.problem(404, "not_found");
    }
    server.ask(&key, "PATCH", &address(&made), Some(&json!({}))).await.problem(404, "not_found");
    assert_eq!(server.ask(&key, "GET", PATH, None).await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_secret_is_replaced_and_the_old_one_signs_for_a_while() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let made = create(&server, &key, &new()).await;
    let at = format!("{}/rotate-secret", address(&made));
    let rotate = async |body: Option<Value>| {
        let rotated = server.ask(&key, "POST", &at, body.as_ref()).await;
        assert_eq!(rotated.status, 200, "{rotated:?}");
        rotated.json()
    };
    let mut seen = BTreeSet::from([made["secret"].as_str().unwrap().to_owned()]);
    for (body, until) in [
        (None, json!("2027-01-16T08:00:00.000Z")),
        (Some(json!({})), json!("2027-01-16T08:00:00.000Z")),
        (Some(json!({"overlap_seconds": 604_800})), json!("2027-01-22T08:00:00.000Z")),
        (Some(json!({"overlap_seconds": 0})), json!(null)),
    ] {
        let rotated = rotate(body).await;
        assert_eq!(rotated["previous_valid_until"], until);
        assert!(seen.insert(rotated["secret"].as_str().unwrap().to_owned()));
    }
    assert_eq!(rotate(Some(json!({"secret": OWN_SECRET}))).await["secret"], OWN_SECRET);
    let shown = server.ask(&key, "GET", &address(&made), None).await;
    assert_eq!(shown.json()["secret_last_four"], "ZWY=");
    for (field, value) in [
        ("overlap_seconds", json!(-1)),
        ("overlap_seconds", json!(604_801)),
        ("overlap_seconds", json!("1")),
        ("secret", json!("whsec_c2hvcnQ=")),
        ("secret", json!(5)),
        ("more", json!(1)),
    ] {
        let refused = server.ask(&key, "POST", &at, Some(&json!({field: value}))).await;
        assert_eq!(refused.problem(422, "invalid_body"), [field], "{value}");
    }
}

#[tokio::test]
async fn a_tenant_has_at_most_fifty_endpoints() {
    let server = TestServer::start().await;
    let (acme, other) = (server.key("acme", Role::Admin).await, server.key("other", Role::Admin).await);
    let mut last = json!(null);
    for _ in 0..50 {
        last = create(&server, &acme, &new()).await;
    }
    server.ask(&acme, "POST", PATH, Some(&new())).await.problem(409, "endpoint_limit");
    create(&server, &other, &new()).await;
    server.ask(&acme, "DELETE", &address(&last), None).await;
    create(&server, &acme, &new()).await;
}

#[tokio::test]
async fn a_url_that_no_webhook_may_go_to_is_refused_with_its_rule() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let made = create(&server, &key, &new()).await;
    for (url, rule) in [
        ("http://hooks.example.com/", "https_only"),
        ("ftp://hooks.example.com/", "https_only"),
        ("hooks.example.com", "not_a_url"),
        ("", "not_a_url"),
        ("https://user:pass@hooks.example.com/", "user_info"),
        ("https://hooks.example.com/#a", "fragment"),
        ("https://hooks.example.com:8443/", "port_not_allowed"),
        ("https://127.0.0.1/", "not_public"),
        ("https://[::1]/", "not_public"),
        ("https://0x7f.1/", "not_public"),
        ("https://169.254.169.254/latest", "not_public"),
        ("https://localhost/", "not_public"),
        (&format!("https://hooks.example.com/{}", "x".repeat(2048)), "url_too_long"),
    ] {
        let refusals = [
            server.ask(&key, "POST", PATH, Some(&json!({ "url": url }))).await,
            server.ask(&key, "PATCH", &address(&made), Some(&json!({ "url": url }))).await,
        ];
        for refused in refusals {
            assert_eq!(refused.problem(422, "invalid_url"), ["url"], "{url}");
            let detail = refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with(&format!("{rule}: ")), "{url}: {detail}");
            assert!(!refused.text().contains("user:pass") && !refused.text().contains("127.0.0.1"), "{refused:?}");
        }
    }
    assert_eq!(server.ask(&key, "GET", &address(&made), None).await.json()["url"], made["url"]);
}

#[tokio::test]
async fn an_endpoint_of_another_form_names_its_fault() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let made = create(&server, &key, &new()).await;
    let mut table: Vec<(&str, Value, bool)> = vec![];
    table.extend([json!(null), json!(5), json!({}), json!([])].map(|value| ("url", value, true)));
    table.extend(
        [json!(5), json!("x".repeat(501)), json!("a\u{0}b"), json!([])].map(|value| ("description", value, true)),
    );
    let types = [
        json!([]),
        json!(["*"]),
        json!([""]),
        json!(["A"]),
        json!(["a b"]),
        json!("order.paid"),
        json!({}),
        json!(vec!["a"; 101]),
    ];
    table.extend(types.map(|value| ("event_types", value, true)));
    let rates = [json!(0), json!(1001), json!(-1), json!(1.5), json!("5"), json!(u64::MAX), json!([])];
    table.extend(rates.map(|value| ("rate_per_second", value, true)));
    let secrets = [json!(""), json!("whsec_"), json!("whsec_!!!!"), json!("whsec_c2hvcnQ="), json!(5), json!([])];
    table.extend(secrets.map(|value| ("secret", value, false)));
    for (field, value, is_change) in &table {
        let refused = server.ask(&key, "POST", PATH, Some(&new_with(field, value.clone()))).await;
        assert_eq!(refused.problem(422, "invalid_body"), [*field], "{field} {value}");
        if *is_change {
            let refused = server.ask(&key, "PATCH", &address(&made), Some(&json!({*field: value}))).await;
            assert_eq!(refused.problem(422, "invalid_body"), [*field], "{field} {value}");
        }
    }
    for status in [json!("disabled"), json!("Active"), json!(null), json!(1), json!("")] {
        let refused = server.ask(&key, "PATCH", &address(&made), Some(&json!({"status": status}))).await;
        assert_eq!(refused.problem(422, "invalid_body"), ["status"], "{status}");
    }
    for field in ["id", "status", "disabled_reason", "created_at", "tenant"] {
        let refused = server.ask(&key, "POST", PATH, Some(&new_with(field, json!("x")))).await;
        assert_eq!(refused.problem(422, "invalid_body"), [field]);
    }
    for field in ["id", "secret", "disabled_reason"] {
        let refused = server.ask(&key, "PATCH", &address(&made), Some(&json!({field: "x"}))).await;
        assert_eq!(refused.problem(422, "invalid_body"), [field]);
    }
    let refused = server.ask(&key, "POST", PATH, Some(&json!({}))).await;
    assert_eq!(refused.problem(422, "invalid_body"), ["url"]);
    let listed = server.ask(&key, "GET", PATH, None).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "nothing of all this was stored");
}

#[tokio::test]
async fn an_unknown_endpoint_is_a_404_whatever_its_id_is() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    for id in ["ep_0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f", "x", "%ff", "%00", "..%2f..", "' OR 1=1 --"] {
        let at = format!("{PATH}/{}", id.replace(' ', "%20"));
        for (method, path) in [("GET", at.clone()), ("DELETE", at.clone()), ("POST", format!("{at}/rotate-secret"))] {
            server.ask(&key, method, &path, None).await.problem(404, "not_found");
        }
        server.ask(&key, "PATCH", &at, Some(&json!({}))).await.problem(404, "not_found");
    }
    server.ask_bytes(&key, ("PATCH", "/v1/endpoints/x"), &[JSON], Some(b"{")).await;
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_when_it_is_written() {
    let script = Arc::new(Script::default());
    script.will("hooks.example.com", Line::Addresses(vec!["203.0.114.7".parse().unwrap()]));
    script.will("inside.example.com", Line::Addresses(vec!["10.0.0.1".parse().unwrap()]));
    let setup = Setup { resolver: Resolver::Scripted(Arc::clone(&script)), ..Setup::default() };
    let server = TestServer::with(setup).await;
    let key = server.key("acme", Role::Admin).await;
    let inside = json!("https://inside.example.com/in");
    server.ask(&key, "POST", PATH, Some(&new_with("url", inside.clone()))).await.problem(422, "invalid_url");
    let made = create(&server, &key, &new()).await;
    server.ask(&key, "PATCH", &address(&made), Some(&json!({"url": inside}))).await.problem(422, "invalid_url");
    assert_eq!(server.ask(&key, "GET", &address(&made), None).await.json()["url"], made["url"]);
}

#[tokio::test]
async fn a_full_disk_keeps_nobody_from_stopping_an_endpoint() {
    let server = TestServer::with(Setup { min_free: u64::MAX / 2, ..Setup::default() }).await;
    let key = server.key("acme", Role::Admin).await;
    server.ask(&key, "POST", PATH, Some(&new())).await.problem(503, "disk_low");
    let (vault, egress) = (Vault::at(server.db.dir()), Egress::new(EgressPolicy::default()));
    let wanted = NewEndpoint { url: "https://hooks.example.com/in".to_owned(), ..NewEndpoint::default() };
    let acme = TenantId::parse("acme").unwrap();
    server.db.settle(move |tx| webhooks::create(tx, &acme, &wanted, &vault, &egress)).await.unwrap();
    let made = server.ask(&key, "GET", PATH, None).await.json()["items"][0].clone();
    let paused = json!({"status": "paused"});
    server.ask(&key, "PATCH", &address(&made), Some(&json!({"description": "x"}))).await.problem(503, "disk_low");
    assert_eq!(server.ask(&key, "PATCH", &address(&made), Some(&paused)).await.json()["status"], "paused");
    assert_eq!(server.ask(&key, "DELETE", &address(&made), None).await.status, 204);
}

#[tokio::test]
async fn without_a_key_for_secrets_endpoints_are_unavailable_and_nothing_is_stored() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Admin).await;
    let file = server.db.dir().join("webhooks.key");
    std::fs::write(&file, "damaged").unwrap();
    let refused = server.ask(&key, "POST", PATH, Some(&new())).await;
    refused.problem(503, "secrets_unavailable");
    assert!(refused.find_header("retry-after").is_some() && !refused.text().contains("webhooks.key"), "{refused:?}");
    assert_eq!(server.ask(&key, "GET", PATH, None).await.json()["items"], json!([]));
    std::fs::remove_file(&file).unwrap();
    create(&server, &key, &new()).await;
}

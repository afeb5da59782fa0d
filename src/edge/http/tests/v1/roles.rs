//! Who may call what: every role on every route of the document, and strangers.

use std::collections::{BTreeMap, BTreeSet};

use super::JSON;
use crate::edge::http::tests::openapi::operations;
use crate::edge::http::tests::{Answer, SECRET, SERVICE_KEY, TestServer};
use crate::kernel::tenant::TenantId;
use crate::tenants::{Role, keys, revoke_key};

/// Every operation of `/v1` and who of a tenant may call it: a, p, r for the roles; nobody, where it is the
/// installation's.
const MAY: [(&str, &str); 21] = [
    ("create_endpoint", "a"),
    ("delete_endpoint", "a"),
    ("list_deliveries", "ar"),
    ("list_delivery_attempts", "ar"),
    ("list_endpoints", "ar"),
    ("list_events", "ar"),
    ("post_event", "ap"),
    ("post_events", "ap"),
    ("put_member", ""),
    ("recover_endpoint", "a"),
    ("redeem_connect_link", ""),
    ("replay_skipped", "a"),
    ("resend_delivery", "a"),
    ("retry_event", "a"),
    ("rotate_endpoint_secret", "a"),
    ("show_delivery", "ar"),
    ("show_endpoint", "ar"),
    ("show_event", "ar"),
    ("show_member", ""),
    ("test_endpoint", "a"),
    ("update_endpoint", "a"),
];

const NAMES: [(char, Role); 3] = [('a', Role::Admin), ('p', Role::Publish), ('r', Role::Read)];

/// Every operation of `/v1` that belongs to tenants: its name, method, and a path that names nothing.
async fn calls(server: &TestServer) -> BTreeMap<String, (String, String)> {
    let document = server.document().await;
    let own = operations(&document).into_iter().filter(|((path, _), _)| path.starts_with("/v1/"));
    let own = own.filter(|((path, _), _)| !path.starts_with("/v1/leads/"));
    let named = own.map(|((path, method), operation)| {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert_eq!(operation["security"], serde_json::json!([{"api_key": []}]), "{name}");
        let steps: Vec<_> = path.split('/').map(|step| if step.starts_with('{') { "x" } else { step }).collect();
        (name, (method.to_uppercase(), steps.join("/")))
    });
    named.collect()
}

#[tokio::test]
async fn every_role_may_call_what_the_table_says_and_nothing_else() {
    let server = TestServer::start().await;
    let table = BTreeMap::from(MAY);
    let calls = calls(&server).await;
    let documented: BTreeSet<&str> = calls.keys().map(String::as_str).collect();
    assert_eq!(documented, table.keys().copied().collect(), "a new route needs its line in the table");
    for (letter, role) in NAMES {
        let key = server.key("acme", role).await;
        for (name, (method, path)) in &calls {
            let answer = server.ask_bytes(&key, (method, path), &[JSON], None).await;
            if table[name.as_str()].contains(letter) {
                assert!(![401, 403].contains(&answer.status), "{letter} {name}: {answer:?}");
            } else {
                answer.problem(403, "forbidden");
            }
        }
    }
}

/// Everything of an answer but what is another one for every request.
fn compared(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let is_own = |name: &str| !matches!(name, "date" | "x-request-id");
    let headers = answer.headers.iter().filter(|(name, _)| is_own(name)).cloned().collect();
    (answer.status, headers, answer.text())
}

#[tokio::test]
async fn strangers_get_one_and_the_same_answer() {
    let server = TestServer::start().await;
    let revoked = server.key("acme", Role::Admin).await;
    let acme = || TenantId::parse("acme").unwrap();
    let id = server.db.read(move |tx| keys(tx, &acme(), None, 1)).await.unwrap().remove(0).id;
    server.db.write(move |tx| revoke_key(tx, &acme(), &id)).await.unwrap();
    let valid = server.key("acme", Role::Admin).await;
    let with = |scheme: &str, token: &[u8]| Some([scheme.as_bytes(), token].concat());
    let wrong: Vec<Option<Vec<u8>>> = vec![
        None,
        Some(vec![]),
        with("Bearer", b""),
        with("Bearer ", revoked.as_bytes()),
        with("Bearer ", b"pbx_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        with("Bearer ", &valid.as_bytes()[..46]),
        with("Bearer ", format!("{valid}x").as_bytes()),
        with("Bearer ", valid.to_uppercase().as_bytes()),
        with("Bearer ", SECRET.as_bytes()),
        with("Bearer ", SERVICE_KEY.as_bytes()),
        with("Bearer ", "ключ".as_bytes()),
        with("Bearer ", b"\xff\xfe"),
        with("Bearer ", &[b'a'; 100_000]),
        with("Basic ", valid.as_bytes()),
        with("Bearer", valid.as_bytes()),
        Some(valid.clone().into_bytes()),
    ];
    let calls = calls(&server).await;
    let mut seen = BTreeSet::new();
    for (method, path) in calls.values() {
        for value in &wrong {
            let headers: Vec<(&str, &[u8])> = value.iter().map(|value| ("Authorization", value.as_slice())).collect();
            // A query and a body that would be refused if they were looked at.
            let answer = server.send(method, &format!("{path}?x=1"), &headers, b"").await;
            answer.problem(401, "unauthorized");
            assert_eq!(answer.find_header("www-authenticate"), Some("Bearer"));
            seen.insert(compared(&answer));
        }
        let bearer = format!("Bearer {valid}");
        let twice: [(&str, &[u8]); 2] = [("Authorization", bearer.as_bytes()), ("Authorization", b"Bearer x")];
        seen.insert(compared(&server.send(method, path, &twice, b"").await));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn a_stranger_is_told_so_before_anything_about_the_body() {
    let server = TestServer::start().await;
    let reader = server.key("acme", Role::Read).await;
    let upload = vec![b'x'; 10 << 20];
    for (key, status) in [("no", 401), (reader.as_str(), 403)] {
        let auth = format!("Bearer {key}");
        let answer = server.send("POST", "/v1/events/batch", &[("Authorization", auth.as_bytes())], &upload).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn leads_are_the_installations_and_to_other_tenants_there_is_nothing() {
    let server = TestServer::start().await;
    const PATH: &str = "/v1/leads/health";
    for (tenant, role, status) in [
        ("default", Role::Admin, 200),
        ("default", Role::Read, 200),
        ("default", Role::Publish, 403),
        ("acme", Role::Admin, 404),
        ("acme", Role::Read, 404),
        ("acme", Role::Publish, 404),
    ] {
        let key = server.key(tenant, role).await;
        let answer = server.ask(&key, "GET", PATH, None).await;
        assert_eq!(answer.status, status, "{tenant} {role:?}");
        if status == 404 {
            let id: [(&str, &[u8]); 1] = [("X-Request-Id", b"same")];
            let answer = server.ask_bytes(&key, ("GET", PATH), &id, None).await;
            let nowhere = server.ask_bytes(&key, ("GET", "/v1/nowhere"), &id, None).await;
            assert_eq!(compared(&answer), compared(&nowhere), "what an address is answered that is not there");
        }
    }
}

#[tokio::test]
async fn no_key_is_in_the_log() {
    let (page, _guard) = crate::edge::http::tests::record_log();
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Read).await;
    for key in [key.as_str(), "a-wrong-key"] {
        server.ask(key, "GET", "/v1/events?type=secret.type", None).await;
    }
    let text = page.text();
    assert!(text.contains("/v1/events"), "{text}");
    for word in [key.as_str(), "a-wrong-key", "secret.type"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

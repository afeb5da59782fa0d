//! Who may call `/rest`: the service key only, and whoever may not learns nothing.

use serde_json::{Value, json};

use super::rest::{LEAD, REQUEST, count_sending, insert_lead};
use super::{ANON_KEY, Answer, Keys, SERVICE_KEY, Setup, TestServer, record_log};

const NOBODY: &str = "018f3f3e-9a1b-7c3d-8e4f-00000000dead";
/// What is called, with what. The first three tell three different stories to whoever may ask.
const CALLS: [(&str, &str, &str); 9] = [
    ("POST", "/rest/v1/rpc/claim_broker_lead_notification", LEAD),
    ("POST", "/rest/v1/rpc/claim_broker_lead_notification", NOBODY),
    ("POST", "/rest/v1/rpc/clean_broker_lead_notification", LEAD),
    ("GET", "/rest/v1/rpc/claim_broker_lead_notification?p_lead_id=x", LEAD),
    ("OPTIONS", "/rest/v1/rpc/claim_broker_lead_notification", LEAD),
    ("DELETE", "/rest/v1/rpc/claim_broker_lead_notification", LEAD),
    ("POST", "/rest/v1/rpc/%ff", LEAD),
    ("POST", "/rest/v1/broker_leads", LEAD),
    ("GET", "/rest/v1/", LEAD),
];

fn bearer(key: &str) -> Vec<u8> {
    format!("Bearer {key}").into_bytes()
}

async fn call(server: &TestServer, (method, path, lead): (&str, &str, &str), keys: &[(&str, Vec<u8>)]) -> Answer {
    let body = json!({"p_lead_id": lead, "p_request_id": REQUEST}).to_string();
    let mut headers: Vec<(&str, &[u8])> = keys.iter().map(|(name, key)| (*name, key.as_slice())).collect();
    // Each of these would be refused if it were looked at.
    headers.extend([
        ("Content-Type", b"text/csv".as_slice()),
        ("Accept", b"text/csv"),
        ("Content-Profile", b"private"),
    ]);
    server.send(method, path, &headers, body.as_bytes()).await
}

/// Everything of an answer but what is another one for every request.
fn compared(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let is_own = |name: &str| !matches!(name, "date" | "x-request-id" | "content-length");
    let headers = answer.headers.iter().filter(|(name, _)| is_own(name)).cloned().collect();
    (answer.status, headers, answer.text())
}

#[tokio::test]
async fn who_may_not_call_learns_nothing() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let wrong = |key: &str| vec![("Authorization", bearer(key))];
    let strangers = [
        vec![],
        vec![("apikey", b"x".to_vec())],
        wrong("x"),
        wrong(""),
        wrong(&SERVICE_KEY.to_uppercase()),
        wrong(&SERVICE_KEY[1..]),
        wrong(&format!("{SERVICE_KEY} ")[..SERVICE_KEY.len() - 1]),
        vec![("apikey", format!("{SERVICE_KEY}x").into_bytes())],
        // The bearer counts: the right key elsewhere does not help a wrong one.
        vec![("Authorization", bearer("x")), ("apikey", SERVICE_KEY.into())],
        vec![("Authorization", bearer(SERVICE_KEY)), ("Authorization", bearer("x"))],
        vec![("apikey", SERVICE_KEY.into()), ("apikey", b"x".to_vec())],
        vec![("apikey", "ключ".into())],
        vec![("apikey", b"\xff\xfe".to_vec())],
    ];
    for keys in strangers {
        let mut seen = std::collections::BTreeSet::new();
        for called in CALLS {
            let answer = call(&server, called, &keys).await;
            let code = if keys.is_empty() || keys == wrong("") { "PGRST302" } else { "PGRST301" };
            answer.refusal(401, code);
            seen.insert(compared(&answer));
        }
        assert_eq!(seen.len(), 1, "one and the same answer, whatever was called: {seen:?}");
    }
    assert_eq!(count_sending(&server).await, 0);
}

#[tokio::test]
async fn the_anon_key_is_known_and_may_do_nothing() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    for keys in
        [vec![("apikey", ANON_KEY.into())], vec![("Authorization", bearer(ANON_KEY)), ("apikey", ANON_KEY.into())]]
    {
        let mut seen = std::collections::BTreeSet::new();
        for called in CALLS {
            let answer = call(&server, called, &keys).await;
            let body = answer.refusal(403, "42501");
            // What follows is the caller's own word and nothing else.
            let name = called.1.strip_prefix("/rest/v1/rpc/").map(|name| name.split('?').next().unwrap_or_default());
            let expected = match name {
                Some(name) => format!("permission denied for function {name}"),
                None => "permission denied for schema public".to_owned(),
            };
            assert_eq!(body["message"], expected, "{called:?}");
            let (status, headers, text) = compared(&answer);
            seen.insert((status, headers, text.replace(&expected, "…")));
        }
        assert_eq!(seen.len(), 1, "{seen:?}");
    }
    assert_eq!(count_sending(&server).await, 0);
}

#[tokio::test]
async fn the_service_key_is_taken_from_either_header() {
    let server = TestServer::start().await;
    let body = json!({"p_lead_id": LEAD, "p_request_id": REQUEST}).to_string();
    for keys in [
        vec![("apikey", SERVICE_KEY.into())],
        vec![("Authorization", bearer(SERVICE_KEY))],
        vec![("Authorization", bearer(SERVICE_KEY)), ("apikey", SERVICE_KEY.into())],
        // The bearer counts, and a scheme that is no bearer is none.
        vec![("Authorization", bearer(SERVICE_KEY)), ("apikey", ANON_KEY.into())],
        vec![("Authorization", b"Basic eDp4".to_vec()), ("apikey", SERVICE_KEY.into())],
    ] {
        let headers: Vec<(&str, &[u8])> =
            keys.iter().map(|(name, key): &(&str, Vec<u8>)| (*name, key.as_slice())).collect();
        let answer = server.send("POST", CALLS[0].1, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_before_anything_about_the_body() {
    let server = TestServer::start().await;
    let upload = vec![b'x'; 10 << 20];
    for (key, status) in [("no", 401), (ANON_KEY, 403)] {
        let answer = server.send("POST", CALLS[0].1, &[("apikey", key.as_bytes())], &upload).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn without_a_service_key_the_surface_stays_closed_and_the_log_says_so_once() {
    let (page, _guard) = record_log();
    let keys = || Keys::new(None, Some(super::Secret::new(ANON_KEY)));
    let server = TestServer::with(Setup { keys: keys(), ..Setup::default() }).await;
    for key in [ANON_KEY, SERVICE_KEY, ""] {
        let answer = call(&server, CALLS[0], &[("apikey", key.into())]).await;
        answer.refusal(503, "PGRST300");
        call(&server, CALLS[7], &[]).await.refusal(503, "PGRST300");
    }
    let told: Vec<Value> =
        page.lines().into_iter().filter(|line| line.to_string().contains("service_role_key")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status, 200);
}

#[tokio::test]
async fn neither_key_nor_argument_is_in_the_log() {
    let (page, _guard) = record_log();
    let server = TestServer::start().await;
    let path = format!("/rest/v1/rpc/broker_lead_notification_summary?p_lead_id={NOBODY}&p_name=Ada");
    for key in [SERVICE_KEY, ANON_KEY, "a-wrong-key"] {
        server.send("GET", &path, &[("apikey", key.as_bytes())], b"").await;
    }
    let text = page.text();
    assert!(text.contains("\"/rest/v1/rpc/broker_lead_notification_summary\""), "{text}");
    for word in [SERVICE_KEY, ANON_KEY, "a-wrong-key", NOBODY, "Ada"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

//! Who may pass: the bearer secret of `/bot`.

use serde_json::json;

use super::{SECRET, Setup, TestServer};

/// Every address behind the guard.
const GUARDED: [(&str, &str); 9] = [
    ("GET", "/bot/events/pending"),
    ("POST", "/bot/events/ack"),
    ("POST", "/bot/events"),
    ("POST", "/bot/notification"),
    ("GET", "/bot/leader/resolve?code=x"),
    ("GET", "/bot/user/state?telegramId=5"),
    ("POST", "/bot/telegram/bind"),
    ("POST", "/bot/telegram/connect-link"),
    ("GET", "/auth/check-account-by-telegram/5"),
];

#[tokio::test]
async fn every_wrong_secret_gets_the_same_401() {
    let server = TestServer::start().await;
    let with = |scheme: &str, token: &[u8]| [scheme.as_bytes(), b" ", token].concat();
    let wrong: Vec<Option<Vec<u8>>> = vec![
        None,
        Some(vec![]),
        Some(b"Bearer".to_vec()),
        Some(b"Bearer ".to_vec()),
        Some(with("Bearer", b"x")),
        Some(with("Bearer", &SECRET.as_bytes()[..SECRET.len() - 1])),
        Some(with("Bearer", format!("{SECRET}x").as_bytes())),
        Some(with("Bearer", SECRET.to_uppercase().as_bytes())),
        Some(with("Bearer", format!("{SECRET} {SECRET}").as_bytes())),
        Some(with("Bearer", "секрет".as_bytes())),
        Some(with("Bearer", b"\xff\xfe\x80")),
        Some(with("Bearer", &[b'a'; 100_000])),
        Some(with("Basic", SECRET.as_bytes())),
        Some(SECRET.as_bytes().to_vec()),
        Some(format!("Bearer{SECRET}").into_bytes()),
        Some("Б".repeat(3).into_bytes()),
    ];
    let mut bodies = std::collections::BTreeSet::new();
    for (method, path) in GUARDED {
        for header in &wrong {
            let headers: Vec<(&str, &[u8])> = header.iter().map(|value| ("Authorization", value.as_slice())).collect();
            let answer = server.send(method, path, &headers, b"{}").await;
            answer.problem(401, "unauthorized");
            assert_eq!(answer.find_header("www-authenticate"), Some("Bearer"));
            bodies.insert(answer.body);
        }
        let twice = [("Authorization", with("Bearer", SECRET.as_bytes())), ("Authorization", with("Bearer", b"x"))];
        let twice = twice.each_ref().map(|(name, value)| (*name, value.as_slice()));
        server.send(method, path, &twice, b"").await.problem(401, "unauthorized");
    }
    assert_eq!(bodies.len(), 1, "one and the same body");
}

#[tokio::test]
async fn the_scheme_is_read_in_any_case() {
    let server = TestServer::start().await;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "] {
        let value = format!("{scheme} {SECRET}");
        let answer = server.send("GET", "/bot/events/pending", &[("Authorization", value.as_bytes())], b"").await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn without_a_secret_the_surface_stays_closed() {
    let server = TestServer::with(Setup { secret: None, ..Setup::default() }).await;
    for (method, path) in GUARDED {
        server.call(method, path, Some(&json!({}))).await.problem(503, "secret_not_set");
        server.send(method, path, &[("Authorization", b"Bearer ")], b"").await.problem(503, "secret_not_set");
    }
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status, 200);
}

#[tokio::test]
async fn a_wrong_secret_is_told_before_anything_about_the_body() {
    let server = TestServer::start().await;
    let upload = vec![b'x'; 10 << 20];
    let answer = server.send("POST", "/bot/events", &[("Authorization", b"Bearer no")], &upload).await;
    answer.problem(401, "unauthorized");
}

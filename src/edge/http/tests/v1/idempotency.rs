//! `Idempotency-Key`: a post that is repeated, changed, moved, forgotten, or sent many times at once.

use std::collections::BTreeSet;

use super::event;
use crate::edge::http::tests::{Answer, TestServer};
use crate::tenants::Role;

const DAY_S: u64 = 24 * 60 * 60;

async fn post(server: &TestServer, key: &str, path: &str, idempotency: &[u8], body: &str) -> Answer {
    server.ask_bytes(key, ("POST", path), &[("Idempotency-Key", idempotency)], Some(body.as_bytes())).await
}

async fn count(server: &TestServer) -> usize {
    server.column("SELECT event_id FROM outbox_events").await.len()
}

#[tokio::test]
async fn the_same_post_gets_the_same_answer_and_another_is_refused() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let body = event().to_string();
    let batch = format!(r#"{{"events": [{body}, {body}]}}"#);
    for (path, idempotency, body) in [("/v1/events", b"one", &body), ("/v1/events/batch", b"two", &batch)] {
        let first = post(&server, &key, path, idempotency, body).await;
        assert_eq!(first.status, 202, "{first:?}");
        server.advance(60);
        let again = post(&server, &key, path, idempotency, body).await;
        assert_eq!((again.status, again.body), (202, first.body));
        for changed in [format!("{body} "), body.replace('5', "6")] {
            let refused = post(&server, &key, path, idempotency, &changed).await;
            assert_eq!(refused.problem(409, "idempotency_conflict"), ["Idempotency-Key"]);
        }
    }
    assert_eq!(count(&server).await, 3);
    let elsewhere = post(&server, &key, "/v1/events/batch", b"one", &body).await;
    assert_eq!(elsewhere.problem(422, "invalid_body"), ["aggregate"], "that is no batch, whatever its key");
    let moved = post(&server, &key, "/v1/events/batch", b"one", &batch).await;
    moved.problem(409, "idempotency_conflict");
    assert_eq!(count(&server).await, 3);
}

#[tokio::test]
async fn a_key_is_its_tenants_and_lives_for_a_day() {
    let server = TestServer::start().await;
    let (acme, other) = (server.key("acme", Role::Publish).await, server.key("other", Role::Publish).await);
    let body = event().to_string();
    let first = post(&server, &acme, "/v1/events", b"k", &body).await.json();
    let others = post(&server, &other, "/v1/events", b"k", &body).await;
    assert_eq!(others.status, 202);
    assert_ne!(others.json(), first);
    server.advance(DAY_S - 1);
    let admin = server.key("acme", Role::Admin).await;
    assert_eq!(post(&server, &admin, "/v1/events", b"k", &body).await.json(), first, "another key of the tenant");
    server.advance(1);
    let later = post(&server, &acme, "/v1/events", b"k", &body).await;
    assert_eq!(later.status, 202);
    assert_ne!(later.json(), first, "the key is forgotten");
    assert_eq!(post(&server, &acme, "/v1/events", b"k", &body).await.json(), later.json(), "and known anew");
    assert_eq!(count(&server).await, 3);
}

#[tokio::test]
async fn of_many_posts_at_once_under_one_key_one_is_stored() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let body = event().to_string();
    let posts = (0..32).map(|_| post(&server, &key, "/v1/events", b"k", &body));
    let answers: BTreeSet<_> =
        futures_util::future::join_all(posts).await.into_iter().map(|answer| (answer.status, answer.body)).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn a_refused_post_leaves_its_key_free() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let wrong = event().to_string().replace("order.paid", "lead.received");
    post(&server, &key, "/v1/events", b"k", &wrong).await.problem(422, "reserved_type");
    assert_eq!(post(&server, &key, "/v1/events", b"k", &event().to_string()).await.status, 202);
}

#[tokio::test]
async fn a_key_is_visible_ascii_and_given_once() {
    let server = TestServer::start().await;
    let key = server.key("acme", Role::Publish).await;
    let body = event().to_string();
    for good in [&b"!"[..], b"~", &[b'k'; 255], b"\"quoted\"", b"0190c6a8-7b1e-7cc3-9e5f-2a4b6c8d0e1f"] {
        assert_eq!(post(&server, &key, "/v1/events", good, &body).await.status, 202);
    }
    for odd in [&b""[..], &[b'k'; 256], b"a b", "ключ".as_bytes(), b"\xff", b"a\tb"] {
        let refused = post(&server, &key, "/v1/events", odd, &body).await;
        assert_eq!(refused.problem(400, "invalid_header"), ["Idempotency-Key"], "{odd:?}");
    }
    let twice: [(&str, &[u8]); 2] = [("Idempotency-Key", b"a"), ("idempotency-key", b"a")];
    let refused = server.ask_bytes(&key, ("POST", "/v1/events"), &twice, Some(body.as_bytes())).await;
    assert_eq!(refused.problem(400, "invalid_header"), ["Idempotency-Key"]);
}

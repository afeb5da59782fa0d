//! A backend that refuses, hangs, breaks off or answers nonsense: each with its own error, and none with the secret.

use tokio::net::TcpListener;

use super::peer::Fault;
use super::{SECRET, World, config, event, open, remote};
use crate::edge::backend::{ClientError, RemoteBackend};
use crate::kernel::clock::Clock;
use crate::kernel::secret::Secret;
use crate::onboarding::{Backend, BackendError};

/// What fetching a page ends with when it is answered so.
async fn error_of(fault: Fault) -> BackendError {
    let world = World::new().await;
    world.peer.serves([event(1, "registered")]);
    world.peer.fails("/pending", fault);
    let error = world.pass().await.expect_err("a fault");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(SECRET) && !text.contains("127.0.0.1"), "{text}");
    }
    assert_eq!(world.processed().await, 1, "and the next pass goes on");
    error
}

fn answer(status: &'static str, body: &str) -> Fault {
    Fault::Answer(status, body.to_owned())
}

#[tokio::test]
async fn a_refused_secret_says_so() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        assert!(matches!(error_of(answer(status, "{}")).await, BackendError::Unauthorized));
    }
}

#[tokio::test]
async fn a_backend_that_consumes_its_own_events_says_what_to_change() {
    let error = error_of(answer("409 Conflict", r#"{"code":"events_are_consumed_here","status":409}"#)).await;
    assert!(matches!(error, BackendError::ConsumedThere));
    assert!(error.to_string().contains(r#"bot.event_source = "off""#));
    let error = error_of(answer("409 Conflict", "{}")).await;
    assert!(matches!(&error, BackendError::Refused(code) if code == "http_409"), "{error:?}");
}

#[tokio::test]
async fn a_backend_that_cannot_serve_is_unreachable() {
    for (fault, wanted) in [
        (answer("502 Bad Gateway", "<html>nginx</html>"), "http_502"),
        (answer("503 Service Unavailable", r#"{"code":"secret_not_set"}"#), "http_503 secret_not_set"),
        (answer("500 Oops", r#"{"code":"Bearer s3cret"}"#), "http_500"),
        (answer("429 Too Many Requests", ""), "http_429"),
        (Fault::Lose, "broken_connection"),
        (Fault::Hang, "timeout"),
    ] {
        let error = error_of(fault).await;
        assert!(matches!(&error, BackendError::Unreachable(code) if code == wanted), "{wanted}: {error:?}");
        assert_eq!(error.code(), wanted);
    }
}

#[tokio::test]
async fn nonsense_is_outside_the_contract() {
    for fault in [
        answer("200 OK", "<html>a login page</html>"),
        answer("200 OK", r#"{"events":[{"id":1}]}"#),
        answer("200 OK", r#"{"data":[]}"#),
        answer("204 No Content", ""),
        answer("302 Found", ""),
    ] {
        let error = error_of(fault).await;
        assert!(matches!(error, BackendError::Contract(_)), "{error:?}");
    }
    let error = error_of(answer("404 Not Found", "")).await;
    assert!(matches!(&error, BackendError::Refused(code) if code == "http_404"), "{error:?}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_it() {
    let body = format!(r#"{{"events":[],"filler":"{}"}}"#, "x".repeat(9 << 20));
    let error = error_of(Fault::Answer("200 OK", body)).await;
    assert!(error.to_string().contains("8388608"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_every_event_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), Clock::stopped_at(super::NOW));
    let error = remote(&db, &url, "shop").next_page(100).await.unwrap_err();
    assert!(matches!(&error, BackendError::Unreachable(code) if code == "no_connection"), "{error:?}");
}

#[tokio::test]
async fn the_secret_shows_nowhere_and_one_that_no_header_can_carry_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), Clock::stopped_at(super::NOW));
    let backend = remote(&db, "http://localhost:1", "shop");
    assert_eq!(format!("{backend:?}"), r#"RemoteBackend { source: "shop", .. }"#);
    let broken = crate::config::RemoteBackend { secret: Secret::new("a\nb"), ..config("http://localhost:1", "shop") };
    assert!(matches!(RemoteBackend::new(db.clone(), &broken), Err(ClientError::Secret)));
    assert!(matches!(RemoteBackend::new(db, &config("ftp://localhost", "shop")), Err(ClientError::Address)));
}

//! `/v1/leads/health` as a monitoring program meets it.

use serde_json::json;

use super::rest::{LEAD, REQUEST, insert_lead};
use super::{ANON_KEY, Keys, SERVICE_KEY, Setup, TestServer};

const PATH: &str = "/v1/leads/health";

#[tokio::test]
async fn the_queue_is_told_with_its_ages_and_alerts() {
    let server = TestServer::start().await;
    let key = [("apikey", SERVICE_KEY.as_bytes())];
    let empty = server.send("GET", PATH, &key, b"").await;
    assert_eq!((empty.status, empty.find_header("content-type")), (200, Some("application/json")));
    assert_eq!(empty.find_header("cache-control"), Some("no-store"));
    let nothing = json!({"count": 0, "oldest_at": null, "oldest_age_ms": null});
    assert_eq!((&empty.json()["pending"], &empty.json()["alerts"]), (&nothing, &json!([])));

    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let came =
        "UPDATE broker_leads SET created_at = ?1, notification_status = 'sending', notification_attempted_at = ?1";
    let now = server.clock.now();
    server.db.write(move |tx| tx.execute(came, [now]).map(|_| ())).await.unwrap();
    server.advance(15 * 60 + 1);
    let bearer = format!("Bearer {SERVICE_KEY}");
    let body = server.send("GET", PATH, &[("Authorization", bearer.as_bytes())], b"").await;
    let told = body.json();
    let sending = json!({"count": 1, "oldest_at": "2027-01-15T08:00:00.000Z", "oldest_age_ms": 901_000});
    assert_eq!(told["sending"], sending);
    assert_eq!((&told["stale_sending"], &told["alerts"]), (&json!(1), &json!(["stale_sending"])));
    let metrics = server.get("/metrics").await.text();
    for line in [
        r#"pillarbox_leads{status="sending"} 1"#,
        r#"pillarbox_leads{status="pending"} 0"#,
        r#"pillarbox_leads_oldest_age_seconds{status="sending"} 901"#,
        r#"pillarbox_leads_oldest_age_seconds{status="pending"} 0"#,
        "pillarbox_leads_stale_sending 1",
    ] {
        assert!(metrics.lines().any(|told| told == line), "{line}: {metrics}");
    }
    for word in [LEAD, REQUEST, "Ада", "7999"] {
        assert!(!body.text().contains(word) && !metrics.contains(word), "{word}");
    }
}

#[tokio::test]
async fn only_the_service_key_is_answered() {
    let server = TestServer::start().await;
    let bot = format!("Bearer {}", super::SECRET);
    let wrong: [&[(&str, &[u8])]; 3] = [&[], &[("apikey", b"x")], &[("Authorization", bot.as_bytes())]];
    let mut bodies = std::collections::BTreeSet::new();
    for headers in wrong {
        let answer = server.send("GET", PATH, headers, b"").await;
        answer.problem(401, "unauthorized");
        bodies.insert(answer.body);
    }
    assert_eq!(bodies.len(), 1, "one and the same body");
    let key = |key: &'static str| [("apikey", key.as_bytes())];
    server.send("GET", PATH, &key(ANON_KEY), b"").await.problem(403, "forbidden");
    server.send("POST", PATH, &key(SERVICE_KEY), b"").await.problem(405, "method_not_allowed");
    let closed = TestServer::with(Setup { keys: Keys::new(None, None), ..Setup::default() }).await;
    closed.send("GET", PATH, &key(SERVICE_KEY), b"").await.problem(503, "secret_not_set");
}

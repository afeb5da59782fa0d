//! The outbox contract as a remote bot meets it.

use serde_json::{Value, json};

use super::{Consumer, SECRET, Setup, TestServer, record_log, wallet};
use crate::kernel::store::StoreError;

#[tokio::test]
async fn an_event_comes_back_as_it_was_emitted() {
    let server = TestServer::start().await;
    let body = json!({
        "eventType": "registered", "telegramId": "-1009007199254740993", "magnetUid": 7,
        "payload": {"parentUid": 3, "preview": true, "name": "Ада \u{0} \"q\""}, "dedupKey": "sync:7",
    });
    let id = server.emit(body.clone()).await;
    let page = server.get("/bot/events/pending").await.json();
    let expected = json!({"events": [{
        "id": id, "eventType": "registered", "telegramId": "-1009007199254740993", "magnetUid": 7,
        "payload": body["payload"], "createdAt": "2027-01-15T08:00:00.000Z", "attempts": 0,
    }]});
    assert_eq!(page, expected);
    let bare = server.emit(json!({"eventType": "reactivation", "telegramId": "9", "magnetUid": null})).await;
    let page = server.get("/bot/events/pending").await.json();
    let event = &page["events"][1];
    assert_eq!(event["id"], bare);
    assert_eq!((&event["magnetUid"], &event["payload"]), (&Value::Null, &json!({})));
}

#[tokio::test]
async fn a_page_is_cut_by_its_limit_and_is_the_same_twice() {
    let server = TestServer::start().await;
    assert_eq!(server.pending("").await, Vec::<i64>::new());
    let mut by_subject: Vec<Vec<i64>> = vec![vec![]; 3];
    for n in 0..120 {
        by_subject[n % 3].push(server.emit(wallet(1 + i64::try_from(n % 3).unwrap())).await);
    }
    let whole = by_subject.concat();
    assert_eq!(
        server.pending("").await,
        whole[..100],
        "each subject's events stand together, in order, 100 by default"
    );
    assert_eq!(server.pending("").await, whole[..100], "twice the same page");
    for (query, length) in [
        ("?limit=1", 1),
        ("?limit=007", 7),
        ("?limit=500", 120),
        ("?limit=501", 120),
        ("?limit=99999999999999999999999", 120),
    ] {
        assert_eq!(server.pending(query).await, whole[..length], "{query}");
    }
}

#[tokio::test]
async fn a_page_never_holds_more_than_500() {
    let server = TestServer::start().await;
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 510)
                INSERT INTO bot_event_outbox (event_type, magnet_uid) SELECT 'registered', i FROM n";
    server.db.write(move |tx| tx.execute(fill, []).map(|_| ())).await.unwrap();
    assert_eq!(server.pending("?limit=510").await.len(), 500);
}

#[tokio::test]
async fn a_failed_event_hides_its_successors_until_it_is_due() {
    let server = TestServer::start().await;
    let first = server.emit(wallet(1)).await;
    let second = server.emit(wallet(1)).await;
    let other = server.emit(wallet(2)).await;
    assert_eq!(
        server.ack(json!({"processedIds": [], "retryIds": [{"id": first, "error": "boom"}]})).await,
        [0, 1, 0, 0, 0]
    );
    assert_eq!(server.pending("").await, [other]);
    server.advance(119);
    assert_eq!(server.pending("").await, [other]);
    server.advance(1);
    assert_eq!(server.pending("").await, [other, first, second], "subjects stand in the order of their due times");
    let page = server.get("/bot/events/pending").await.json();
    assert_eq!(page["events"][1]["attempts"], 1);
}

#[tokio::test]
async fn an_acknowledgement_can_be_repeated_in_every_state() {
    let server = TestServer::start().await;
    let id = server.emit(wallet(1)).await;
    let retry = json!({"retryIds": [id]});
    let done = json!({"processedIds": [id, id]});
    assert_eq!(server.ack(retry.clone()).await, [0, 1, 0, 0, 0]);
    assert_eq!(server.ack(retry.clone()).await, [0, 1, 0, 0, 0], "while it waits a retry is a repeat");
    server.advance(120);
    assert_eq!(server.get("/bot/events/pending").await.json()["events"][0]["attempts"], 1);
    assert_eq!(server.ack(done.clone()).await, [1, 0, 0, 0, 0], "an id named twice counts once");
    assert_eq!(server.ack(done.clone()).await, [1, 0, 0, 0, 0]);
    assert_eq!(server.ack(retry).await, [1, 0, 0, 0, 0], "processed never reverts");
    assert_eq!(server.pending("").await, Vec::<i64>::new());
    let both = server.emit(wallet(2)).await;
    assert_eq!(server.ack(json!({"processedIds": [both], "retryIds": [both]})).await, [1, 0, 0, 0, 0]);
    assert_eq!(server.ack(json!({"processedIds": [999], "retryIds": [998, {"id": 997}]})).await, [0, 0, 0, 0, 3]);
    assert_eq!(server.ack(json!({})).await, [0; 5]);
}

#[tokio::test]
async fn ten_failures_bury_registered_and_abandon_the_others() {
    let (page, _guard) = record_log();
    let server = TestServer::start().await;
    let buried = server.emit(json!({"eventType": "registered", "magnetUid": 1})).await;
    let abandoned = server.emit(wallet(2)).await;
    let behind = server.emit(wallet(1)).await;
    let retry = json!({"retryIds": [{"id": buried, "error": "x".repeat(400)}, abandoned]});
    for attempt in 1..10_u32 {
        assert_eq!(server.ack(retry.clone()).await, [0, 2, 0, 0, 0], "attempt {attempt}");
        assert_eq!(server.pending("").await, Vec::<i64>::new(), "attempt {attempt}");
        server.advance(60 << attempt);
    }
    assert_eq!(server.pending("").await, [buried, behind, abandoned]);
    assert_eq!(server.ack(retry.clone()).await, [0, 0, 1, 1, 0]);
    assert_eq!(server.pending("").await, [behind], "a dead letter is not served and does not block");
    assert_eq!(server.ack(retry).await, [0, 0, 1, 1, 0], "a repeat");
    assert_eq!(server.ack(json!({"processedIds": [buried, abandoned]})).await, [0, 0, 1, 1, 0]);
    let lines = page.lines();
    let cries: Vec<_> = lines.iter().filter(|line| line["level"] == "ERROR").collect();
    assert_eq!(cries.len(), 1, "one line, whatever is repeated: {}", page.text());
    assert!(
        cries[0]["message"].as_str().unwrap().starts_with("[bot-outbox][DEAD-LETTER]")
            && cries[0]["event.id"] == buried
    );
    let kept = server.db.read(move |tx| {
        let length = "SELECT length(last_error) FROM bot_event_outbox WHERE id = ?1";
        tx.query_one(length, [buried], |row| row.get::<_, i64>(0))
    });
    let kept: Result<i64, StoreError> = kept.await;
    assert_eq!(kept.unwrap(), 300);
}

#[tokio::test]
async fn a_known_dedup_key_answers_the_first_id() {
    let server = TestServer::start().await;
    let keyed = |uid: i64| json!({"eventType": "wallet_connected", "magnetUid": uid, "dedupKey": "k".repeat(200)});
    let first = server.post("/bot/events", keyed(1)).await;
    let again = server.post("/bot/events", keyed(2)).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json(), again.json());
    assert_eq!(server.pending("").await.len(), 1);
}

#[tokio::test]
async fn a_list_of_500_is_taken_and_one_of_501_is_not() {
    let server = TestServer::start().await;
    let ids = |most: i64| (1..=most).collect::<Vec<i64>>();
    let reasons: Vec<Value> = ids(500).iter().map(|id| json!({"id": id, "error": "e".repeat(300)})).collect();
    let counts = server.ack(json!({"processedIds": ids(500), "retryIds": reasons})).await;
    assert_eq!(counts, [0, 0, 0, 0, 500], "an id in both lists is looked at once");
    for key in ["processedIds", "retryIds"] {
        let answer = server.post("/bot/events/ack", json!({key: ids(501)})).await;
        assert_eq!(answer.problem(422, "invalid_body"), [key]);
    }
}

#[tokio::test]
async fn events_that_are_consumed_here_are_not_for_others() {
    let server = TestServer::with(Setup { consumer: Consumer::ThisProcess, ..Setup::default() }).await;
    server.emit(wallet(1)).await;
    server.get("/bot/events/pending").await.problem(409, "events_are_consumed_here");
    server.get("/bot/events/pending?limit=x").await.problem(409, "events_are_consumed_here");
    server.post("/bot/events/ack", json!({"processedIds": [1]})).await.problem(409, "events_are_consumed_here");
}

#[tokio::test]
async fn a_notification_is_stored_once_per_dedup_key() {
    let server = TestServer::start().await;
    let body =
        json!({"magnetUid": 7, "kind": "new_partner", "title": "T", "body": "a\nb", "dedupKey": "event:local:1"});
    for _ in 0..2 {
        let answer = server.post("/bot/notification", body.clone()).await;
        assert_eq!((answer.status, answer.json()), (201, json!({})));
    }
    let bare = json!({"magnetUid": 7, "kind": "new_partner", "title": "T", "body": "b"});
    assert_eq!(server.post("/bot/notification", bare).await.status, 201);
    let count = "SELECT count(*) FROM web_notifications WHERE magnet_uid = 7";
    let rows: Result<i64, StoreError> = server.db.read(move |tx| tx.query_one(count, [], |row| row.get(0))).await;
    assert_eq!(rows.unwrap(), 2);
}

#[tokio::test]
async fn the_numbers_of_a_payload_are_those_that_were_sent() {
    let server = TestServer::start().await;
    let numbers = ["3658105596765150.0", "0.1", "5e-324", "1.7976931348623157e308", "-2.2250738585072011e-308", "1e16"];
    let body = format!(r#"{{"eventType": "registered", "magnetUid": 1, "payload": {{"n": [{}]}}}}"#, numbers.join(","));
    let auth = format!("Bearer {SECRET}");
    let headers = [("Authorization", auth.as_bytes()), ("Content-Type", b"application/json".as_slice())];
    assert_eq!(server.send("POST", "/bot/events", &headers, body.as_bytes()).await.status, 201);
    let page = server.get("/bot/events/pending").await.text();
    let shown = page.split(r#""n":["#).nth(1).unwrap().split(']').next().unwrap();
    let read = |text: &str| text.parse::<f64>().unwrap();
    assert_eq!(shown.split(',').map(read).collect::<Vec<_>>(), numbers.map(read));
}

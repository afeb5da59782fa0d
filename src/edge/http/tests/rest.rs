//! The functions of the leads' contract as PostgREST's clients meet them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, SERVICE_KEY, Setup, TestServer};
use crate::kernel::store::StoreError;

pub(super) const LEAD: &str = "018f3f3e-9a1b-7c3d-8e4f-0123456789ab";
pub(super) const REQUEST: &str = "IP-20270115-ABC123";
const NOBODY: &str = "018f3f3e-9a1b-7c3d-8e4f-00000000dead";
const SUMMARY: &str = "broker_lead_notification_summary";
const CLAIM: &str = "claim_broker_lead_notification";
const COMPLETE: &str = "complete_broker_lead_notification";
const RETRY: &str = "request_broker_lead_notification_retry";

/// A lead as another program inserts it; its name and phone are those of nobody.
pub(super) async fn insert_lead(server: &TestServer, id: &'static str, request: Option<&'static str>) {
    let insert = "INSERT INTO broker_leads (id, request_id, client_name, phone, city, announced_at)
                  VALUES (?1, ?2, 'Ада \"Л\"', '79990000001', 'Тверь', 0)";
    server.db.write(move |tx| tx.execute(insert, (id, request)).map(|_| ())).await.unwrap();
}

pub(super) async fn count_sending(server: &TestServer) -> i64 {
    let count = "SELECT COUNT(*) FROM broker_leads WHERE notification_status = 'sending'";
    server.db.read(move |tx| tx.query_one(count, [], |row| row.get(0))).await.unwrap()
}

async fn column(server: &TestServer, name: &'static str) -> Option<String> {
    let sql = format!("SELECT CAST({name} AS TEXT) FROM broker_leads WHERE id = '{LEAD}'");
    server.db.read(move |tx| tx.query_one(&sql, [], |row| row.get(0))).await.unwrap()
}

impl TestServer {
    async fn rest(&self, method: &str, path: &str, more: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut headers: Vec<(&str, &[u8])> = vec![("apikey", SERVICE_KEY.as_bytes())];
        headers.extend(more.iter().map(|(name, value)| (*name, value.as_bytes())));
        self.send(method, &format!("/rest/v1/rpc/{path}"), &headers, body).await
    }

    /// A call as supabase-js makes it.
    async fn rpc(&self, function: &str, arguments: Value) -> Answer {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "*/*"),
            ("Content-Profile", "public"),
            ("X-Client-Info", "supabase-js-node/2"),
            ("Prefer", "count=exact"),
        ];
        self.rest("POST", function, &headers, arguments.to_string().as_bytes()).await
    }

    /// What a function answered.
    async fn called(&self, function: &str, arguments: Value) -> Value {
        let answer = self.rpc(function, arguments).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.find_header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(answer.find_header("cache-control"), Some("no-store"));
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{answer:?}");
        answer.json()
    }
}

impl Answer {
    /// Asserts a whole error of this status and code, and returns it.
    pub(super) fn refusal(&self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.find_header("content-type")),
            (status, Some("application/json; charset=utf-8")),
            "{self:?}"
        );
        let body = self.json();
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["code", "details", "hint", "message"]);
        assert_eq!(body["code"], code, "{body}");
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
        assert!(!self.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{self:?}");
        body
    }
}

#[tokio::test]
async fn a_notification_goes_its_way_over_http() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let id = json!({"p_lead_id": LEAD, "p_request_id": REQUEST});
    let with = |more: Value| {
        let mut all = id.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(
        server.rpc(CLAIM, id.clone()).await.text(),
        r#"[{"claimed":true,"current_status":"sending","attempt_count":1}]"#
    );
    let loser = json!([{"claimed": false, "current_status": "sending", "attempt_count": 1}]);
    assert_eq!(server.called(CLAIM, id.clone()).await, loser);
    let summary = server.called(SUMMARY, json!({"p_lead_id": LEAD})).await;
    let text = summary.as_str().expect("a bare text");
    assert!(text.contains(REQUEST) && text.contains("Ада \"Л\"") && text.contains('\n'), "{text}");

    let failed = with(json!({"p_success": false, "p_error": "telegram_http_502", "p_attempt_count": null}));
    assert_eq!(server.called(COMPLETE, failed.clone()).await, json!("failed"));
    assert_eq!(server.called(COMPLETE, failed).await, json!("unchanged"));
    assert_eq!(column(&server, "notification_last_error").await.as_deref(), Some("telegram_http_502"));
    let retry = with(json!({"p_reason_code": "manual_recovery"}));
    assert_eq!(
        server.rpc(RETRY, retry.clone()).await.text(),
        r#"[{"retry_requested":true,"current_status":"pending","retry_count":1}]"#
    );
    assert_eq!(server.called(RETRY, retry).await[0]["retry_requested"], false);

    assert_eq!(server.called(CLAIM, id.clone()).await[0]["attempt_count"], 2);
    let fenced = |attempt: i64| with(json!({"p_success": true, "p_error": null, "p_attempt_count": attempt}));
    assert_eq!(server.called(COMPLETE, fenced(1)).await, json!("unchanged"), "the first attempt was taken over");
    assert_eq!(server.called(COMPLETE, fenced(2)).await, json!("sent"));
    assert_eq!(column(&server, "notification_status").await.as_deref(), Some("sent"));
}

#[tokio::test]
async fn a_claim_may_be_taken_over_after_15_minutes_unless_the_lead_is_in_hand() {
    let hands = crate::leads::Hands::default();
    let server = TestServer::with(Setup { hands: hands.clone(), ..Setup::default() }).await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let id = json!({"p_lead_id": LEAD, "p_request_id": REQUEST});
    let hold = hands.hold(LEAD);
    let waits = json!([{"claimed": false, "current_status": "pending", "attempt_count": 0}]);
    assert_eq!(server.called(CLAIM, id.clone()).await, waits, "in hand");
    drop(hold);
    assert_eq!(server.called(CLAIM, id.clone()).await[0]["claimed"], true);
    server.advance(15 * 60);
    assert_eq!(server.called(CLAIM, id.clone()).await[0]["claimed"], false);
    server.advance(1);
    assert_eq!(server.called(CLAIM, id).await[0]["attempt_count"], 2);
}

#[tokio::test]
async fn nulls_are_answered_as_sql_would() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, None).await;
    let missing = json!([{"claimed": false, "current_status": "missing", "attempt_count": 0}]);
    for (lead, request) in [(json!(null), json!(null)), (json!(NOBODY), json!(null)), (json!(LEAD), json!(REQUEST))] {
        let id = json!({"p_lead_id": lead, "p_request_id": request});
        assert_eq!(server.called(CLAIM, id).await, missing);
    }
    server.rpc(SUMMARY, json!({"p_lead_id": null})).await.refusal(400, "P0001");
    let id = json!({"p_lead_id": null, "p_request_id": null, "p_reason_code": "manual_recovery"});
    let nothing = json!([{"retry_requested": false, "current_status": "missing", "retry_count": 0}]);
    assert_eq!(server.called(RETRY, id).await, nothing);
    // A lead without a request id is found by null.
    let id = json!({"p_lead_id": LEAD.to_uppercase(), "p_request_id": null});
    assert_eq!(server.called(CLAIM, id).await[0]["claimed"], true);
    let undecided = json!({"p_lead_id": LEAD, "p_request_id": null, "p_success": null});
    assert_eq!(server.called(COMPLETE, undecided).await, json!("failed"), "only true is a success");
    assert_eq!(column(&server, "notification_last_error").await.as_deref(), Some("notification_failed"));
}

#[tokio::test]
async fn an_error_that_is_no_code_is_replaced() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    server.called(CLAIM, json!({"p_lead_id": LEAD, "p_request_id": REQUEST})).await;
    let told = json!({"p_lead_id": LEAD, "p_request_id": REQUEST, "p_success": false,
                      "p_error": "POST https://api.telegram.org/bot1:token/sendMessage failed"});
    assert_eq!(server.called(COMPLETE, told).await, json!("failed"));
    assert_eq!(column(&server, "notification_last_error").await.as_deref(), Some("notification_failed"));
}

#[tokio::test]
async fn of_64_claims_over_http_one_wins() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let id = json!({"p_lead_id": LEAD, "p_request_id": REQUEST});
    let claims = (0..64).map(|_| server.called(CLAIM, id.clone()));
    let rows = futures_util::future::join_all(claims).await;
    let won = rows.iter().filter(|row| row[0]["claimed"] == true).count();
    assert_eq!(won, 1);
    assert!(rows.iter().all(|row| row[0]["current_status"] == "sending" && row[0]["attempt_count"] == 1));
}

#[tokio::test]
async fn a_stable_function_is_read_by_get_and_head() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let path = format!("{SUMMARY}?p_lead_id={LEAD}");
    let got = server.rest("GET", &path, &[("Accept-Profile", "public")], b"").await;
    assert_eq!(got.json(), server.called(SUMMARY, json!({"p_lead_id": LEAD})).await);
    let head = server.rest("HEAD", &path, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(server.rest("HEAD", &format!("{SUMMARY}?p_lead_id={NOBODY}"), &[], b"").await.status, 400);
    let form = server
        .rest(
            "POST",
            SUMMARY,
            &[("Content-Type", "application/x-www-form-urlencoded")],
            &path.as_bytes()[SUMMARY.len() + 1..],
        )
        .await;
    assert_eq!(form.json(), got.json());

    let claim = format!("{CLAIM}?p_lead_id={LEAD}&p_request_id={REQUEST}");
    for method in ["GET", "HEAD"] {
        let refused = server.rest(method, &claim, &[], b"").await;
        assert_eq!((refused.status, refused.find_header("allow")), (405, Some("OPTIONS,POST")), "{refused:?}");
    }
    server.rest("GET", &claim, &[], b"").await.refusal(405, "25006");
    assert_eq!(count_sending(&server).await, 0);
    for (function, methods) in [(SUMMARY, "OPTIONS,GET,HEAD,POST"), (CLAIM, "OPTIONS,POST")] {
        let told = server.rest("OPTIONS", function, &[("Origin", "https://example.org")], b"").await;
        assert_eq!((told.status, told.find_header("allow")), (200, Some(methods)));
        assert!(!told.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{told:?}");
    }
}

#[tokio::test]
async fn the_one_row_is_an_object_if_it_is_asked_for() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let id = json!({"p_lead_id": LEAD, "p_request_id": REQUEST}).to_string();
    let object = "application/vnd.pgrst.object+json";
    let answer = server.rest("POST", &format!("{CLAIM}?limit=1"), &[("Accept", object)], id.as_bytes()).await;
    assert_eq!(answer.text(), r#"{"claimed":true,"current_status":"sending","attempt_count":1}"#);
    assert_eq!(answer.find_header("content-type"), Some("application/vnd.pgrst.object+json; charset=utf-8"));
    let lead = json!({"p_lead_id": LEAD}).to_string();
    let scalar = server.rest("POST", SUMMARY, &[("Accept", object)], lead.as_bytes()).await;
    assert!(scalar.json().is_string(), "a scalar stays one");
}

#[tokio::test]
async fn every_refusal_has_the_four_keys() {
    let server = TestServer::start().await;
    insert_lead(&server, LEAD, Some(REQUEST)).await;
    let body = |lead: &str| json!({"p_lead_id": lead}).to_string();
    let long = "x".repeat(100_000);
    type Case = (&'static str, &'static str, Vec<(&'static str, &'static str)>, String, u16, &'static str);
    let cases: Vec<Case> = vec![
        ("POST", SUMMARY, vec![], body(NOBODY), 400, "P0001"),
        ("POST", SUMMARY, vec![("Content-Profile", "private")], body(LEAD), 406, "PGRST106"),
        ("GET", SUMMARY, vec![("Accept-Profile", "private")], String::new(), 406, "PGRST106"),
        ("PUT", SUMMARY, vec![], body(LEAD), 405, "PGRST101"),
        ("DELETE", "nothing", vec![], body(LEAD), 405, "PGRST101"),
        ("BREW", SUMMARY, vec![], body(LEAD), 405, "PGRST101"),
        ("POST", SUMMARY, vec![("Content-Type", "text/csv")], body(LEAD), 400, "PGRST102"),
        ("POST", SUMMARY, vec![], "{\"p_lead_id\": ".to_owned(), 400, "PGRST102"),
        ("POST", SUMMARY, vec![], "sdfsdf".to_owned(), 400, "PGRST102"),
        ("POST", SUMMARY, vec![], "[".repeat(10_000), 400, "PGRST102"),
        ("POST", SUMMARY, vec![], r#"{"p_lead_id": "\ud800"}"#.to_owned(), 400, "PGRST102"),
        ("POST", SUMMARY, vec![], " ".repeat(2 << 20), 413, "PGRST102"),
        ("POST", "broker_lead_notification_summary?select=a", vec![], body(LEAD), 400, "PGRST127"),
        ("POST", "broker_lead_notification_summary?claimed=eq.true", vec![], body(LEAD), 400, "PGRST127"),
        ("POST", "broker_lead_notification_summary?limit=0", vec![], body(LEAD), 400, "PGRST127"),
        ("POST", SUMMARY, vec![], String::new(), 404, "PGRST202"),
        ("POST", SUMMARY, vec![], "[]".to_owned(), 404, "PGRST202"),
        ("POST", SUMMARY, vec![], format!("[{}]", body(LEAD)), 404, "PGRST202"),
        ("POST", SUMMARY, vec![], json!({"p_lead": LEAD}).to_string(), 404, "PGRST202"),
        ("POST", SUMMARY, vec![], json!({"p_lead_id": LEAD, "p_more": 1}).to_string(), 404, "PGRST202"),
        ("POST", CLAIM, vec![], body(LEAD), 404, "PGRST202"),
        ("POST", "nothing", vec![], body(LEAD), 404, "PGRST202"),
        ("POST", "", vec![], body(LEAD), 404, "PGRST125"),
        ("POST", "%ff", vec![], body(LEAD), 404, "PGRST202"),
        ("POST", SUMMARY, vec![("Accept", "text/csv")], body(LEAD), 406, "PGRST107"),
        ("POST", SUMMARY, vec![], body("x"), 400, "22P02"),
        ("POST", SUMMARY, vec![], body(&long), 400, "22P02"),
        ("POST", RETRY, vec![], retry(json!("because")), 400, "P0001"),
        ("POST", RETRY, vec![], retry(json!(null)), 400, "P0001"),
        ("POST", CLAIM, vec![], json!({"p_lead_id": LEAD, "p_request_id": "a\u{0}"}).to_string(), 400, "22P05"),
        ("POST", COMPLETE, vec![], completed(json!("perhaps"), json!(1)), 400, "22P02"),
        ("POST", COMPLETE, vec![], completed(json!(true), json!(4_000_000_000_i64)), 400, "22003"),
    ];
    for (method, path, headers, text, status, code) in cases {
        let answer = server.rest(method, path, &headers, text.as_bytes()).await;
        let refused = answer.refusal(status, code).to_string();
        assert!(refused.len() < 1000, "{refused}");
    }
    server.rest("POST", "a/b", &[], b"{}").await.refusal(404, "PGRST125");
    assert_eq!(count_sending(&server).await, 0);
}

fn retry(reason: Value) -> String {
    json!({"p_lead_id": LEAD, "p_request_id": REQUEST, "p_reason_code": reason}).to_string()
}

fn completed(success: Value, attempt: Value) -> String {
    json!({"p_lead_id": LEAD, "p_request_id": REQUEST, "p_success": success, "p_attempt_count": attempt}).to_string()
}

#[tokio::test]
async fn refusals_say_what_postgrest_says() {
    let server = TestServer::start().await;
    let unknown = server.rpc(SUMMARY, json!({"p_lead_id": NOBODY})).await;
    assert_eq!(unknown.text(), r#"{"code":"P0001","message":"broker_lead_not_found","details":null,"hint":null}"#);
    let told = server.rpc(CLAIM, json!({"p_request_id": 1, "p_lead": LEAD})).await.refusal(404, "PGRST202");
    assert_eq!(
        told,
        json!({
            "code": "PGRST202",
            "message": "Could not find the function public.claim_broker_lead_notification(p_lead, p_request_id) in the schema cache",
            "details": "Searched for the function public.claim_broker_lead_notification with parameters p_lead, p_request_id or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache.",
            "hint": "Perhaps you meant to call the function public.claim_broker_lead_notification(p_lead_id, p_request_id)",
        })
    );
    let told = server.rest("GET", "nothing", &[], b"").await.refusal(404, "PGRST202");
    assert_eq!(told["message"], "Could not find the function public.nothing without parameters in the schema cache");
    assert_eq!(told["hint"], Value::Null);
    let told = server.rest("DELETE", SUMMARY, &[], b"").await.refusal(405, "PGRST101");
    assert_eq!(told["message"], "Cannot use the DELETE method on RPC");
    let told = server.rpc(SUMMARY, json!({"p_lead_id": "x"})).await.refusal(400, "22P02");
    assert_eq!(told["message"], "invalid input syntax for type uuid: \"x\"");
    let told = server.rest("POST", SUMMARY, &[("Accept", "text/csv, text/xml;q=0.5")], b"{\"p_lead_id\":null}").await;
    let told = told.refusal(406, "PGRST107");
    assert_eq!(told["message"], "None of these media types are available: text/csv, text/xml;q=0.5");
}

#[tokio::test]
async fn a_store_that_cannot_is_a_503_of_this_shape_and_a_complete_still_lands() {
    let server = TestServer::with(Setup { min_free: u64::MAX / 2, ..Setup::default() }).await;
    let insert = "INSERT INTO broker_leads (id, phone, notification_status, notification_attempt_count)
                  VALUES (?1, '7', 'sending', 1)";
    server.db.settle(move |tx| tx.execute(insert, [LEAD]).map(|_| ())).await.unwrap();
    assert!(matches!(server.db.write(|_| Ok::<_, StoreError>(())).await, Err(StoreError::DiskLow)));
    let id = json!({"p_lead_id": LEAD, "p_request_id": null});
    for (function, arguments) in [
        (CLAIM, id.clone()),
        (RETRY, json!({"p_lead_id": LEAD, "p_request_id": null, "p_reason_code": "manual_recovery"})),
    ] {
        let answer = server.rpc(function, arguments).await;
        let body = answer.refusal(503, "PGRST001");
        assert_eq!((&body["details"], answer.find_header("retry-after")), (&Value::Null, Some("30")));
    }
    let done = json!({"p_lead_id": LEAD, "p_request_id": null, "p_success": true});
    assert_eq!(server.called(COMPLETE, done).await, json!("sent"));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_a_503_of_this_shape() {
    let limits = |limits: &mut super::Limits| limits.request = Duration::from_millis(200);
    let server = TestServer::with(Setup { limits, ..Setup::default() }).await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let db = server.db.clone();
    let held = tokio::spawn(async move {
        // The writer waits until the answer is there.
        db.write(move |_| {
            let _ = released.recv();
            Ok::<_, StoreError>(())
        })
        .await
    });
    let id = json!({"p_lead_id": LEAD, "p_request_id": null, "p_success": true});
    for function in [CLAIM, COMPLETE] {
        let mut arguments = id.clone();
        if function == CLAIM {
            arguments.as_object_mut().unwrap().remove("p_success");
        }
        server.rpc(function, arguments).await.refusal(503, "PGRST001");
    }
    drop(release);
    held.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_that_dawdles_is_a_408_of_this_shape() {
    let server =
        TestServer::with(Setup { limits: |limits| limits.body = Duration::from_millis(50), ..Setup::default() }).await;
    let head = format!(
        "POST /rest/v1/rpc/{SUMMARY} HTTP/1.1\r\nHost: test\r\nConnection: close\r\napikey: {SERVICE_KEY}\r\nContent-Length: 9\r\n\r\n{{"
    );
    server.raw(head.as_bytes()).await.refusal(408, "PGRST102");
}

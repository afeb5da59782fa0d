//! `pillarbox webhooks` beside a `dev`: what became of deliveries, and having them sent again.

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::{file, until};

/// A server with an endpoint at its own sink, which answers as it is told.
struct Shop {
    dev: Dev,
    endpoint: String,
}

impl Shop {
    fn answering(status: u16) -> Self {
        let dev = Dev::start(&[]);
        let url = format!("{}/dev/sink/shop", dev.http.url());
        let made = ran(&dev, &["webhooks", "endpoints", "create", &url, "--event-types", "order.*"]).1.remove(0);
        let shop = Self { endpoint: made["id"].as_str().unwrap().to_owned(), dev };
        shop.program(&json!({"status": status, "secret": made["secret"]}));
        shop
    }

    fn program(&self, program: &Value) {
        let answer = self.dev.http.try_call("PUT", "/dev/sink/shop", Some(program)).unwrap();
        assert_eq!(answer.status, 204, "{}", answer.body);
    }

    /// The events that came, in the order in which they did.
    fn came(&self) -> Vec<String> {
        let shown = self.dev.http.get("/dev/sink/shop/requests").json();
        let requests = shown["requests"].as_array().unwrap();
        requests.iter().map(|request| request["headers"]["webhook-id"].as_str().unwrap().to_owned()).collect()
    }

    fn webhooks(&self, args: &[&str]) -> (i32, Vec<Value>, String) {
        ran(&self.dev, &[&["webhooks"], args].concat())
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let (code, rows, said) = self.webhooks(args);
        assert_eq!(code, 0, "{args:?}: {said}");
        rows
    }

    fn emit(&self, event_type: &str) -> String {
        let args = ["events", "emit", event_type, "--about", "order:17", "--json"];
        ran(&self.dev, &args).1[0]["event_id"].as_str().unwrap().to_owned()
    }

    /// Waits until every delivery stands there; their ids, the newest first.
    fn until_all(&self, number: usize, status: &str, attempts: i64) -> Vec<String> {
        let conn = self.dev.reader();
        let sql = "SELECT count(*) FROM webhook_deliveries WHERE status = ?1 AND attempts >= ?2";
        until(&format!("{number} deliveries are {status}"), || {
            let found: i64 = file::value(&conn, sql, (status, attempts));
            (found == i64::try_from(number).unwrap()).then_some(())
        });
        texts(&self.rows(&["deliveries", "list", "--status", status]), "id")
    }
}

fn ran(dev: &Dev, args: &[&str]) -> (i32, Vec<Value>, String) {
    let output = dev.command(args);
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), rows, String::from_utf8(output.stderr).unwrap())
}

fn texts(rows: &[Value], key: &str) -> Vec<String> {
    rows.iter().map(|row| row[key].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn deliveries_are_listed_by_status_type_endpoint_and_time_and_shown_with_their_attempts() {
    let shop = Shop::answering(500);
    let ids = ["order.paid", "order.paid", "order.refunded"].map(|event_type| shop.emit(event_type));
    let deliveries = shop.until_all(3, "pending", 1);
    let list = |args: &[&str]| texts(&shop.rows(&[&["deliveries", "list"], args].concat()), "id");
    assert_eq!(list(&[]), deliveries, "the newest first");
    assert_eq!(list(&["--type", "order.refunded"]), [deliveries[0].clone()]);
    assert_eq!(list(&["--status", "delivered"]), Vec::<String>::new());
    assert_eq!(list(&["--endpoint", &shop.endpoint, "--since", "1h"]), deliveries);
    assert_eq!(list(&["--until", "1h"]), Vec::<String>::new());
    let (_, page, said) = shop.webhooks(&["deliveries", "list", "--limit", "2"]);
    assert_eq!(texts(&page, "id"), deliveries[..2]);
    let after = said.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(list(&["--limit", "2", "--after", &after]), deliveries[2..]);
    let shown = shop.rows(&["deliveries", "show", &deliveries[2]]).remove(0);
    assert_eq!(
        (&shown["event_id"], &shown["last_error"], &shown["status"]),
        (&json!(ids[0]), &json!("http_500"), &json!("pending"))
    );
    let journal = &shown["journal"][0];
    assert_eq!(
        (&journal["number"], &journal["trigger"], &journal["error"]),
        (&json!(1), &json!("schedule"), &json!("http_5xx"))
    );
    assert_eq!(shop.rows(&["attempts", &deliveries[2]])[0], *journal);
    for (args, part) in [
        (["deliveries", "show", "dlv_none"], "has no delivery dlv_none"),
        (["attempts", "dlv_none", "--json"], "has no delivery dlv_none"),
    ] {
        let (code, _, said) = shop.webhooks(&args);
        assert!(code == 1 && said.contains(part), "{said}");
    }
    let (code, _, said) = shop.webhooks(&["deliveries", "list", "--endpoint", "ep_none"]);
    assert!(code == 1 && said.contains("no endpoint ep_none"), "{said}");
}

#[test]
fn the_test_button_shows_both_sides_and_its_attempts_are_kept_apart() {
    let shop = Shop::answering(503);
    let (code, rows, _) = shop.webhooks(&["test", &shop.endpoint]);
    assert_eq!((code, &rows[0]["delivered"], &rows[0]["error"]), (1, &json!(false), &json!("http_5xx")));
    shop.dev.http.try_call("PUT", "/dev/sink/shop", Some(&json!({"body": "thanks"}))).unwrap();
    let (code, rows, _) = shop.webhooks(&["test", &shop.endpoint]);
    assert_eq!((code, &rows[0]["http_status"], &rows[0]["response"]["body"]), (0, &json!(200), &json!("thanks")));
    let request = &rows[0]["request"];
    assert!(request["headers"]["webhook-signature"].as_str().unwrap().starts_with("v1,"), "{request}");
    assert!(request["body"].as_str().unwrap().contains(r#""type":"webhook.test""#), "{request}");
    let tests = shop.rows(&["attempts", &shop.endpoint]);
    assert_eq!(texts(&tests, "trigger"), ["test", "test"]);
    assert_eq!(tests[0]["message_id"], request["headers"]["webhook-id"]);
    assert_eq!(shop.rows(&["deliveries", "list"]), Vec::<Value>::new());
    let (code, _, said) = shop.webhooks(&["test", "ep_none"]);
    assert!(code == 1 && said.contains("no endpoint ep_none"), "{said}");
}

#[test]
fn a_delivery_is_sent_once_more_when_a_person_asks() {
    let shop = Shop::answering(200);
    let event = shop.emit("order.paid");
    let id = shop.until_all(1, "delivered", 1).remove(0);
    let (code, rows, _) = shop.webhooks(&["resend", &id, "dlv_none"]);
    let queued: Vec<_> = rows.iter().map(|row| row["queued"].clone()).collect();
    assert_eq!((code, queued), (1, vec![json!(true), json!(false)]));
    until("it comes again", || (shop.came() == [event.clone(), event.clone()]).then_some(()));
    shop.until_all(1, "delivered", 2);
    assert_eq!(texts(&shop.rows(&["attempts", &id]), "trigger"), ["schedule", "manual"]);
}

#[test]
fn what_a_gone_endpoint_did_not_get_is_recovered_once_it_is_back() {
    let shop = Shop::answering(500);
    let events = ["order.paid", "order.refunded"].map(|event_type| shop.emit(event_type));
    shop.until_all(2, "pending", 1);
    shop.dev.http.try_call("PUT", "/dev/sink/shop", Some(&json!({"status": 410}))).unwrap();
    shop.dev.advance(std::time::Duration::from_secs(10));
    let shown = |field: &str| shop.rows(&["endpoints", "show", &shop.endpoint])[0][field].clone();
    until("the endpoint is disabled", || (shown("disabled_reason") == "gone").then_some(()));
    let conn = shop.dev.reader();
    let lost = "SELECT count(*) FROM webhook_deliveries WHERE status IN ('failed', 'cancelled')";
    until("both are closed", || (file::value::<i64>(&conn, lost, []) == 2).then_some(()));
    let (code, _, said) = shop.webhooks(&["recover", &shop.endpoint, "--since", "1d"]);
    assert!(code == 1 && said.contains(&format!("endpoints activate {}", shop.endpoint)), "{said}");
    shop.rows(&["endpoints", "activate", &shop.endpoint]);
    shop.program(&json!({"status": 200}));
    assert_eq!(shop.rows(&["recover", &shop.endpoint, "--since", "1d"]), [json!({"queued": 2})]);
    shop.until_all(2, "delivered", 2);
    assert_eq!(shop.rows(&["recover", &shop.endpoint, "--since", "1d"]), [json!({"queued": 0})]);
    let came = shop.came();
    assert!(events.iter().all(|id| came.iter().filter(|known| *known == id).count() >= 2), "{came:?}");
    let (code, _, said) = shop.webhooks(&["recover", &shop.endpoint, "--since", "1h", "--until", "2h"]);
    assert!(code == 1 && said.contains("--since has to be before --until"), "{said}");
}

#[test]
fn what_was_skipped_while_an_endpoint_was_disabled_is_replayed() {
    let shop = Shop::answering(200);
    shop.rows(&["endpoints", "disable", &shop.endpoint]);
    let event = shop.emit("order.paid");
    let id = shop.until_all(1, "skipped", 0).remove(0);
    let (code, rows, _) = shop.webhooks(&["resend", &id]);
    assert_eq!((code, rows[0]["what"].as_str().unwrap()), (1, "its endpoint is disabled; activate that first"));
    shop.rows(&["endpoints", "activate", &shop.endpoint]);
    assert_eq!(shop.rows(&["replay-skipped", &shop.endpoint, "--since", "1d"]), [json!({"queued": 1})]);
    shop.until_all(1, "delivered", 1);
    assert_eq!(shop.came(), [event]);
}

//! What becomes of an event in a running server, from the door it comes in by to the last of its consumers.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::value;
use crate::harness::{Place, text, until};

const MADE_BEFORE: &str = "5f2c8f0d3b6a4e9187c4d2a1b0e9f8d7c6b5a49382716f5e";

fn order(number: u32) -> Value {
    json!({"type": "order.paid", "version": 1, "aggregate": {"type": "order", "id": number.to_string()}, "data": {"n": number}})
}

/// An endpoint whose receiver is this sink; its id.
fn subscribe(dev: &Dev, sink: &str, types: &[&str]) -> String {
    let url = format!("{}/dev/sink/{sink}", dev.http.url());
    let made = dev.api.done("/v1/endpoints", &json!({"url": url, "event_types": types}));
    program(dev, sink, &json!({"secret": made["secret"]}));
    made["id"].as_str().expect("an id").to_owned()
}

fn program(dev: &Dev, sink: &str, program: &Value) {
    let answer = dev.http.try_call("PUT", &format!("/dev/sink/{sink}"), Some(program)).unwrap();
    assert_eq!(answer.status, 204, "{}", answer.body);
}

fn received(dev: &Dev, sink: &str) -> Vec<Value> {
    let shown = dev.http.get(&format!("/dev/sink/{sink}/requests")).json();
    shown["requests"].as_array().expect("a list").clone()
}

/// The status and the attempts of every delivery, oldest first.
fn deliveries(dev: &Dev) -> Vec<(String, i64)> {
    let conn = dev.reader();
    let mut select = conn.prepare("SELECT status, attempts FROM webhook_deliveries ORDER BY id").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn detail(dev: &Dev, check: &str) -> String {
    let ready = dev.http.get("/readyz");
    assert_eq!(ready.status, 200, "{}", ready.body);
    ready.json()["checks"][check]["detail"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_event_that_is_posted_or_inserted_arrives_signed_at_whoever_subscribed() {
    let dev = Dev::start(&[]);
    subscribe(&dev, "shop", &["order.*", "member.registered"]);
    subscribe(&dev, "other", &["invoice.paid"]);
    let id = dev.api.done("/v1/events", &order(1))["event_id"].clone();
    let first = until("it has arrived", || received(&dev, "shop").first().cloned());
    assert_eq!((&first["verified"], &first["headers"]["webhook-id"]), (&json!(true), &id));
    let body: Value = serde_json::from_str(first["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&body["type"], &body["data"], &body["tenant"]),
        (&json!("order.paid"), &json!({"n": 1}), &json!("default"))
    );
    let insert = "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
                  VALUES ('by-hand-1', 'member.registered', 'member', '7', '{\"uid\": 7, \"parent_uid\": null}')";
    dev.writer().execute_batch(insert).unwrap();
    let second = until("what another program inserted has arrived", || received(&dev, "shop").get(1).cloned());
    assert_eq!((&second["verified"], &second["headers"]["webhook-id"]), (&json!(true), &json!("by-hand-1")));
    assert!(received(&dev, "other").is_empty());
}

#[test]
fn a_key_that_dev_made_before_keys_had_a_form_opens_v1() {
    let place = Place::new();
    let dir = place.data().join("dev");
    std::fs::create_dir_all(&dir).unwrap();
    let keys = json!({"bot_secret": "b".repeat(48), "service_role_key": "s".repeat(48), "anon_key": "a".repeat(48), "api_key": MADE_BEFORE});
    std::fs::write(dir.join("keys.json"), keys.to_string()).unwrap();
    let mut dev = Dev::start_in(place, &[]);
    assert_eq!(dev.api.secret(), MADE_BEFORE);
    assert_eq!(dev.api.post("/v1/events", &order(1)).status, 202);
    dev.start_again();
    assert_eq!(dev.api.get("/v1/endpoints").status, 200);
    assert_eq!(dev.http.get("/v1/endpoints").status, 401, "the bot's secret is no key");
}

#[test]
fn the_alert_chat_is_told_of_an_endpoint_that_is_gone() {
    let dev = Dev::start(&["communications.alert_chat=77"]);
    let id = subscribe(&dev, "shop", &["order.paid"]);
    program(&dev, "shop", &json!({"status": 410}));
    dev.api.done("/v1/events", &order(1));
    let told = until("the chat is told", || dev.texts(77).first().cloned());
    assert!(told.contains(&id) && told.contains("gone") && told.contains("default"), "{told}");
    assert_eq!(dev.api.get(&format!("/v1/endpoints/{id}")).json()["disabled_reason"], "gone");
}

#[test]
fn a_rule_of_the_file_sends_its_block_and_one_that_cannot_work_is_refused_with_its_line() {
    let place = Place::new();
    let rule =
        |block: &str| format!("[[communications.rule]]\nevent = \"member.*\"\nblock = \"{block}\"\nchat = -88\n");
    let file = place.path("pillarbox.toml");
    for (block, what) in [
        ("event_member_registred", "the nearest is `event_member_registered`"),
        ("event_member_registered", "this block names something that member.wallet_connected does not have"),
    ] {
        std::fs::write(&file, rule(block)).unwrap();
        for verb in [&["config", "check"][..], &["serve"]] {
            let refused = place.command(&[verb, &["--config", text(&file)]].concat()).output().unwrap();
            let said = String::from_utf8_lossy(&[refused.stdout, refused.stderr].concat()).into_owned();
            assert_eq!(refused.status.code(), Some(3), "{said}");
            assert!(said.contains("pillarbox.toml:1]") && said.contains(what), "{said}");
        }
    }
    std::fs::write(&file, rule("event_any")).unwrap();
    let dev = Dev::start_in(place, &[]);
    let insert = "INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
                  VALUES ('e-1', 'member.registered', 'member', '<7>', '{\"uid\": 7, \"parent_uid\": null}')";
    dev.writer().execute_batch(insert).unwrap();
    let told = until("the chat is told", || dev.texts(-88).first().cloned());
    // As a reader sees it: the formatting was read, and the id was none.
    assert!(told.contains("member.registered, member <7>"), "{told}");
}

#[test]
fn an_event_that_no_block_can_say_is_tried_again_and_holds_up_no_webhook() {
    let place = Place::new();
    let rule = "[[communications.rule]]\nevent = \"order.*\"\nblock = \"event_member_registered\"\nchat = -88\n";
    std::fs::write(place.path("pillarbox.toml"), rule).unwrap();
    let dev = Dev::start_in(place, &[]);
    subscribe(&dev, "shop", &["order.paid"]);
    let id = dev.api.done("/v1/events", &order(1))["event_id"].as_str().unwrap().to_owned();
    until("the webhook has arrived", || received(&dev, "shop").first().cloned());
    let event = until("the rule's refusal is noted", || {
        Some(dev.api.get(&format!("/v1/events/{id}")).json()).filter(|event| event["attempts"] == 1)
    });
    assert!(event["last_error"].as_str().unwrap().contains("block_not_rendered"), "{event}");
    dev.advance(Duration::from_secs(31));
    until("it is tried again", || (dev.api.get(&format!("/v1/events/{id}")).json()["attempts"] == 2).then_some(()));
    assert_eq!(received(&dev, "shop").len(), 1, "webhooks have accepted it");
    assert_eq!(detail(&dev, "events"), "");
    dev.advance(Duration::from_secs(600));
    until("a person is told that it waits", || {
        detail(&dev, "events").starts_with("an event has waited 10 minutes for a consumer").then_some(())
    });
    assert!(dev.texts(-88).is_empty());
}

#[test]
fn dev_sends_nothing_to_this_machine_when_it_is_told_not_to() {
    let dev = Dev::start(&["webhooks.allow_insecure=false"]);
    let url = format!("{}/dev/sink/shop", dev.http.url());
    let refused = dev.api.post("/v1/endpoints", &json!({"url": url}));
    assert_eq!(refused.status, 422, "{}", refused.body);
    let public = dev.api.post("/v1/endpoints", &json!({"url": "https://example.org/hook"}));
    assert_eq!(public.status, 201, "{}", public.body);
}

#[test]
fn certificates_that_cannot_be_used_are_found_by_config_check() {
    let place = Place::new();
    let empty = place.path("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (file, what) in [(text(&empty), "holds no certificate"), ("/missing/ca.pem", "cannot be read")] {
        let set = format!("webhooks.ca_file={file}");
        let refused = place.command(&["config", "check", "--set", &set]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("webhooks.ca_file = {file} [--set]")) && said.contains(what), "{said}");
    }
}

#[test]
fn serve_may_not_send_to_this_machine_whoever_asks_for_it() {
    let place = Place::new();
    let refused = place.command(&["serve", "--set", "webhooks.allow_insecure=true"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("only `pillarbox dev` may do that"), "{said}");
}

#[test]
fn a_key_of_secrets_that_cannot_be_used_holds_back_webhooks_and_nothing_else() {
    let mut dev = Dev::start(&[]);
    let id = subscribe(&dev, "shop", &["order.paid"]);
    let key = dev.place.data().join("webhooks.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    dev.process.stop();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    dev.start_again();
    // It listens on another port now, and so does its sink.
    let url = format!("{}/dev/sink/shop", dev.http.url());
    let moved = dev.api.try_call("PATCH", &format!("/v1/endpoints/{id}"), Some(&json!({"url": url}))).unwrap();
    assert_eq!(moved.status, 200, "{}", moved.body);
    assert_eq!(dev.api.post("/v1/events", &order(1)).status, 202);
    until("the delivery waits", || (deliveries(&dev) == [("pending".to_owned(), 0)]).then_some(()));
    assert!(detail(&dev, "webhooks").contains("webhooks.key cannot be used"), "{}", detail(&dev, "webhooks"));
    assert!(received(&dev, "shop").is_empty());
    let away = dev.place.path("webhooks.key");
    std::fs::rename(&key, &away).unwrap();
    until("it is known that the key is missing", || detail(&dev, "webhooks").contains("is missing").then_some(()));
    std::fs::set_permissions(&away, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&away, &key).unwrap();
    dev.advance(Duration::from_secs(3600));
    until("it is sent as soon as there is a key", || received(&dev, "shop").first().cloned());
    assert_eq!(detail(&dev, "webhooks"), "");
}

#[test]
fn an_attempt_that_is_under_way_ends_before_the_server_does() {
    let mut dev = Dev::start(&[]);
    subscribe(&dev, "shop", &["order.paid"]);
    program(&dev, "shop", &json!({"delay_ms": 1500}));
    dev.api.done("/v1/events", &order(1));
    until("it is under way", || received(&dev, "shop").first().cloned());
    dev.process.stop();
    assert_eq!(deliveries(&dev), [("delivered".to_owned(), 1)], "{}", dev.process.log());
}

#[test]
fn analytics_has_a_line_for_every_event() {
    let place = Place::new();
    let dir = place.path("analytics");
    let dev = Dev::start_in(place, &[&format!("analytics.dir={}", text(&dir))]);
    let ids: Vec<_> = (0..3).map(|number| dev.api.done("/v1/events", &order(number))["event_id"].clone()).collect();
    until("the file has them", || {
        let file = std::fs::read_dir(&dir).ok()?.next()?.ok()?.path();
        let lines = std::fs::read_to_string(file).ok()?;
        ids.iter().all(|id| lines.contains(id.as_str().unwrap())).then_some(())
    });
}

#[test]
fn what_a_deleted_endpoint_leaves_is_removed_beside_the_sending() {
    let dev = Dev::start(&[]);
    let id = subscribe(&dev, "shop", &["order.paid"]);
    program(&dev, "shop", &json!({"status": 500}));
    dev.api.done("/v1/events", &order(1));
    until("it has failed once", || (deliveries(&dev) == [("pending".to_owned(), 1)]).then_some(()));
    let deleted = dev.api.try_call("DELETE", &format!("/v1/endpoints/{id}"), None).unwrap();
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    until("nothing is left", || {
        dev.http.done("/dev/jobs/webhooks-sweep/run", &json!({}));
        let left: i64 = value(
            &dev.reader(),
            "SELECT (SELECT count(*) FROM webhook_endpoints) + (SELECT count(*) FROM webhook_deliveries)",
            [],
        );
        (left == 0).then_some(())
    });
}

//! `pillarbox events`: domain events by hand, without a server and beside one.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Place, Ran};

fn events(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["events"], args].concat())
}

fn emit(place: &Place, args: &[&str]) -> String {
    let ran = events(place, &[&["emit", "order.paid", "--about", "order:17"], args].concat()).succeeded();
    ran.stdout.trim_end().to_owned()
}

fn texts(rows: &[Value], key: &str) -> Vec<String> {
    rows.iter().map(|row| row[key].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn an_event_is_emitted_with_its_data_byte_for_byte_and_shown_whole() {
    let place = Place::migrated();
    let data = "{\"b\": 0.10,\"a\":1e400, \"u\":\"\u{2028}\\/\"}";
    fs::write(place.path().join("data.json"), format!("{data}\n")).unwrap();
    let id = emit(&place, &["--data-file", "data.json"]);
    assert_eq!(id.len(), 36, "alone on its line: {id}");
    let shown = events(&place, &["show", &id]).succeeded();
    assert!(shown.stdout.contains(data), "{}", shown.stdout);
    let id = emit(&place, &["--version", "2", "--occurred-at", "2026-11-30"]);
    let row = events(&place, &["show", &id]).succeeded().row();
    assert_eq!((&row["event_id"], &row["type"], &row["version"]), (&json!(id), &json!("order.paid"), &json!(2)));
    assert_eq!((&row["aggregate"], &row["status"]), (&json!({"type": "order", "id": "17"}), &json!("pending")));
    assert_eq!((&row["occurred_at"], &row["data"]), (&json!("2026-11-30T00:00:00.000Z"), &json!({})));
    events(&place, &["show", "none"]).refused(1, &["tenant default has no event none", "events list"]);
}

#[test]
fn the_same_id_is_one_event_and_another_content_under_it_is_refused() {
    let place = Place::migrated();
    let id = "01970000-0000-7000-8000-000000000001";
    let same = ["--event-id", id, "--occurred-at", "2026-11-30", "--data", "{\"a\":1}"];
    assert_eq!((emit(&place, &same).as_str(), emit(&place, &same).as_str()), (id, id));
    assert_eq!(events(&place, &["list"]).succeeded().rows().len(), 1);
    let other = ["emit", "order.paid", "--about", "order:17", "--event-id", id, "--data", "{\"a\":2}"];
    events(&place, &other).refused(1, &[id]);
}

#[test]
fn what_is_no_event_is_refused_with_what_to_do() {
    let place = Place::migrated();
    let refused =
        |args: &[&str], code, parts: &[&str]| events(&place, &[&["emit"], args].concat()).refused(code, parts);
    refused(&["lead.received", "--about", "lead:1"], 1, &["lead.received"]);
    refused(&["Order", "--about", "order:1"], 1, &["type"]);
    refused(&["order.paid", "--about", "order"], 2, &["order:17"]);
    refused(&["order.paid", "--about", "order:1", "--data", "[]"], 1, &["data"]);
    refused(&["order.paid", "--about", "order:1", "--event-id", "1"], 1, &["event_id"]);
    refused(&["order.paid", "--about", "order:1", "--tenant", "nobody"], 1, &["no tenant nobody"]);
    refused(&["order.paid", "--about", "order:1", "--data-file", "none"], 1, &["cannot read none"]);
}

#[test]
fn with_strict_types_only_registered_ones_are_taken() {
    let place = Place::migrated();
    let strict = ["emit", "order.paid", "--about", "order:1", "--set", "events.strict_types=true"];
    events(&place, &strict).refused(1, &["order.paid is not registered", "pillarbox events register order.paid"]);
    let row = events(&place, &["register", "order.paid", "order.refunded"]).succeeded().rows();
    assert_eq!(texts(&row, "what"), ["registered", "registered"]);
    assert_eq!(events(&place, &["register", "order.paid"]).succeeded().row()["changed"], false);
    events(&place, &strict).succeeded();
    events(&place, &["register", "lead.received"]).refused(1, &["lead.received"]);
    assert_eq!(texts(&events(&place, &["types"]).succeeded().rows(), "type"), ["order.paid", "order.refunded"]);
    events(&place, &["unregister", "order.paid"]).succeeded();
    let again = events(&place, &["unregister", "order.paid"]);
    assert_eq!((again.code, &again.row()["what"]), (1, &json!("is not registered")));
    events(&place, &strict).refused(1, &["not registered"]);
}

#[test]
fn a_list_is_narrowed_and_goes_on_behind_its_last_event() {
    let place = Place::migrated();
    let ids: Vec<String> = (0..5).map(|_| emit(&place, &[])).collect();
    place.write(&format!(
        "UPDATE outbox_events SET failed_at = 1000, attempts = 10, last_error = 'webhooks: busy' WHERE event_id = '{}';
         UPDATE outbox_events SET published_at = 1000, acceptances = '{{\"webhooks\": 1000}}' WHERE event_id = '{}'",
        ids[1], ids[3]
    ));
    let list = |args: &[&str]| events(&place, &[&["list"], args].concat()).succeeded();
    assert_eq!(texts(&list(&["--status", "failed"]).rows(), "event_id"), [ids[1].clone()]);
    assert_eq!(texts(&list(&["--status", "published"]).rows(), "event_id"), [ids[3].clone()]);
    let mut pending = texts(&list(&["--status", "pending"]).rows(), "event_id");
    pending.sort();
    assert_eq!(pending, [ids[0].clone(), ids[2].clone(), ids[4].clone()]);
    assert_eq!(list(&["--type", "order.refunded"]).stdout, "");
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["--limit", "2"];
        if let Some(after) = &after {
            args.extend(["--after", after]);
        }
        let page = list(&args);
        seen.extend(texts(&page.rows(), "event_id"));
        match page.stderr.trim().split_once("--after ") {
            Some((_, next)) => after = Some(next.to_owned()),
            None => break,
        }
    }
    seen.sort();
    assert_eq!(seen, ids);
    list(&["--tenant", "default"]);
    events(&place, &["list", "--after", "x"]).refused(1, &["--after"]);
    events(&place, &["list", "--status", "dead"]).refused(2, &["pending", "published", "failed"]);
}

#[test]
fn what_was_given_up_is_handed_over_again_one_by_one_or_all() {
    let place = Place::migrated();
    let ids: Vec<String> = (0..4).map(|_| emit(&place, &[])).collect();
    place.write("UPDATE outbox_events SET failed_at = 1000, attempts = 10, last_error = 'webhooks: busy'");
    place.write(&format!(
        "UPDATE outbox_events SET failed_at = NULL, published_at = 1000 WHERE event_id = '{}'",
        ids[3]
    ));
    let ran = events(&place, &["retry", &ids[0], &ids[0], &ids[3], "none"]);
    let retried: Vec<_> = ran.rows().iter().map(|row| row["retried"].clone()).collect();
    assert_eq!((ran.code, retried), (1, vec![json!(true), json!(false), json!(false)]));
    assert_eq!(texts(&ran.rows(), "what")[2], "no such event");
    assert_eq!(
        events(&place, &["retry", "--all-failed", "--type", "order.refunded"]).succeeded().row(),
        json!({"retried": 0})
    );
    assert_eq!(events(&place, &["retry", "--all-failed"]).succeeded().row(), json!({"retried": 2}));
    assert_eq!(events(&place, &["list", "--status", "failed"]).succeeded().stdout, "");
    assert_eq!(events(&place, &["retry", "--all-failed"]).succeeded().row(), json!({"retried": 0}));
    events(&place, &["retry"]).refused(2, &["<ID>"]);
}

#[test]
fn the_catalogue_needs_no_installation_and_its_document_is_the_one_in_docs() {
    let place = Place::new();
    let document = events(&place, &["catalogue", "--markdown"]).succeeded().stdout;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events.md");
    assert_eq!(document, fs::read_to_string(page).unwrap());
    let rows = events(&place, &["catalogue", "--json"]).succeeded().rows();
    assert!(rows.iter().all(|row| document.contains(&format!("## {}\n", row["type"].as_str().unwrap()))));
    let lead = rows.iter().find(|row| row["type"] == "lead.received").unwrap();
    assert_eq!(
        (&lead["version"], &lead["source"], &lead["fields"][0]["name"]),
        (&json!(1), &json!("leads"), &json!("lead_id"))
    );
    assert!(lead["example"]["lead_id"].is_string(), "{lead}");
    assert!(!place.data().exists(), "looking makes nothing");
}

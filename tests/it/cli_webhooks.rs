//! `pillarbox webhooks endpoints`: where events go, without a server beside.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Place, Ran};

const URL: &str = "https://example.org/hooks?token=hidden";

fn endpoints(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["webhooks", "endpoints"], args].concat())
}

fn made(place: &Place, args: &[&str]) -> Value {
    endpoints(place, &[&["create"], args].concat()).succeeded().row()
}

fn id_of(row: &Value) -> String {
    row["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_endpoint_is_made_with_a_secret_that_is_shown_once() {
    let place = Place::migrated();
    let ran = endpoints(
        &place,
        &["create", URL, "--description", "shop", "--event-types", "lead.*,order.paid", "--rate", "5"],
    );
    let row = ran.succeeded().row();
    let secret = row["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && row["id"].as_str().unwrap().starts_with("ep_"), "{row}");
    assert_eq!((&row["status"], &row["event_types"]), (&json!("active"), &json!(["lead.*", "order.paid"])));
    for verb in [vec!["list"], vec!["show", row["id"].as_str().unwrap()]] {
        let shown = endpoints(&place, &verb).succeeded();
        let again = shown.row();
        assert_eq!((&again["url"], &again["rate_per_second"]), (&json!(URL), &json!(5)));
        assert!(!shown.stdout.contains(secret) && again["secret"].is_null());
        assert!(secret.ends_with(again["secret_last_four"].as_str().unwrap()), "{again}");
    }
    assert_eq!(endpoints(&place, &["list"]).stderr, "");
}

#[test]
fn a_lost_key_is_replaced_on_purpose_and_then_every_secret() {
    let place = Place::migrated();
    let id = id_of(&made(&place, &[URL]));
    let key = place.data().join("webhooks.key");
    place.run(&["webhooks", "new-key", "--yes"]).refused(1, &["webhooks.key is there and is kept"]);
    let old = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    endpoints(&place, &["rotate-secret", &id]).refused(1, &["missing", "new-key"]);
    place.run(&["webhooks", "new-key"]).refused(2, &["--yes"]);
    place.run(&["webhooks", "new-key", "--yes"]).succeeded();
    assert_ne!(fs::read(&key).unwrap(), old);
    let rotated = endpoints(&place, &["rotate-secret", &id]).succeeded().row();
    assert_eq!(rotated["previous_valid_until"], Value::Null, "what was sealed with the lost key signs nothing");
    let again = endpoints(&place, &["rotate-secret", &id]).succeeded().row();
    assert!(again["previous_valid_until"].is_string(), "it opens");
}

#[test]
fn an_own_secret_comes_from_a_file_and_a_rotation_keeps_the_old_one_for_a_while() {
    let place = Place::migrated();
    fs::write(place.path().join("mine"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    fs::write(place.path().join("short"), "whsec_AAAA").unwrap();
    endpoints(&place, &["create", URL, "--secret-file", "short"]).refused(1, &["24 to 64 bytes"]);
    let row = made(&place, &[URL, "--secret-file", "mine"]);
    assert_eq!(row["secret"], "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let id = id_of(&row);
    let rotated = endpoints(&place, &["rotate-secret", &id, "--overlap", "2h"]).succeeded().row();
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsec_") && rotated["previous_valid_until"].is_string());
    let leaked = endpoints(&place, &["rotate-secret", &id, "--overlap", "0"]).succeeded().row();
    assert_eq!(leaked["previous_valid_until"], Value::Null);
    endpoints(&place, &["rotate-secret", &id, "--overlap", "8d"]).refused(1, &["overlap_seconds", "604800"]);
    endpoints(&place, &["rotate-secret", "ep_none"]).refused(1, &["no endpoint ep_none", "endpoints list"]);
}

#[test]
fn an_endpoint_is_changed_paused_disabled_and_begun_anew() {
    let place = Place::migrated();
    let id = id_of(&made(&place, &[URL, "--event-types", "lead.*", "--rate", "5", "--description", "a"]));
    let update = |args: &[&str]| endpoints(&place, &[&["update", &id], args].concat()).succeeded().row();
    let row = update(&["--all-types", "--no-rate", "--description", "", "--url", "https://example.org/other"]);
    assert_eq!(
        (&row["event_types"], &row["rate_per_second"], &row["description"]),
        (&json!(null), &json!(null), &json!(""))
    );
    assert_eq!(update(&["--event-types", "order.paid"])["url"], "https://example.org/other");
    let becomes = |verb: &str| endpoints(&place, &[verb, &id]).succeeded().row()["what"].clone();
    assert_eq!(becomes("pause"), "is paused");
    assert_eq!(becomes("disable"), "is disabled: manual");
    assert_eq!(becomes("disable"), "is disabled: manual");
    assert_eq!(becomes("activate"), "is active");
    let some = endpoints(&place, &["pause", "ep_none", &id, &id]);
    assert_eq!((some.code, some.rows().len(), &some.rows()[0]["status"]), (1, 2, &json!(null)));
}

#[test]
fn deleting_asks_first_and_is_final() {
    let place = Place::migrated();
    let id = id_of(&made(&place, &[URL]));
    endpoints(&place, &["delete", &id]).refused(2, &["this is final; add --yes", "nothing was deleted"]);
    endpoints(&place, &["delete", &id, "--yes"]).succeeded();
    endpoints(&place, &["show", &id]).refused(1, &["no endpoint"]);
    assert_eq!(endpoints(&place, &["delete", &id, "--yes"]).code, 1);
    assert_eq!(endpoints(&place, &["list"]).succeeded().stdout, "");
}

#[test]
fn where_a_webhook_may_not_go_is_said_when_it_is_written() {
    let place = Place::migrated();
    for (url, why) in [
        ("http://example.org/hooks", "https://"),
        ("https://127.0.0.1/hooks", "not public"),
        ("https://user:hunter2@example.org/hooks", "no user name"),
        ("https://example.org:8443/hooks", "port"),
        ("hooks", "not a URL"),
    ] {
        let ran = endpoints(&place, &["create", url]);
        ran.refused(1, &["the address is refused", why, "docs/webhooks.md"]);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    endpoints(&place, &["create", URL, "--event-types", "Lead"]).refused(1, &["event_types"]);
    endpoints(&place, &["create", URL, "--rate", "0"]).refused(1, &["rate_per_second"]);
}

#[test]
fn a_tenants_endpoints_are_its_own() {
    let place = Place::migrated();
    place.run(&["tenants", "create", "acme"]).succeeded();
    let id = id_of(&made(&place, &[URL]));
    endpoints(&place, &["create", URL, "--tenant", "nobody"]).refused(1, &["no tenant nobody"]);
    for verb in [vec!["show", &id], vec!["update", &id, "--url", URL], vec!["rotate-secret", &id]] {
        endpoints(&place, &[&verb[..], &["--tenant", "acme"]].concat()).refused(1, &["tenant acme has no endpoint"]);
    }
    assert_eq!(endpoints(&place, &["list", "--tenant", "acme"]).succeeded().stdout, "");
    let page = endpoints(&place, &["create", URL]).succeeded();
    let first = endpoints(&place, &["list", "--limit", "1"]).succeeded();
    assert_eq!(first.row()["id"], id);
    let place_of = first.stderr.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(endpoints(&place, &["list", "--after", &place_of]).succeeded().row()["id"], page.row()["id"]);
}

//! The configuration of leads and of the proxies before them: defaults, forms of writing, rules, secrets.

use std::time::Duration;

use pillarbox::config::{Config, Delivery, LeadsConfig, Sources};
use pillarbox::kernel::secret::Secret;

use crate::config::{SECRET, TOKEN, assert_one, load, messages, refused, text};

/// A chat's id that is found nowhere else.
const CHAT: &str = "-100498765";

fn set(assignments: &[&str]) -> Sources {
    assignments.iter().fold(Sources::empty(), |sources, assignment| sources.with_set(*assignment))
}

fn leads(toml: &str) -> LeadsConfig {
    load(text(&format!("[leads]\n{toml}\n"))).leads
}

fn warnings_of(config: &Config) -> Vec<String> {
    let about = |key: &&str| key.starts_with("leads.") || *key == "http.trusted_proxies";
    config.warnings().iter().map(|warning| warning.key.as_str()).filter(about).map(str::to_owned).collect()
}

#[test]
fn an_installation_without_leads_has_them_off_and_hears_nothing_of_them() {
    let config = load(Sources::empty());
    let leads = &config.leads;
    assert!(leads.allowed_origins.is_empty() && !leads.allow_originless);
    assert_eq!((leads.rate_limit_per_hour, leads.min_fill_ms, leads.max_body_bytes), (8, 1500, 65_536));
    assert_eq!((leads.telegram_timeout, leads.delivery), (Duration::from_secs(5), Delivery::Off));
    assert_eq!((leads.phone_region.as_str(), leads.retention_days), ("RU", None));
    assert!(leads.chat_id.is_none() && leads.service_role_key.is_none() && leads.anon_key.is_none());
    assert_eq!(warnings_of(&config), [""; 0]);
    let proxies: Vec<_> = config.http.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(proxies, ["127.0.0.0/8", "::1/128"]);
}

#[test]
fn lists_are_written_as_text_or_as_lists() {
    let two = ["https://a.example", "https://b.example"];
    for toml in [
        "allowed_origins = \"https://a.example, https://b.example\"",
        "allowed_origins = \"https://A.example https://b.example:443\"",
        "allowed_origins = [\"https://a.example\", 'https://b.example/',]",
    ] {
        assert_eq!(leads(toml).allowed_origins, two, "{toml}");
    }
    assert_eq!(load(set(&["leads.allowed_origins=https://a.example,https://b.example"])).leads.allowed_origins, two);
    assert!(leads("allowed_origins = []").allowed_origins.is_empty());
    let cleared = text("[leads]\nallowed_origins = \"https://a.example\"\n").with_set("leads.allowed_origins=");
    assert!(load(cleared).leads.allowed_origins.is_empty());
    let proxies = text("[http]\ntrusted_proxies = [\"loopback\", \"10.0.0.0/8\"]\n");
    assert_eq!(load(proxies).http.trusted_proxies.len(), 3);
    assert!(load(set(&["http.trusted_proxies=none"])).http.trusted_proxies.is_empty());
}

#[test]
fn what_does_not_fit_is_told_with_what_would() {
    for (toml, parts) in [
        ("allowed_origins = \"*\"", &["leads.allowed_origins = *", "every page"][..]),
        ("allowed_origins = \"https://a.example/form\"", &["ends after host and port"]),
        ("allowed_origins = [1]", &["leads.allowed_origins [box.toml:2]", "array"]),
        ("allowed_origins = [\"null\"]", &["leads.allowed_origins = null", "sandbox"]),
        ("allow_originless = \"true\"", &["true or false is needed", "remove the quotes"]),
        ("allow_originless = 1", &["write true or false"]),
        ("rate_limit_per_hour = 101", &["from 1 to 100"]),
        ("min_fill_ms = 499", &["from 500 to 30000"]),
        ("max_body_bytes = 262145", &["from 4096 to 262144"]),
        ("telegram_timeout = \"16s\"", &["from \"1s\" to \"15s\""]),
        ("phone_region = \"RUS\"", &["leads.phone_region = RUS", "ISO 3166"]),
        ("phone_region = \"XX\"", &["leads.phone_region = XX", "ISO 3166"]),
        ("retention_days = 3651", &["from 0 to 3650"]),
        ("delivery = \"on\"", &["auto, worker, rpc, off"]),
    ] {
        assert_one(text(&format!("[leads]\n{toml}\n")), parts);
    }
    assert_one(set(&["leads.allow_originless=yes"]), &["leads.allow_originless = yes", "write true or false"]);
    assert_one(set(&["http.trusted_proxies=10.0.0.0/33"]), &["http.trusted_proxies = 10.0.0.0/33", "loopback"]);
    assert_one(set(&["http.trusted_proxies=none,loopback"]), &["`none` stands beside"]);
    assert_one(text("[bot]\nevent_source = true\n"), &["bot.event_source [box.toml:2]", "boolean"]);
}

#[test]
fn values_are_taken_as_people_write_them() {
    assert!(leads("allow_originless = true").allow_originless);
    assert!(load(set(&["leads.allow_originless=true"])).leads.allow_originless);
    assert_eq!(leads("phone_region = \"de\"").phone_region, "DE");
    assert_eq!(leads("retention_days = 0").retention_days, Some(0));
    for toml in [format!("chat_id = {CHAT}"), format!("chat_id = \"{CHAT}\"")] {
        assert_eq!(leads(&toml).chat_id.as_ref().map(Secret::expose), Some(CHAT), "{toml}");
    }
    for chat in ["0", "@mine", "1.5", "-", "99999999999999999999"] {
        let found = messages(set(&[&format!("leads.chat_id={chat}")]));
        assert!(found.len() == 1 && found[0].starts_with("leads.chat_id [--set]: this is not the id"), "{found:?}");
    }
}

#[test]
fn delivery_is_resolved_and_a_worker_needs_token_and_chat() {
    let (token, chat) = (format!("telegram.token={TOKEN}"), format!("leads.chat_id={CHAT}"));
    let delivery = |assignments: &[&str]| load(set(assignments)).leads.delivery;
    assert_eq!(delivery(&[&token, &chat]), Delivery::Worker);
    assert_eq!(delivery(&[&token]), Delivery::Off);
    assert_eq!(delivery(&[&chat]), Delivery::Off);
    assert_eq!(delivery(&[&token, &chat, "leads.delivery=off"]), Delivery::Off);
    assert_eq!(delivery(&["leads.delivery=rpc"]), Delivery::Rpc);
    assert_eq!(delivery(&[&token, &chat, "leads.delivery=worker"]), Delivery::Worker);
    let required = "it is required by leads.delivery = \"worker\"";
    assert_one(set(&["leads.delivery=worker", &token]), &["leads.chat_id [default]", required, "chat_id_file"]);
    assert_one(set(&["leads.delivery=worker", &chat]), &["telegram.token [default]", required]);
    // A broken one is one problem, not also a missing one.
    assert_one(set(&["leads.delivery=worker", &token, "leads.chat_id=x"]), &["not the id of a chat"]);
}

#[test]
fn one_key_cannot_have_two_roles() {
    let variables = [("SUPABASE_SERVICE_ROLE_KEY", SECRET), ("SUPABASE_ANON_KEY", SECRET)];
    assert_one(
        Sources::empty().with_variables(variables),
        &["leads.anon_key [environment variable SUPABASE_ANON_KEY]", "the same as leads.service_role_key"],
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning_once_there_are_leads() {
    let origin = "leads.allowed_origins=https://a.example";
    let key = format!("leads.service_role_key={SECRET}");
    let warned = |assignments: &[&str]| {
        let mut found = warnings_of(&load(set(assignments)));
        found.dedup();
        found
    };
    assert_eq!(warned(&[origin]), ["leads.chat_id"], "leads come in and nobody is told");
    assert_eq!(warned(&[origin, "leads.delivery=off"]), [""; 0], "that is meant");
    assert_eq!(warned(&[origin, "leads.delivery=rpc"]), ["leads.service_role_key"], "nobody could claim");
    assert_eq!(warned(&["leads.min_fill_ms=500"]), ["leads.allowed_origins"]);
    assert_eq!(warned(&["leads.allowed_origins=http://a.example"]), ["leads.allowed_origins", "leads.chat_id"]);
    assert_eq!(warned(&["leads.allowed_origins=http://localhost:3000"]), ["leads.chat_id"]);
    assert_eq!(warned(&["leads.allow_originless=true"]), ["leads.chat_id"]);
    // A secret in an argument is a warning of its own.
    assert_eq!(warned(&[origin, &key]), ["leads.chat_id", "leads.service_role_key"]);
    let variables = |more: &[(&'static str, &'static str)]| {
        let all = [("SUPABASE_SERVICE_ROLE_KEY", SECRET)].into_iter().chain(more.iter().copied());
        let config = load(set(&[origin]).with_variables(all));
        warnings_of(&config)
    };
    assert_eq!(variables(&[]), ["leads.chat_id"]);
    assert_eq!(variables(&[("PILLARBOX_LEADS__CHAT_ID", CHAT)]), ["leads.chat_id"]);
    assert_eq!(variables(&[("PILLARBOX_LEADS__CHAT_ID", CHAT), ("TELEGRAM_BOT_TOKEN", TOKEN)]), [""; 0]);
    assert_eq!(variables(&[("SUPABASE_ANON_KEY", "short")]), ["leads.chat_id", "leads.anon_key"]);
    assert_eq!(warned(&["http.trusted_proxies=0.0.0.0/0"]), ["http.trusted_proxies"]);
}

#[test]
fn keys_and_chat_are_shown_nowhere() {
    let variables = [("SUPABASE_SERVICE_ROLE_KEY", SECRET), ("PILLARBOX_LEADS__CHAT_ID", CHAT)];
    let config = load(Sources::empty().with_variables(variables).with_set("leads.anon_key=not-to-be-seen-either"));
    let warnings: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    let page = format!("{config:?} {:?} {}", config.settings(), warnings.join(" "));
    assert!(!page.contains("not-to-be-seen") && !page.contains(CHAT), "{page}");
    for toml in [
        format!("chat_id = {CHAT}9999999999999999"),
        format!("chat_id = [\"{CHAT}\"]"),
        format!("chat_id = {CHAT}.5"),
        format!("chat = \"{CHAT}\""),
        format!("allowed_origins = \"https://me:{SECRET}@a.example\""),
        format!("allowed_origins = [\"https://me:{SECRET}@a.example\"]"),
        format!("service_role_key = [\"{SECRET}\"]"),
    ] {
        let errors = refused(text(&format!("[leads]\n{toml}\n")));
        let page = format!("{errors} {errors:?}");
        assert!(!page.contains("not-to-be-seen") && !page.contains(CHAT), "{page}");
    }
}

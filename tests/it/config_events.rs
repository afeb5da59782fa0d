//! The configuration of webhooks, events, analytics and communications: defaults, forms, rules between keys, and the
//! rules that are tables of the file.

use std::time::Duration;

use pillarbox::config::{Config, Sources};

use crate::config::{assert_one, load, messages, text};

/// A chat's id that is found nowhere else.
const CHAT: &str = "-100498765";

fn set(assignments: &[&str]) -> Sources {
    assignments.iter().fold(Sources::empty(), |sources, assignment| sources.with_set(*assignment))
}

fn rule(event: &str, block: &str, chat: &str) -> String {
    format!("[[communications.rule]]\nevent = {event}\nblock = {block}\nchat = {chat}\n")
}

fn warnings_of(config: &Config, section: &str) -> Vec<String> {
    config.warnings().iter().filter(|w| w.key.starts_with(section)).map(ToString::to_string).collect()
}

#[test]
fn an_installation_that_sets_nothing_sends_webhooks_to_public_addresses_only() {
    let config = load(Sources::empty());
    let webhooks = &config.webhooks;
    assert_eq!((webhooks.timeout, webhooks.max_in_flight, webhooks.per_endpoint), (Duration::from_secs(15), 64, 4));
    assert_eq!((webhooks.ports.as_slice(), webhooks.allow_insecure), (&[443][..], false));
    assert!(webhooks.allow_networks.is_empty() && webhooks.ca_file.is_none());
    assert_eq!(webhooks.disable_after, Some(Duration::from_secs(5 * 86_400)));
    assert_eq!((config.events.strict_types, config.events.retention_days), (false, 30));
    assert!(config.analytics.dir.is_none());
    assert!(config.communications.rules.is_empty() && config.communications.alert_chat.is_none());
    for section in ["webhooks", "events", "analytics", "communications"] {
        assert_eq!(warnings_of(&config, section), [""; 0]);
    }
    assert_eq!(load(set(&["webhooks.disable_after=0"])).webhooks.disable_after, None, "0 is never");
}

#[test]
fn ports_are_numbers_or_lists_of_them() {
    for toml in ["ports = 8443", "ports = [8443]", "ports = \"8443\"", "ports = [0x20fb, 8443]", "ports = [\"8443\"]"] {
        assert_eq!(load(text(&format!("[webhooks]\n{toml}\n"))).webhooks.ports, [8443], "{toml}");
    }
    assert_eq!(load(set(&["webhooks.ports=443,8443"])).webhooks.ports, [443, 8443]);
    for (toml, part) in [
        ("ports = []", "the list of ports is empty"),
        ("ports = [0]", "an entry is no port"),
        ("ports = [70000]", "an entry is no port"),
        ("ports = [\"https\"]", "an entry is no port"),
        ("ports = true", "a port or a list of ports is needed"),
        ("ports = [443, \"8443\"]", "a port or a list of ports is needed"),
    ] {
        assert_one(text(&format!("[webhooks]\n{toml}\n")), &["webhooks.ports", "[box.toml:2]", part, "[443, 8443]"]);
    }
    assert_one(text("[store]\nreaders = [4]\n"), &["store.readers", "array"]);
    assert_one(text("[http]\ntrusted_proxies = [4]\n"), &["http.trusted_proxies", "array"]);
}

#[test]
fn what_only_dev_may_do_is_refused_elsewhere_whoever_asks_for_it() {
    let parts = ["webhooks.allow_insecure = true", "only `pillarbox dev`", "webhooks.allow_networks"];
    assert_one(set(&["webhooks.allow_insecure=true"]), &parts);
    assert_one(text("[webhooks]\nallow_insecure = true\n"), &[&parts[..], &["[box.toml:2]"]].concat());
    assert_one(Sources::empty().with_variables([("PILLARBOX_WEBHOOKS__ALLOW_INSECURE", "true")]), &parts);
    assert!(!load(set(&["webhooks.allow_insecure=false"])).webhooks.allow_insecure);
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    let parts = ["webhooks.per_endpoint = 65", "webhooks.max_in_flight, which is 64", "lower it"];
    assert_one(set(&["webhooks.per_endpoint=65"]), &parts);
}

#[test]
fn webhooks_that_are_probably_not_meant_so_are_warned_of() {
    let warned = |assignment: &str, key: &str| !warnings_of(&load(set(&[assignment])), key).is_empty();
    assert!(warned("webhooks.allow_networks=0.0.0.0/0", "webhooks.allow_networks"));
    assert!(!warned("webhooks.allow_networks=10.1.0.0/16", "webhooks"));
    assert!(!warned("webhooks.ports=8443", "webhooks"), "443 is always one");
    assert!(warned("webhooks.max_in_flight=4", "webhooks.per_endpoint"));
}

#[test]
fn rules_are_read_in_the_order_of_the_file_with_their_lines() {
    let first = rule("\"lead.received\"", "\"lead_received\"", CHAT);
    let toml = format!("# a comment\n[communications]\n\n{first}\n{}", rule("'member.*'", "'member_news'", "\"5\""));
    let config = load(text(&toml).with_set("telegram.token=1:a"));
    let told: Vec<_> = config
        .communications
        .rules
        .iter()
        .map(|rule| (rule.event.as_str(), rule.block.as_str(), rule.chat.expose(), rule.origin.to_string()))
        .collect();
    let expected = [
        ("lead.received", "lead_received", CHAT, "box.toml:4".to_owned()),
        ("member.*", "member_news", "5", "box.toml:9".to_owned()),
    ];
    assert_eq!(told, expected);
    assert_eq!(warnings_of(&config, "communications"), [""; 0]);
    assert!(!format!("{config:?}").contains(CHAT), "a chat is nobody else's business");
    let inline = "communications = { rule = [{ event = \"a.b\", block = \"b\", chat = 7 }] }";
    assert_eq!(load(text(inline)).communications.rules.len(), 1);
    assert!(load(text("[communications]\nrule = []\n")).communications.rules.is_empty());
    assert_eq!(load(text(&first)).communications.rules.len(), 1, "without a section before it");
}

#[test]
fn everything_that_is_wrong_with_rules_is_told_at_once_with_its_line() {
    let toml = "[[communications.rule]]\nevnt = \"lead.received\"\nblock = \"\"\nchat = \"the office\"\n\n\
                [[communications.rule]]\nevent = \"Lead.received\"\nblock = 7\nchat = 0\n\n\
                [[communications.rule]]\nevent = [\"lead.received\"]\nblock = \"a block\"\n";
    let expected = [
        ("communications.rule.evnt [box.toml:2]: unknown key", "`event`"),
        ("communications.rule.event [box.toml:1]: it is missing", "event, block and chat"),
        ("communications.rule.block =  [box.toml:3]: no content block", "name of a content block"),
        ("communications.rule.chat [box.toml:4]: this is not the id of a chat", "with its minus"),
        ("communications.rule.event = Lead.received [box.toml:7]: no event can be called so", "\"lead.received\""),
        ("communications.rule.block [box.toml:8]: text is needed", "in quotes"),
        ("communications.rule.chat [box.toml:9]: this is not the id of a chat", "with its minus"),
        ("communications.rule.event [box.toml:12]: text is needed", "in quotes"),
        ("communications.rule.block = a block [box.toml:13]: no content block", "name of a content block"),
        ("communications.rule.chat [box.toml:11]: it is missing", "event, block and chat"),
    ];
    let found = messages(text(toml));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (start, advice) in expected {
        let is_it = |message: &&String| message.starts_with(start) && message.contains(advice);
        assert!(found.iter().any(|message| is_it(&message)), "{start:?} … {advice:?} is not in {found:#?}");
    }
    assert!(!found.join("").contains("the office"), "{found:#?}");
}

#[test]
fn a_rule_that_is_there_already_is_refused() {
    let one = rule("\"lead.received\"", "\"lead_received\"", CHAT);
    let parts = ["communications.rule.event [box.toml:5]", "the rule of [box.toml:1] says the same", "remove one"];
    assert_one(text(&format!("{one}{one}")), &parts);
    load(text(&format!("{one}{}", rule("\"lead.received\"", "\"lead_received\"", "8"))));
}

#[test]
fn rules_come_from_the_file_only() {
    let parts = ["rules come from the configuration file only", "[[communications.rule]]"];
    for assignment in
        ["communications.rule=x", "communications.rule.event=lead.received", "communications.rule[0].block=x"]
    {
        assert_one(set(&[assignment]), &[&parts[..], &["communications.rule [--set]"]].concat());
    }
    for name in ["PILLARBOX_COMMUNICATIONS__RULE", "PILLARBOX_COMMUNICATIONS__RULE__EVENT"] {
        let variable = Sources::empty().with_variables([(name, CHAT)]);
        assert_one(variable, &[&parts[..], &[&format!("[environment variable {name}]")]].concat());
    }
    assert_one(text("[communications.rule]\nevent = \"a\"\n"), &["[box.toml:1]", "a list of tables, and this is none"]);
    assert_one(text("[communications]\nrule = \"a\"\n"), &["[box.toml:2]", "a list of tables, and this is none"]);
    assert_one(text("[[communications.rules]]\nevent = \"a\"\n"), &["[box.toml:1]", "`communications.rule`"]);
    assert_one(text("[[rule]]\nevent = \"a\"\n"), &["[box.toml:1]", "`communications.rule`"]);
}

#[test]
fn rules_that_can_hardly_ever_match_are_warned_of() {
    let warned = |event: &str| {
        let config = load(text(&rule(&format!("\"{event}\""), "\"b\"", "7")).with_set("telegram.token=1:a"));
        warnings_of(&config, "communications").join("")
    };
    assert!(
        warned("lead.recieved")
            .contains("[box.toml:1] nothing of pillarbox publishes lead.recieved; is lead.received meant?")
    );
    assert!(warned("leed.*").contains("is lead.* meant?"), "{}", warned("leed.*"));
    assert!(warned("invoice.paid").contains("what the tenant default posts"), "{}", warned("invoice.paid"));
    assert_eq!((warned("lead.received"), warned("member.*")), (String::new(), String::new()));
    let untold = |sources: Sources| warnings_of(&load(sources), "communications").join("");
    assert!(
        untold(set(&[&format!("communications.alert_chat={CHAT}")]))
            .starts_with("communications.alert_chat: telegram.token")
    );
    assert!(untold(text(&rule("\"lead.received\"", "\"b\"", "7"))).contains("telegram.token is unset"));
}

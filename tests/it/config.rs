//! The configuration: layers, names, messages, and the texts that are made from the table of keys.

use std::time::Duration;

use pillarbox::config::{
    Config, ConfigErrors, EventSource, KEYS, Kind, Lang, LogFormat, SecretForm, Sources, Synchronous, commented_file,
    key_tables,
};
use pillarbox::kernel::secret::Secret;
use proptest::prelude::*;

pub(crate) const TOKEN: &str = "123456:AAAA_not-to-be-seen";
pub(crate) const SECRET: &str = "not-to-be-seen-0123456789abcdef";

pub(crate) fn text(toml: &str) -> Sources {
    Sources::empty().with_text("box.toml", toml)
}

pub(crate) fn load(sources: Sources) -> Config {
    Config::load(sources).expect("the configuration is valid")
}

pub(crate) fn refused(sources: Sources) -> ConfigErrors {
    Config::load(sources).expect_err("the configuration is refused")
}

/// The messages, one each.
pub(crate) fn messages(sources: Sources) -> Vec<String> {
    refused(sources).problems().iter().map(ToString::to_string).collect()
}

/// The one message there is, which contains all of `parts`.
#[track_caller]
pub(crate) fn assert_one(sources: Sources, parts: &[&str]) {
    let found = messages(sources);
    assert_eq!(found.len(), 1, "{found:#?}");
    for part in parts {
        assert!(found[0].contains(part), "{part:?} is not in {:?}", found[0]);
    }
}

pub(crate) fn origin(config: &Config, key: &str) -> String {
    let setting = config.settings().iter().find(|setting| setting.key.dotted() == key).expect(key);
    setting.origin.to_string()
}

#[test]
fn nothing_set_gives_the_safe_defaults() {
    let config = load(Sources::empty());
    assert_eq!(config.store.data_dir.to_str(), Some("pillarbox-data"));
    assert_eq!(config.store.synchronous, Synchronous::Full);
    assert_eq!((config.store.readers, config.store.queue), (4, 4096));
    assert_eq!(config.store.busy_timeout, Duration::from_secs(5));
    assert_eq!(
        (config.store.cache_bytes, config.store.min_free_bytes, config.store.ballast_bytes),
        (32 << 20, 32 << 20, 8 << 20)
    );
    assert!(config.http.listen.ip().is_loopback());
    assert_eq!(config.http.listen.port(), 8080);
    assert_eq!((config.http.shutdown_timeout, config.http.body_limit_bytes), (Duration::from_secs(20), 1 << 20));
    assert_eq!((config.log.level.as_str(), config.log.format), ("info", LogFormat::Auto));
    assert!(config.bot.backend_secret.is_none() && config.telegram.token.is_none());
    assert!(matches!(config.bot.event_source, EventSource::Off));
    assert_eq!(config.bot.default_lang, Lang::Ru);
    let telegram = &config.telegram;
    assert_eq!(telegram.api_url.as_str(), "https://api.telegram.org/");
    assert_eq!((telegram.per_second, telegram.bulk_per_second, telegram.group_per_minute), (25, 20, 20));
    assert_eq!((telegram.chat_interval, telegram.timeout), (Duration::from_secs(1), Duration::from_secs(15)));
    assert_eq!((telegram.connect_timeout, telegram.max_in_flight), (Duration::from_secs(5), 16));
    assert_eq!(telegram.give_up_after, Duration::from_secs(86_400));
    assert_eq!(config.jobs.time_zone.name(), "UTC");
    assert_eq!(config.jobs.ledger_retention, Duration::from_secs(30 * 86_400));
    assert!(config.settings().iter().all(|setting| setting.origin.to_string() == "default"));
    assert_eq!(config.file(), None);
}

#[test]
fn the_stronger_layer_wins_and_is_named_as_the_origin() {
    let key = "store.data_dir";
    let file = || text("# a comment\n[store]\ndata_dir = \"of-file\"\n");
    let environment = || file().with_variables([("PILLARBOX_STORE__DATA_DIR", "of-environment")]);
    let set = || environment().with_set("store.data_dir=first").with_set("store.data_dir=of-set");
    let flag = || set().with_flag("--data-dir", key, "of-flag");
    for (sources, value, place) in [
        (file(), "of-file", "box.toml:3"),
        (environment(), "of-environment", "environment variable PILLARBOX_STORE__DATA_DIR"),
        (set(), "of-set", "--set"),
        (flag(), "of-flag", "--data-dir"),
    ] {
        let config = load(sources);
        assert_eq!(config.store.data_dir.to_str(), Some(value));
        assert_eq!(origin(&config, key), place);
    }
}

#[test]
fn every_key_can_be_set_in_every_layer() {
    for key in KEYS.iter().filter(|key| !key.is_secret()) {
        let unset = match key.kind {
            Kind::Integer { .. } => "0",
            Kind::Username => "example_bot",
            _ => "https://backend.example.org",
        };
        let value = key.default.unwrap_or(unset);
        let bare = value.bytes().all(|byte| byte.is_ascii_digit()) || matches!(key.kind, Kind::Switch);
        let toml = if bare { value.to_owned() } else { format!("\"{value}\"") };
        load(text(&format!("[{}]\n{} = {toml}\n", key.section, key.name)));
        load(Sources::empty().with_variables([(key.variable(), value)]));
        load(Sources::empty().with_set(format!("{}={value}", key.dotted())));
    }
    for key in KEYS.iter().filter(|key| key.is_secret()) {
        let value = match key.kind {
            Kind::Secret(SecretForm::ChatId) => "-1001",
            Kind::Secret(SecretForm::WebhookSecret) => "a-secret_of-9",
            _ => TOKEN,
        };
        for name in [Some(key.variable()), key.alias.map(str::to_owned)].into_iter().flatten() {
            let config = load(Sources::empty().with_variables([(name.as_str(), value)]));
            assert_eq!(origin(&config, &key.dotted()), format!("environment variable {name}"));
        }
        load(text(&format!("[{}]\n{} = \"{value}\"\n", key.section, key.name)));
    }
}

#[test]
fn the_keys_may_be_written_in_every_form_that_toml_has() {
    for toml in [
        "http.listen = \"[::1]:9000\"",
        "http = { listen = \"[::1]:9000\" }",
        "\u{feff}[http]\r\nlisten = '[::1]:9000'\r\n",
    ] {
        assert_eq!(load(text(toml)).http.listen.port(), 9000, "{toml}");
    }
    assert_eq!(load(text("[store]\nreaders = 0x10\nballast = 0\n")).store.readers, 16);
}

#[test]
fn all_problems_are_reported_at_once_with_place_and_advice() {
    let toml = "[store]\nreaders = 0\nsynchronous = \"fast\"\n\n[http]\nlisten = \"localhost:8080\"\nlisten_on = 1\n\n\
                [telegram]\nper_second = 10\nbulk_per_second = 11\n\n[bots]\nbackend_secret = \"x\"\nremote_url = \"y\"\n";
    let sources = text(toml)
        .with_variables([("PILLARBOX_JOBS__TIME_ZONE", "Europe/Berln"), ("PILLARBOX_HTTP_LISTEN", "0.0.0.0:1")])
        .with_set("log.level=inof")
        .with_set("bot.event_source=remote")
        .with_set("nonsense");
    let expected = [
        ("store.readers = 0 [box.toml:2]", "write a whole number from 1 to 64"),
        ("store.synchronous = fast [box.toml:3]", "write one of full, normal"),
        ("http.listen = localhost:8080 [box.toml:6]", "\"127.0.0.1:8080\""),
        ("http.listen_on [box.toml:7]: unknown key", "`http.listen`"),
        ("telegram.bulk_per_second = 11 [box.toml:11]", "lower it, or raise telegram.per_second"),
        ("bots [box.toml:13]: unknown section", "`bot`"),
        ("[environment variable PILLARBOX_HTTP_LISTEN]: unknown variable", "`PILLARBOX_HTTP__LISTEN`"),
        ("jobs.time_zone = Europe/Berln [environment variable PILLARBOX_JOBS__TIME_ZONE]", "\"Europe/Berlin\""),
        ("[--set]: number 3 has no `=`", "--set section.key=value"),
        ("log.level = inof [--set]", "write off, error, warn, info, debug or trace"),
        ("bot.remote_url [default]: it is required by bot.event_source = \"remote\"", "set it"),
        ("bot.backend_secret [default]: it is required by bot.event_source = \"remote\"", "backend_secret_file"),
    ];
    let found = messages(sources);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (message, (start, advice)) in found.iter().zip(expected) {
        assert!(message.starts_with(start) && message.contains(advice), "{message:?}\nis not {start:?} … {advice:?}");
    }
}

#[test]
fn the_printed_errors_are_a_count_and_a_line_each() {
    let errors = refused(Sources::empty().with_set("store.readers=many").with_set("x.y=1")).to_string();
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), 3, "{errors}");
    assert_eq!(lines[0], "the configuration has 2 problems:");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_known_one() {
    assert_one(text("[telegram]\nper-second = 3\n"), &["telegram.per-second", "`telegram.per_second`"]);
    assert_one(text("[store]\nlisten = \"x\"\n"), &["store.listen", "`http.listen`"]);
    assert_one(text("listen = \"x\"\n"), &["[box.toml:1]", "`http.listen`"]);
    assert_one(text("log = \"debug\"\n"), &["this is a section", "`[log]`"]);
    assert_one(text("[[store]]\nreaders = 1\n"), &["this is a section"]);
    assert_one(text("[Telegram]\ntokn = \"a\"\ntoken = \"b\"\n"), &["unknown section", "`telegram`"]);
    assert_one(text("[store.readers]\nx = 1\n"), &["store.readers", "a whole number is needed", "table"]);
    assert_one(text("[http]\nlisten_file = \"x\"\n"), &["http.listen_file", "unknown key"]);
    assert_one(Sources::empty().with_set("telegram.tokn_file=x"), &["`telegram.token_file`"]);
    assert_one(Sources::empty().with_variables([("PILLARBOX_TELEGRAM__TOKN", "")]), &["`PILLARBOX_TELEGRAM__TOKEN`"]);
    load(Sources::empty().with_variables([("PATH", "x"), ("TELEGRAM_BOT", "x"), ("PILLARBOX_CONFIG", "box.toml")]));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_unknown_key_is_refused(section in "[a-z]{1,8}|store|http|log|bot|telegram|leads|webhooks|events|jobs", name in "[a-z_]{1,12}") {
        let dotted = format!("{section}.{name}");
        let known = KEYS.iter().any(|key| key.dotted() == dotted || (key.is_secret() && format!("{}_file", key.dotted()) == dotted));
        prop_assume!(!known);
        let variable = format!("PILLARBOX_{section}__{name}").to_uppercase();
        for sources in [
            text(&format!("[{section}]\n{name} = \"v4lue\"\n")),
            Sources::empty().with_set(format!("{dotted}=v4lue")),
            Sources::empty().with_variables([(variable, "v4lue")]),
        ] {
            let found = messages(sources);
            prop_assert_eq!(found.len(), 1);
            prop_assert!(found[0].contains("the nearest known") && !found[0].contains("v4lue"), "{}", found[0]);
        }
    }

    #[test]
    fn no_text_makes_the_loader_panic(toml in "(\\[?[a-z._]{0,12}\\]?( = )?(\"[^\"]{0,9}\"|[0-9-]{0,25})?\n){0,6}", set in any::<String>()) {
        let _ = Config::load(text(&toml).with_set(set.clone()).with_variables([("PILLARBOX_LOG__LEVEL", set)]));
    }
}

#[test]
fn a_value_of_the_wrong_toml_type_is_told_how_to_be_written() {
    assert_one(text("[telegram]\ntimeout = 30\n"), &["telegram.timeout = 30", "bare number", "\"30s\""]);
    assert_one(text("[store]\nreaders = \"4\"\n"), &["store.readers = 4", "remove the quotes"]);
    assert_one(text("[store]\nreaders = 4.5\n"), &["store.readers [box.toml:2]", "a whole number is needed", "float"]);
    assert_one(text("[store]\ncache = true\n"), &["store.cache [box.toml:2]", "boolean", "1 MB is 1024 x 1024 bytes"]);
    assert_one(text("[http]\nlisten = 8080\n"), &["http.listen = 8080", "write it in quotes"]);
    assert_one(text("[bot]\ndefault_lang = [\"ru\"]\n"), &["bot.default_lang", "array"]);
    assert_one(text("[store]\nreaders = 99999999999999999999999999999999999999999999\n"), &["store.readers = 9999"]);
    assert_one(text("[store]\nreaders = -1\n"), &["store.readers = -1", "out of range"]);
}

#[test]
fn a_file_that_is_not_toml_is_named_by_line_and_without_its_text() {
    for (toml, line) in
        [("[bot]\nbackend_secret = not-to-be-seen\n", 2), ("[bot]\n\nbackend_secret = \"not-to-be-seen\n", 3)]
    {
        let found = messages(text(toml));
        assert!(found[0].starts_with(&format!("[box.toml:{line}]: this is not TOML")), "{found:#?}");
        assert!(!found.join("").contains("not-to-be-seen"), "{found:#?}");
    }
    assert_one(text("[log]\nlevel = \"info\"\nlevel = \"warn\"\n"), &["[box.toml:3]", "duplicate"]);
    let latin = Sources::empty().with_text("box.toml", *b"[log]\nlevel = \"\xff\"\n");
    assert_one(latin, &["[box.toml:2]", "not UTF-8"]);
    let missing = Sources::from_parts(Some("/missing/box.toml".into()), [], vec!["store.readers=no".to_owned()]);
    let found = messages(missing);
    assert!(found.len() == 2 && found[0].starts_with("[/missing/box.toml]: there is no such file"), "{found:#?}");
}

#[test]
fn the_variable_that_names_the_file_is_followed_unless_one_is_given() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("first.toml"), dir.path().join("second.toml"));
    std::fs::write(&first, "[store]\nreaders = 1\n").expect("written");
    std::fs::write(&second, "[store]\nreaders = 2\n").expect("written");
    let variable = || [("PILLARBOX_CONFIG".into(), first.clone().into())];
    let config = load(Sources::from_parts(None, variable(), Vec::new()));
    assert_eq!((config.store.readers, config.file()), (1, Some(first.as_path())));
    assert_eq!(load(Sources::from_parts(Some(second), variable(), Vec::new())).store.readers, 2);
}

#[test]
fn values_in_messages_stay_on_their_line_and_are_cut() {
    let long = format!("a\nb\u{1b}[31m{}", "x".repeat(5000));
    let errors = refused(Sources::empty().with_set(format!("log.format={long}"))).to_string();
    assert_eq!(errors.lines().count(), 2);
    assert!(errors.len() < 400 && !errors.contains('\u{1b}') && errors.contains("a\\nb"), "{errors}");
}

#[test]
fn the_event_source_is_resolved() {
    let with = |set: &[&str]| set.iter().fold(Sources::empty(), |sources, assignment| sources.with_set(*assignment));
    let token = "telegram.token=1:a";
    assert!(matches!(load(with(&[token])).bot.event_source, EventSource::Local));
    assert!(matches!(load(with(&[token, "bot.event_source=off"])).bot.event_source, EventSource::Off));
    assert!(matches!(load(with(&["bot.event_source=local"])).bot.event_source, EventSource::Local));
    let remote = [
        "bot.event_source=remote",
        "bot.remote_url=http://127.0.0.1:9/x",
        "bot.backend_secret=s",
        "bot.remote_source=eu-1",
    ];
    let EventSource::Remote(backend) = load(with(&remote)).bot.event_source else { panic!("remote was asked for") };
    assert_eq!((backend.url.as_str(), backend.source.as_str()), ("http://127.0.0.1:9/x", "eu-1"));
    assert!(backend.secret.matches(b"s"));
    assert_one(with(&["bot.remote_source=local"]), &["bot.remote_source = local", "choose another name"]);
    assert_one(with(&["bot.remote_source=EU"]), &["bot.remote_source = EU", "a-z, 0-9"]);
    // A broken address is one problem, not also a missing one.
    assert_one(
        with(&["bot.event_source=remote", "bot.remote_url=ftp://x", "bot.backend_secret=s"]),
        &["bot.remote_url = ftp://x"],
    );
}

#[test]
fn times_that_contradict_each_other_are_refused() {
    let sources = Sources::empty().with_set("telegram.timeout=3s");
    assert_one(sources, &["telegram.connect_timeout = 5s [default]", "telegram.timeout, which is \"3s\""]);
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let warned = |sources: Sources, key: &str| {
        let config = load(sources);
        config.warnings().iter().any(|warning| warning.key == key)
    };
    let set = |assignment: &str| Sources::empty().with_set(assignment);
    assert!(warned(Sources::empty(), "bot.backend_secret"));
    assert!(warned(set("bot.backend_secret=short"), "bot.backend_secret"));
    assert!(!warned(text(&format!("[bot]\nbackend_secret = \"{SECRET}\"")), "bot.backend_secret"));
    assert!(
        warned(set("http.listen=0.0.0.0:80"), "http.listen") && !warned(set("http.listen=[::1]:80"), "http.listen")
    );
    assert!(warned(set("store.synchronous=normal"), "store.synchronous"));
    assert!(warned(set("bot.remote_url=https://backend.example.org"), "bot.remote_url"));
    assert!(warned(set("telegram.token=1:a"), "telegram.token"));
    let unencrypted = set("telegram.api_url=http://api.example.org").with_variables([("TELEGRAM_BOT_TOKEN", TOKEN)]);
    assert!(warned(unencrypted, "telegram.api_url"));
}

#[test]
fn the_commented_file_changes_nothing() {
    let file = commented_file(&Secret::new(SECRET));
    let config = load(text(&file));
    for setting in config.settings() {
        let secret = setting.key.dotted() == "bot.backend_secret";
        assert_eq!(setting.origin.to_string() == "default", !secret, "{}", setting.key.dotted());
    }
    // Every commented line stands for the default: with the marks removed nothing changes either.
    for key in KEYS {
        let line = format!("# {} = ", key.name);
        let set = format!("\n{} = ", key.name);
        assert!(file.contains(&format!("\n{line}")) || file.contains(&set), "{} is missing", key.dotted());
    }
    let defaults = load(Sources::empty());
    let bare: String = file.lines().map(|line| uncommented(line) + "\n").collect();
    let config = load(text(&bare));
    for (ours, default) in config.settings().iter().zip(defaults.settings()) {
        assert!(ours.key.is_secret() || ours.value == default.value, "{}", ours.key.dotted());
    }
    assert!(file.lines().all(|line| line.len() <= 100), "a line is too wide");
}

/// `line` without its comment mark if it sets a key that has a default.
fn uncommented(line: &str) -> String {
    let name = |line: &str| line.split_once(" = ").map(|(name, _)| name.to_owned());
    match line.strip_prefix("# ").filter(|rest| !rest.ends_with("# no default")) {
        Some(rest) if KEYS.iter().any(|key| key.default.is_some() && name(rest).as_deref() == Some(key.name)) => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    }
}

#[test]
fn the_documentation_lists_every_key() {
    let page = include_str!("../../docs/configuration.md");
    let (_, rest) = page.split_once("<!-- keys: begin -->\n").expect("the page has the first mark");
    let (tables, _) = rest.split_once("<!-- keys: end -->").expect("the page has the second mark");
    let expected = format!("\n{}\n", key_tables());
    assert!(tables == expected, "the tables of docs/configuration.md are to be:\n{expected}");
}

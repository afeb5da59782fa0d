//! Secrets in the configuration: how they are given, and that nothing shows them.

use pillarbox::config::Sources;
use pillarbox::kernel::secret::Secret;

use crate::config::{SECRET, TOKEN, assert_one, load, messages, origin, refused, text};

#[test]
fn an_empty_variable_counts_as_unset() {
    let variables =
        [("TELEGRAM_BOT_TOKEN", ""), ("PILLARBOX_TELEGRAM__TOKEN", TOKEN), ("PILLARBOX_STORE__READERS", "")];
    let config = load(text("[store]\nreaders = 7\n").with_variables(variables));
    assert_eq!(config.telegram.token.map(|token| token.expose().to_owned()).as_deref(), Some(TOKEN));
    assert_eq!(config.store.readers, 7);
    // Written by hand, emptiness is a mistake.
    assert_one(text("[telegram]\ntoken = \"\"\n"), &["telegram.token", "the secret is empty", "remove the line"]);
}

#[test]
fn a_secret_may_be_the_content_of_a_file_in_every_layer() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("token");
    std::fs::write(&path, format!("{TOKEN}\r\n\n")).expect("written");
    let path = path.to_str().expect("UTF-8");
    for (sources, place) in [
        (text(&format!("[telegram]\ntoken_file = \"{path}\"\n")), "box.toml:2"),
        (
            Sources::empty().with_variables([("TELEGRAM_BOT_TOKEN_FILE", path)]),
            "environment variable TELEGRAM_BOT_TOKEN_FILE",
        ),
        (
            Sources::empty().with_variables([("PILLARBOX_TELEGRAM__TOKEN_FILE", path)]),
            "environment variable PILLARBOX_TELEGRAM__TOKEN_FILE",
        ),
        (Sources::empty().with_set(format!("telegram.token_file={path}")), "--set"),
    ] {
        let config = load(sources);
        assert_eq!(config.telegram.token.as_ref().map(Secret::expose), Some(TOKEN));
        assert_eq!(origin(&config, "telegram.token"), format!("{place} (content of {path})"));
    }
    let secret = load(Sources::empty().with_variables([("BOT_TO_BACKEND_SECRET_FILE", path)])).bot.backend_secret;
    assert_eq!(secret.as_ref().map(Secret::expose), Some(TOKEN));
    // A stronger layer replaces the secret in whichever spelling the weaker one has it.
    let both = text("[telegram]\ntoken_file = \"/missing\"\n").with_variables([("TELEGRAM_BOT_TOKEN", TOKEN)]);
    assert!(load(both).telegram.token.is_some());
}

#[test]
fn a_secret_file_that_gives_nothing_is_named_with_its_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (empty, binary) = (file("empty", b"\r\n"), file("binary", b"\xff\xfe"));
    let directory = dir.path().to_str().expect("UTF-8").to_owned();
    for (path, what) in
        [("/missing", "cannot be read"), (&directory, "cannot be read"), (&empty, "is empty"), (&binary, "is not text")]
    {
        let toml = format!("[bot]\nbackend_secret_file = \"{path}\"\n");
        assert_one(text(&toml), &[&format!("bot.backend_secret_file = {path} [box.toml:2]"), what]);
        let variables = [("BOT_TO_BACKEND_SECRET_FILE", path)];
        assert_one(Sources::empty().with_variables(variables), &["BOT_TO_BACKEND_SECRET_FILE", path, what]);
    }
    let inner = file("inner", b"two words\n");
    let found = messages(Sources::empty().with_set(format!("bot.backend_secret_file={inner}")));
    assert!(found[0].contains(&format!("(content of {inner})")) && !found[0].contains("two words"), "{found:#?}");
}

#[test]
fn a_secret_in_two_spellings_of_one_layer_is_refused() {
    assert_one(
        text("[bot]\nbackend_secret = \"a\"\nbackend_secret_file = \"/b\"\n"),
        &["[box.toml:3]", "set twice", "box.toml:2"],
    );
    let spellings = [("TELEGRAM_BOT_TOKEN", TOKEN), ("TELEGRAM_BOT_TOKEN_FILE", "/b")];
    assert_one(Sources::empty().with_variables(spellings), &["telegram.token is set twice", "keep either"]);
    let names = [("TELEGRAM_BOT_TOKEN", TOKEN), ("PILLARBOX_TELEGRAM__TOKEN", TOKEN)];
    assert_one(
        Sources::empty().with_variables(names),
        &["telegram.token is set twice", "keep one of the two variables"],
    );
    assert_one(
        Sources::empty().with_set("bot.backend_secret=a").with_set("bot.backend_secret_file=/b"),
        &["set twice"],
    );
}

#[test]
fn secrets_are_never_shown() {
    let valid =
        || text(&format!("[bot]\nbackend_secret = \"{SECRET}\"\n")).with_variables([("TELEGRAM_BOT_TOKEN", TOKEN)]);
    let remote = valid().with_set("bot.event_source=remote").with_set("bot.remote_url=https://backend.example.org");
    for sources in [valid(), remote, valid().with_set(format!("telegram.token={TOKEN}"))] {
        let config = load(sources);
        let warnings: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
        let page = format!("{config:?} {config:#?} {:?} {}", config.settings(), warnings.join(" "));
        assert!(page.contains("***") && !page.contains("not-to-be-seen"), "{page}");
    }
    let broken = [
        format!("[bot]\nbackend_secret = \"{SECRET} with space\"\n"),
        format!("[telegram]\ntoken = \"x{TOKEN}\"\n"),
        format!("[telegram]\ntokn = \"{TOKEN}\"\n"),
        format!("[telegran]\ntoken = \"{TOKEN}\"\n"),
        format!("token = \"{TOKEN}\"\n"),
        format!("[telegram]\ntoken = [\"{TOKEN}\"]\n"),
        format!("[telegram]\ntoken = {{ x = \"{TOKEN}\" }}\n"),
        format!("[telegram]\ntoken = {TOKEN}\n"),
        format!("[telegram]\napi_url = \"https://api.telegram.org/bot{TOKEN}\"\n"),
        format!("[bot]\nremote_url = \"https://me:{SECRET}@backend.example.org\"\n"),
    ];
    let sources = broken.iter().map(|toml| text(toml)).chain([
        Sources::empty().with_set(TOKEN),
        Sources::empty().with_set(format!("telegram.tokn={TOKEN}")),
        Sources::empty().with_set(format!("telegram.token=x{TOKEN}")),
        Sources::empty().with_variables([("TELEGRAM_BOT_TOKEN", format!("x{TOKEN}"))]),
        Sources::empty().with_variables([("PILLARBOX_TELEGRAM_TOKEN", TOKEN)]),
        Sources::empty().with_variables([("TELEGRAM_BOT_TOKEN", TOKEN), ("PILLARBOX_TELEGRAM__TOKEN", SECRET)]),
    ]);
    for source in sources {
        let errors = refused(source);
        let page = format!("{errors} {errors:?}");
        assert!(!page.contains("not-to-be-seen"), "{page}");
    }
}

#[test]
fn a_file_with_secrets_that_others_can_read_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("box.toml");
    std::fs::write(&path, format!("[bot]\nbackend_secret = \"{SECRET}\"\n")).expect("written");
    for (mode, expected) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("changed");
        let config = load(Sources::from_parts(Some(path.clone()), [], Vec::new()));
        let found = config.warnings().iter().any(|warning| warning.text.contains("chmod 600"));
        assert_eq!(found, expected, "{mode:o}");
    }
}

//! `pillarbox config check` and `pillarbox config show`: what is wrong with the configuration, and what it is and why.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::{Exit, Form};
use crate::app;
use crate::config::{Config, Origin, Place, RULE, Sources, one_line};

/// Says `ok` and what is probably not meant, or everything that is wrong; the latter is exit 3.
///
/// # Errors
/// `out` cannot be written.
pub(crate) fn check(sources: Sources, out: &mut impl Write) -> io::Result<Exit> {
    // What only the assembled parts can judge comes after what the text itself says.
    let checked = Config::load(sources).and_then(|config| app::check(&config).map(|()| config));
    let config = match checked {
        Ok(config) => config,
        Err(errors) => {
            writeln!(out, "{errors}")?;
            return Ok(Exit::ConfigInvalid);
        }
    };
    match config.file() {
        Some(path) => writeln!(out, "ok ({})", path.display())?,
        None => writeln!(out, "ok (no configuration file)")?,
    }
    for warning in config.warnings() {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(Exit::Ok)
}

/// Lists every key with its value and the value's origin. Secrets are masked.
///
/// # Errors
/// The configuration is refused ([`Exit::of_error`] makes that exit 3), or `out` cannot be written.
pub(crate) fn show(sources: Sources, form: Form, out: &mut impl Write) -> anyhow::Result<Exit> {
    let config = Config::load(sources)?;
    match form {
        Form::Table => table(&config, out)?,
        Form::Json => lines(&config, out)?,
    }
    Ok(Exit::Ok)
}

fn table(config: &Config, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["KEY", "VALUE", "ORIGIN"]);
    for setting in config.settings() {
        let value = match &setting.value {
            None => "(unset)".to_owned(),
            Some(_) if setting.key.is_secret() => "*** (set)".to_owned(),
            Some(value) => one_line(value),
        };
        table.add_row([setting.key.dotted(), value, setting.origin.to_string()]);
    }
    for rule in &config.communications.rules {
        table.add_row([RULE.to_owned(), rule.summary(), rule.origin.to_string()]);
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// One line of `config show --json`.
#[derive(Serialize)]
struct SettingBody<'a> {
    key: String,
    /// `null` if unset, `***` for a secret.
    value: Option<&'a str>,
    /// Whether the value is, or has in it, what is not shown.
    secret: bool,
    /// The kind of place: `default`, `file`, `environment`, `set` or `flag`.
    origin: &'static str,
    /// The place as it is shown.
    place: String,
}

impl<'a> SettingBody<'a> {
    fn new(key: String, value: Option<&'a str>, secret: bool, origin: &Origin) -> Self {
        let kind = match &origin.place {
            Place::Default => "default",
            Place::File { .. } => "file",
            Place::Variable(_) => "environment",
            Place::Set => "set",
            Place::Flag(_) => "flag",
        };
        Self { key, value, secret, origin: kind, place: origin.to_string() }
    }
}

fn lines(config: &Config, out: &mut impl Write) -> anyhow::Result<()> {
    let mut line = |body: &SettingBody<'_>| -> anyhow::Result<()> {
        serde_json::to_writer(&mut *out, body)?;
        Ok(writeln!(out)?)
    };
    for setting in config.settings() {
        let (key, value) = (setting.key.dotted(), setting.value.as_deref());
        line(&SettingBody::new(key, value, setting.key.is_secret(), &setting.origin))?;
    }
    for rule in &config.communications.rules {
        line(&SettingBody::new(RULE.to_owned(), Some(&rule.summary()), true, &rule.origin))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "123456:AAAA-not-to-be-seen";

    fn sources() -> Sources {
        Sources::empty()
            .with_text("box.toml", "[http]\nlisten = \"127.0.0.1:9000\"\n")
            .with_variables([("TELEGRAM_BOT_TOKEN", TOKEN)])
            .with_set("store.readers=2")
            .with_flag("--data-dir", "store.data_dir", "/srv/box")
    }

    fn text(run: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        run(&mut out);
        String::from_utf8(out).expect("the CLI writes UTF-8")
    }

    #[test]
    fn show_tells_value_and_origin_of_every_key() {
        let page = text(|out| assert_eq!(show(sources(), Form::Table, out).expect("valid"), Exit::Ok));
        let row = |key: &str| {
            let line = page.lines().find(|line| line.trim_start().starts_with(key)).expect(key);
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("http.listen"), "127.0.0.1:9000 box.toml:2");
        assert_eq!(row("telegram.token"), "*** (set) environment variable TELEGRAM_BOT_TOKEN");
        assert_eq!(row("bot.backend_secret"), "(unset) default");
        assert_eq!(row("store.readers"), "2 --set");
        assert_eq!(row("store.data_dir"), "/srv/box --data-dir");
        assert_eq!(row("store.queue"), "4096 default");
        assert_eq!(page.lines().count(), 1 + crate::config::KEYS.len());
        assert!(!page.contains("not-to-be-seen"), "{page}");
    }

    #[test]
    fn show_as_json_is_one_object_a_line() {
        let page = text(|out| assert_eq!(show(sources(), Form::Json, out).expect("valid"), Exit::Ok));
        let rows: Vec<serde_json::Value> =
            page.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
        assert_eq!(rows.len(), crate::config::KEYS.len());
        let row = |key: &str| rows.iter().find(|row| row["key"] == key).expect(key);
        assert_eq!(row("telegram.token")["value"], "***");
        assert_eq!(row("telegram.token")["origin"], "environment");
        assert_eq!(row("bot.backend_secret")["value"], serde_json::Value::Null);
        assert_eq!(row("http.listen")["place"], "box.toml:2");
        assert!(!page.contains("not-to-be-seen"), "{page}");
    }

    #[test]
    fn check_says_ok_and_warns_of_what_is_off() {
        let page = text(|out| assert_eq!(check(Sources::empty(), out).expect("written"), Exit::Ok));
        assert!(page.starts_with("ok (no configuration file)\n"), "{page}");
        assert!(page.contains("warning: bot.backend_secret: it is unset, so /bot answers 503"), "{page}");
        assert!(page.contains("warning: telegram.token: it is unset"), "{page}");
    }

    #[test]
    fn an_invalid_configuration_is_exit_3_in_both_verbs() {
        let broken = || Sources::empty().with_set("store.reader=4").with_set("log.level=loud");
        let page = text(|out| assert_eq!(check(broken(), out).expect("written"), Exit::ConfigInvalid));
        assert!(page.contains("store.readers") && page.contains("log.level = loud"), "{page}");
        let error = show(broken(), Form::Table, &mut Vec::new()).expect_err("refused");
        assert_eq!(Exit::of_error(&error), Exit::ConfigInvalid);
        assert_eq!(Exit::of_error(&error.context("while starting")), Exit::ConfigInvalid);
        assert_eq!(Exit::of_error(&anyhow::anyhow!("disk full")), Exit::Failure);
    }
}

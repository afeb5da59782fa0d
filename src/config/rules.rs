//! Rules between keys, and what works but is probably not meant.

use url::Url;

use super::Setting;
use super::bot::{BotConfig, EventSource, TelegramConfig};
use super::problem::{Origin, Place, Problem, Warning};
use super::sections::{Checked, HttpConfig, Synchronous};
use super::{Config, bot, communications, leads, webhooks};
use crate::kernel::loopback::is_loopback;

/// Appends what breaks a rule between keys. Keys in `broken` have a problem already and take part in no rule.
pub(super) fn check(
    checked: &Checked,
    settings: &[Setting],
    broken: &[String],
    is_dev: bool,
    problems: &mut Vec<Problem>,
) {
    let mut report = |key: &str, what: String, advice: String| {
        let setting = settings.iter().find(|setting| setting.key.dotted() == key);
        let (value, origin) = setting.map_or((None, Origin::from(Place::Default)), |setting| {
            (setting.value.clone().filter(|_| !setting.key.is_secret()), setting.origin.clone())
        });
        problems.push(Problem { key: Some(key.to_owned()), value, origin, what, advice });
    };
    let rates = (checked.find_integer("telegram.bulk_per_second"), checked.find_integer("telegram.per_second"));
    if let (Some(bulk), Some(all)) = rates
        && bulk > all
    {
        let what = format!("bulk messages are part of telegram.per_second, which is {all}");
        report("telegram.bulk_per_second", what, "lower it, or raise telegram.per_second".to_owned());
    }
    let times = (checked.find_duration("telegram.connect_timeout"), checked.find_duration("telegram.timeout"));
    if let (Some(connect), Some(whole)) = times
        && connect > whole
    {
        let whole = super::amounts::duration_text(whole);
        let what = format!("connecting is part of telegram.timeout, which is \"{whole}\"");
        report("telegram.connect_timeout", what, "lower it, or raise telegram.timeout".to_owned());
    }
    bot::check(checked, broken, &mut report);
    leads::check(checked, broken, &mut report);
    webhooks::check(checked, is_dev, &mut report);
}

/// What `config check` and the start-up say about a configuration that is valid.
pub(super) fn warnings(config: &Config) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |key: &str, text: &str| warnings.push(Warning { key: key.to_owned(), text: text.to_owned() });
    if config.store.synchronous == Synchronous::Normal {
        warn("store.synchronous", "a power cut may lose commits that were acknowledged");
    }
    http_warnings(&config.http, &mut warn);
    bot_warnings(&config.bot, config.setting("bot.remote_url").value.is_some(), &mut warn);
    telegram_warnings(&config.telegram, &config.bot, &mut warn);
    bot::warnings(config, &mut warn);
    leads::warnings(&config.leads, &config.settings, &mut warn);
    webhooks::warnings(&config.webhooks, &mut warn);
    communications::warnings(&config.communications, config.telegram.token.is_some(), &mut warn);
    for setting in config.settings.iter().filter(|setting| setting.key.is_secret()) {
        let directly = setting.origin.content_of.is_none();
        match &setting.origin.place {
            Place::Set if directly => {
                warn(
                    &setting.key.dotted(),
                    "every user of this machine can read arguments; use the file or the environment",
                );
            }
            Place::File { path, .. } if directly && others_can_read(path) => {
                warn(&setting.key.dotted(), "other users can read the file it is in; run `chmod 600` on it");
            }
            _ => {}
        }
    }
    warnings
}

fn http_warnings(http: &HttpConfig, warn: &mut impl FnMut(&str, &str)) {
    if !http.listen.ip().is_loopback() {
        warn("http.listen", "this is plain HTTP on the network; put a proxy with TLS before it");
    }
    if http.trusted_proxies.iter().any(|network| network.prefix_len() == 0) {
        warn("http.trusted_proxies", "everybody is believed, so a client can claim any address; name your proxies");
    }
}

fn bot_warnings(bot: &BotConfig, with_url: bool, warn: &mut impl FnMut(&str, &str)) {
    match &bot.backend_secret {
        None => warn("bot.backend_secret", "it is unset, so /bot answers 503; `pillarbox init` generates one"),
        Some(secret) => leads::warn_if_short("bot.backend_secret", secret, warn),
    }
    match &bot.event_source {
        EventSource::Remote(remote) if in_the_clear(&remote.url) => {
            warn("bot.remote_url", "the secret travels unencrypted; use https");
        }
        EventSource::Remote(_) => {}
        EventSource::Local | EventSource::Off if with_url => {
            warn("bot.remote_url", "it is not used, since bot.event_source is not `remote`");
        }
        EventSource::Local | EventSource::Off => {}
    }
}

fn telegram_warnings(telegram: &TelegramConfig, bot: &BotConfig, warn: &mut impl FnMut(&str, &str)) {
    match (&telegram.token, &bot.event_source) {
        (Some(_), _) if in_the_clear(&telegram.api_url) => {
            warn("telegram.api_url", "the token travels unencrypted; use https");
        }
        (Some(_), _) => {}
        (None, EventSource::Off) => {
            warn("telegram.token", "it is unset, so the bot is off; events wait for a bot that fetches them from /bot");
        }
        (None, EventSource::Local | EventSource::Remote(_)) => {
            warn("telegram.token", "it is unset, so messages are queued and not sent");
        }
    }
}

/// Whether requests to `url` can be read on the way.
fn in_the_clear(url: &Url) -> bool {
    url.scheme() == "http" && !url.host_str().is_some_and(is_loopback)
}

fn others_can_read(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

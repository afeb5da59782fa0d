//! `[bot]`, `[telegram]`, `[reminders]` and `[broadcasts]`: whom the bot serves and how it speaks, and the rules between
//! these keys.

use std::time::Duration;

use url::Url;

use super::Config;
use super::sections::{Checked, IN_THE_TABLE};
use crate::kernel::loopback::is_loopback;
use crate::kernel::secret::Secret;

/// `[bot]`: the contract between bot and backend.
#[derive(Clone, Debug)]
pub struct BotConfig {
    /// What `/bot` asks for; unset means that it answers 503.
    pub backend_secret: Option<Secret>,
    /// Where events are consumed from, `auto` resolved.
    pub event_source: EventSource,
    /// Language of people who have not chosen one.
    pub default_lang: Lang,
    /// What connect links lead to; unset means that there are none.
    pub site_url: Option<Url>,
    /// The introduction; unset means that the step is left out.
    pub video_url: Option<Url>,
    /// The console; unset means that it has no button.
    pub console_url: Option<Url>,
    /// The bot's public name, without the `@`; unset means that there are no invite links.
    pub username: Option<String>,
}

/// Where bot events are consumed from.
#[derive(Clone, Debug)]
pub enum EventSource {
    /// From this file.
    Local,
    /// Nowhere; a bot elsewhere may fetch them over HTTP.
    Off,
    /// From another backend, as a client of the contract.
    Remote(RemoteBackend),
}

/// The backend of `event_source = "remote"`.
#[derive(Clone, Debug)]
pub struct RemoteBackend {
    /// Its base address.
    pub url: Url,
    /// Its name in the ledger.
    pub source: String,
    /// The bearer secret it asks for (`bot.backend_secret`).
    pub secret: Secret,
}

/// A language that texts exist in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lang {
    /// Russian.
    Ru,
    /// English.
    En,
}

/// `[telegram]`: the Bot API and its limits.
#[derive(Clone, Debug)]
pub struct TelegramConfig {
    /// The bot's token; unset means nothing is sent.
    pub token: Option<Secret>,
    /// Base address of the Bot API.
    pub api_url: Url,
    /// Messages a second over all chats.
    pub per_second: u32,
    /// Of those, bulk messages; at most `per_second`.
    pub bulk_per_second: u32,
    /// Pause between two messages to one chat.
    pub chat_interval: Duration,
    /// Messages a minute to one group.
    pub group_per_minute: u32,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long connecting may take; at most `timeout`.
    pub connect_timeout: Duration,
    /// Calls under way at the same time.
    pub max_in_flight: usize,
    /// Age at which a message is no longer tried.
    pub give_up_after: Duration,
    /// How updates come in, `auto` resolved.
    pub updates: Updates,
    /// How long Telegram may hold a call that fetches updates.
    pub poll_timeout: Duration,
    /// How long the number of a handled update is kept.
    pub updates_retention: Duration,
}

/// How updates come in.
#[derive(Clone, Debug)]
pub enum Updates {
    /// They are fetched.
    Polling,
    /// They are sent to this server.
    Webhook {
        /// The public address of `/telegram/webhook`.
        url: Url,
        /// What is to come with each; unset means that it is derived from the token.
        secret: Option<Secret>,
    },
    /// They do not.
    Off,
}

/// `[reminders]`: when who is silent is reminded.
#[derive(Clone, Debug)]
pub struct RemindersConfig {
    /// Reminders of one sweep at most.
    pub per_sweep: u32,
    /// The silence that each stage is given, from stage 1 to 8; `None` is never.
    pub after: [Option<Duration>; 8],
}

/// `[broadcasts]`: how fast they go.
#[derive(Clone, Debug)]
pub struct BroadcastsConfig {
    /// Messages a second of one that names no rate of its own; at most `telegram.bulk_per_second`.
    pub per_second: u32,
}

impl Checked {
    /// `None` while `remote` lacks its address or secret, which is a problem that has been reported then.
    pub(super) fn bot(&self) -> Option<BotConfig> {
        let backend_secret = self.find_secret("bot.backend_secret");
        let with_token = self.find_secret("telegram.token").is_some();
        let event_source = match self.word("bot.event_source") {
            "remote" => EventSource::Remote(RemoteBackend {
                url: self.find_url("bot.remote_url")?,
                source: self.word("bot.remote_source").to_owned(),
                secret: backend_secret.clone()?,
            }),
            "local" => EventSource::Local,
            "auto" if with_token => EventSource::Local,
            _ => EventSource::Off,
        };
        let default_lang = if self.word("bot.default_lang") == "ru" { Lang::Ru } else { Lang::En };
        Some(BotConfig {
            backend_secret,
            event_source,
            default_lang,
            site_url: self.find_url("bot.site_url"),
            video_url: self.find_url("bot.video_url"),
            console_url: self.find_url("bot.console_url"),
            username: self.find_word("bot.username").map(str::to_owned),
        })
    }

    /// `None` while `webhook` lacks its address, which is a problem that has been reported then.
    pub(super) fn telegram(&self) -> Option<TelegramConfig> {
        Some(TelegramConfig {
            token: self.find_secret("telegram.token"),
            api_url: self.find_url("telegram.api_url").expect(IN_THE_TABLE),
            per_second: self.integer("telegram.per_second"),
            bulk_per_second: self.integer("telegram.bulk_per_second"),
            chat_interval: self.duration("telegram.chat_interval"),
            group_per_minute: self.integer("telegram.group_per_minute"),
            timeout: self.duration("telegram.timeout"),
            connect_timeout: self.duration("telegram.connect_timeout"),
            max_in_flight: self.count("telegram.max_in_flight"),
            give_up_after: self.duration("telegram.give_up_after"),
            updates: self.updates()?,
            poll_timeout: self.duration("telegram.poll_timeout"),
            updates_retention: self.duration("telegram.updates_retention"),
        })
    }

    fn updates(&self) -> Option<Updates> {
        let is_bot_here = self.word("bot.event_source") != "off" && self.find_secret("telegram.token").is_some();
        Some(match self.word("telegram.updates") {
            "polling" => Updates::Polling,
            "webhook" => Updates::Webhook {
                url: self.find_url("telegram.webhook_url")?,
                secret: self.find_secret("telegram.webhook_secret"),
            },
            "auto" if is_bot_here => Updates::Polling,
            _ => Updates::Off,
        })
    }

    pub(super) fn reminders(&self) -> RemindersConfig {
        let after = [1, 2, 3, 4, 5, 6, 7, 8].map(|stage| self.duration(&format!("reminders.stage_{stage}")));
        RemindersConfig {
            per_sweep: self.integer("reminders.per_sweep"),
            after: after.map(|silence| Some(silence).filter(|silence| !silence.is_zero())),
        }
    }

    pub(super) fn broadcasts(&self) -> BroadcastsConfig {
        // No error: whoever lowers the rate of all bulk messages means broadcasts too.
        let most = self.integer("telegram.bulk_per_second");
        BroadcastsConfig { per_second: self.integer("broadcasts.per_second").min(most) }
    }
}

/// Reports the key at fault, what is wrong with it, and what to do. Keys in `broken` have a problem already.
pub(super) fn check(checked: &Checked, broken: &[String], report: &mut impl FnMut(&str, String, String)) {
    let is_missing = |key: &str| !checked.0.contains_key(key) && !broken.iter().any(|name| name == key);
    if checked.find_word("bot.event_source") == Some("remote") {
        let why = "it is required by bot.event_source = \"remote\"";
        for (key, advice) in [
            ("bot.remote_url", "set it to the backend's base address, or choose another event_source"),
            ("bot.backend_secret", "set it (or backend_secret_file) to the secret that the remote backend expects"),
        ] {
            if is_missing(key) {
                report(key, why.to_owned(), advice.to_owned());
            }
        }
    }
    check_updates(checked, is_missing, report);
}

fn check_updates(checked: &Checked, is_missing: impl Fn(&str) -> bool, report: &mut impl FnMut(&str, String, String)) {
    let mode = checked.find_word("telegram.updates");
    if matches!(mode, Some("polling" | "webhook")) && is_missing("telegram.token") {
        let why = format!("it is required by telegram.updates = \"{}\"", mode.unwrap_or_default());
        let advice = "set it (or token_file) to the token from @BotFather, or choose another telegram.updates";
        report("telegram.token", why, advice.to_owned());
    }
    if mode != Some("webhook") {
        return;
    }
    if is_missing("telegram.webhook_url") {
        let why = "it is required by telegram.updates = \"webhook\"";
        let advice =
            "set it to the public address of this server's /telegram/webhook, or choose another telegram.updates";
        report("telegram.webhook_url", why.to_owned(), advice.to_owned());
    }
    // Telegram itself takes https only; a Bot API server on this machine takes what it is given.
    let (url, api) = (checked.find_url("telegram.webhook_url"), checked.find_url("telegram.api_url"));
    let is_local = |url: &Url| url.host_str().is_some_and(is_loopback);
    if url.is_some_and(|url| url.scheme() != "https") && !api.as_ref().is_some_and(is_local) {
        let what = "Telegram sends updates to https addresses only";
        report("telegram.webhook_url", what.to_owned(), "write the https address that your proxy answers".to_owned());
    }
}

/// Warns of what works and is probably not meant.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(&str, &str)) {
    let Config { bot, telegram, .. } = config;
    if telegram.token.is_none() || matches!(bot.event_source, EventSource::Off) {
        return;
    }
    if bot.site_url.is_none() && matches!(bot.event_source, EventSource::Local) {
        warn("bot.site_url", "it is unset, so the bot cannot lead anybody to the site, where a wallet is connected");
    }
    if matches!(telegram.updates, Updates::Off) {
        warn(
            "telegram.updates",
            "the bot is told of events, and hears nobody: what people write and press is not fetched",
        );
    }
}

//! Configuration: file, environment and arguments in, checked sections out; raw settings are read nowhere else, so that
//! a running component never meets a value that does not make sense.
//!
//! **What.** [`Sources`] gathers the raw settings, [`Config::load`] checks them against the table [`KEYS`] and hands out
//! one typed section per component, or every problem at once ([`ConfigErrors`]).
//!
//! **Precedence.** An argument of its own (`--data-dir`) over `--set` over the environment over the file over the
//! default. Only the value that wins is checked; names are checked everywhere.
//!
//! **Guarantees.**
//! - An unknown name is an error in every layer and is answered with the nearest known one
//!   (`tests/it/config.rs::any_unknown_key_is_refused`).
//! - A secret is shown by no message, table or `Debug` (`tests/it/config_secrets.rs::secrets_are_never_shown`).
//! - `docs/configuration.md` and the file of `init` say what the table says
//!   (`tests/it/config.rs::the_documentation_lists_every_key`, `tests/it/config.rs::the_commented_file_changes_nothing`).
//!
//! **Not here.** Reloading: a changed configuration takes a restart.

mod amounts;
mod bot;
mod communications;
mod file;
mod gather;
mod keys;
mod kind;
mod leads;
mod lists;
mod problem;
mod reference;
mod rules;
mod sections;
mod sources;
mod table;
mod value;
mod webhooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) use amounts::parse_length;
pub use bot::{
    BotConfig, BroadcastsConfig, EventSource, Lang, RemindersConfig, RemoteBackend, TelegramConfig, Updates,
};
pub(crate) use communications::RULE;
pub use communications::{CommunicationRule, CommunicationsConfig};
pub(crate) use gather::nearest;
pub use keys::Key;
pub use kind::{Kind, SecretForm};
pub use leads::{Delivery, LeadsConfig};
pub(crate) use problem::one_line;
pub use problem::{ConfigErrors, Origin, Place, Problem, Warning};
pub use reference::{commented_file, key_tables};
pub use sections::{HttpConfig, JobsConfig, LogConfig, LogFormat, StoreConfig, Synchronous};
pub use sources::{DEFAULT_FILE, Sources};
pub use table::KEYS;
pub use webhooks::{AnalyticsConfig, EventsConfig, WebhooksConfig};

/// The checked configuration. Give each component its own section only.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// `[store]`
    pub store: StoreConfig,
    /// `[http]`
    pub http: HttpConfig,
    /// `[log]`
    pub log: LogConfig,
    /// `[bot]`
    pub bot: BotConfig,
    /// `[telegram]`
    pub telegram: TelegramConfig,
    /// `[reminders]`
    pub reminders: RemindersConfig,
    /// `[broadcasts]`
    pub broadcasts: BroadcastsConfig,
    /// `[leads]`
    pub leads: LeadsConfig,
    /// `[webhooks]`
    pub webhooks: WebhooksConfig,
    /// `[events]`
    pub events: EventsConfig,
    /// `[analytics]`
    pub analytics: AnalyticsConfig,
    /// `[communications]`
    pub communications: CommunicationsConfig,
    /// `[jobs]`
    pub jobs: JobsConfig,
    file: Option<PathBuf>,
    settings: Vec<Setting>,
    warnings: Vec<Warning>,
}

/// One key with its effective value, fit to be shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// The value as it was written, `***` for a secret, `None` if it is unset.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

impl Config {
    /// Checks `sources`. Reads the secrets' own files, and nothing else from the outside.
    ///
    /// # Errors
    /// Everything that is wrong, at once; see [`ConfigErrors::problems`].
    pub fn load(sources: Sources) -> Result<Self, ConfigErrors> {
        let mut problems = Vec::new();
        let gathered = gather::gather(&sources, &mut problems);
        let mut broken = gathered.broken;
        let mut values = BTreeMap::new();
        let mut settings = Vec::new();
        for key in KEYS {
            let name = key.dotted();
            let found = gathered.found.get(&name);
            let origin = found.map_or_else(|| Place::Default.into(), |found| found.origin.clone());
            match effective(key, found) {
                Ok((text, value)) => {
                    settings.push(Setting { key, value: text.map(|text| masked(key, text)), origin });
                    values.extend(value.map(|value| (name, value)));
                }
                Err(refusal) => {
                    problems.push(refused(key, found, origin, refusal));
                    broken.push(name);
                }
            }
        }
        let checked = sections::Checked(values);
        rules::check(&checked, &settings, &broken, sources.is_dev, &mut problems);
        if !problems.is_empty() {
            problems.sort_by_key(rank);
            return Err(ConfigErrors::new(problems));
        }
        let file = sources.file.map(|file| file.path);
        Ok(Self::of(&checked, gathered.rules, file, settings))
    }

    fn of(
        checked: &sections::Checked,
        rules: Vec<CommunicationRule>,
        file: Option<PathBuf>,
        settings: Vec<Setting>,
    ) -> Self {
        let mut config = Self {
            store: checked.store(),
            http: checked.http(),
            log: checked.log(),
            bot: checked.bot().expect("the rules have seen that `remote` has its address and its secret"),
            telegram: checked.telegram().expect("the rules have seen that `webhook` has its address"),
            reminders: checked.reminders(),
            broadcasts: checked.broadcasts(),
            leads: checked.leads(),
            webhooks: checked.webhooks(),
            events: checked.events(),
            analytics: checked.analytics(),
            communications: checked.communications(rules),
            jobs: checked.jobs(),
            file,
            settings,
            warnings: Vec::new(),
        };
        config.warnings = rules::warnings(&config);
        config
    }

    /// The file that was read, if there was one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Every key with its effective value and origin, in the order of [`KEYS`]; secrets are masked.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// A problem of a key's value, for whoever can see more than the text.
    pub(crate) fn problem(&self, dotted: &str, what: String, advice: &str) -> Problem {
        let Setting { key, value, origin } = self.setting(dotted);
        let value = value.clone().filter(|_| !key.is_secret());
        Problem { key: Some(dotted.to_owned()), value, origin: origin.clone(), what, advice: advice.to_owned() }
    }

    /// Where a key's value comes from.
    pub(crate) fn place(&self, dotted: &str) -> &Place {
        &self.setting(dotted).origin.place
    }

    /// What works but is probably not meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn setting(&self, dotted: &str) -> &Setting {
        let found = self.settings.iter().find(|setting| setting.key.dotted() == dotted);
        found.expect("every key has its setting")
    }
}

impl Default for Config {
    /// The configuration of an installation that sets nothing.
    fn default() -> Self {
        Self::load(Sources::empty()).expect("the defaults are valid")
    }
}

/// The text that counts for `key`, what was found or the default, and its meaning.
fn effective<'a>(
    key: &Key,
    found: Option<&'a gather::Found>,
) -> Result<(Option<&'a str>, Option<value::Value>), value::Refusal> {
    let text = match found {
        Some(found) => Some(key.kind.text_of(&found.written)?),
        None => key.default,
    };
    let value = text.map(|text| key.kind.parse(text)).transpose()?;
    Ok((text, value))
}

fn masked(key: &Key, text: &str) -> String {
    if key.is_secret() { "***".to_owned() } else { text.to_owned() }
}

fn refused(key: &Key, found: Option<&gather::Found>, origin: Origin, refusal: value::Refusal) -> Problem {
    let written = found.and_then(|found| match &found.written {
        gather::Written::Plain(text) | gather::Written::Quoted(text) | gather::Written::Number(text) => Some(text),
        gather::Written::List(text) if key.kind.is_list() => Some(text),
        gather::Written::List(_)
        | gather::Written::Numbers(_)
        | gather::Written::Tables(_)
        | gather::Written::Switch(_)
        | gather::Written::Other(_)
        | gather::Written::Section => None,
    });
    let value = written.and_then(|text| key.kind.showable(text));
    Problem { key: Some(key.dotted()), value, origin, what: refusal.what, advice: refusal.advice }
}

/// Problems of one place stay together, those of the file in the order of its lines.
fn rank(problem: &Problem) -> (u8, usize) {
    match &problem.origin.place {
        Place::File { line, .. } => (0, *line),
        Place::Variable(_) => (1, 0),
        Place::Set => (2, 0),
        Place::Flag(_) => (3, 0),
        Place::Default => (4, 0),
    }
}

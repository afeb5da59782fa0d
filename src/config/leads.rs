//! `[leads]`: the section, the rules between its keys, and what about it is probably not meant. An installation that
//! sets none of its keys has no leads and is told nothing of them.

use std::time::Duration;

use super::Setting;
use super::lists;
use super::problem::Place;
use super::sections::Checked;
use super::value::Value;
use crate::kernel::loopback::is_loopback;
use crate::kernel::secret::Secret;

/// `[leads]`: the intake of leads and what becomes of their notifications.
#[derive(Clone, Debug)]
pub struct LeadsConfig {
    /// Origins whose pages may post, as browsers write them.
    pub allowed_origins: Vec<String>,
    /// Whether a request without an origin may post.
    pub allow_originless: bool,
    /// Posts an hour of one visitor.
    pub rate_limit_per_hour: u32,
    /// The least time in which a person fills the form in, in milliseconds.
    pub min_fill_ms: u32,
    /// Largest body of a lead, in bytes.
    pub max_body_bytes: usize,
    /// How long the call that sends a notification may take.
    pub telegram_timeout: Duration,
    /// The chat that is told of leads: the text of an integer.
    pub chat_id: Option<Secret>,
    /// Who sends notifications, `auto` resolved.
    pub delivery: Delivery,
    /// Whether that was chosen; by `auto` nobody may be told because something is unset.
    pub delivery_is_chosen: bool,
    /// Opens `/rest` and `/v1/leads`; unset means that they answer 503, the latter to who has no API key.
    pub service_role_key: Option<Secret>,
    /// Recognised, and may do nothing.
    pub anon_key: Option<Secret>,
    /// Whose phone numbers need no country code: two letters in upper case.
    pub phone_region: String,
    /// Days after which a lead is deleted; 0 is never, and `None` is not decided.
    pub retention_days: Option<u32>,
}

impl LeadsConfig {
    /// Whether leads come in and nobody is told of them, and nobody has said that this is meant.
    pub fn is_silent(&self) -> bool {
        let may_post = self.allow_originless || !self.allowed_origins.is_empty();
        may_post && self.delivery == Delivery::Off && !self.delivery_is_chosen
    }

    /// Whether pages of `origin` may post. It is compared as a browser writes it, whoever wrote it.
    pub fn allows(&self, origin: &str) -> bool {
        let is_known = |origin: &String| self.allowed_origins.contains(origin);
        lists::origin(origin).is_ok_and(|origin| is_known(&origin))
    }
}

/// Who sends the notifications of leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// This process.
    Worker,
    /// A program that claims them over `/rest`.
    Rpc,
    /// Nobody.
    Off,
}

impl Checked {
    pub(super) fn leads(&self) -> LeadsConfig {
        let origins = match self.0.get("leads.allowed_origins") {
            Some(Value::Origins(origins)) => origins.clone(),
            _ => Vec::new(),
        };
        let chat_id = self.find_secret("leads.chat_id");
        let delivery = match self.word("leads.delivery") {
            "worker" => Delivery::Worker,
            "rpc" => Delivery::Rpc,
            "auto" if chat_id.is_some() && self.find_secret("telegram.token").is_some() => Delivery::Worker,
            _ => Delivery::Off,
        };
        LeadsConfig {
            allowed_origins: origins,
            allow_originless: self.switch("leads.allow_originless"),
            rate_limit_per_hour: self.integer("leads.rate_limit_per_hour"),
            min_fill_ms: self.integer("leads.min_fill_ms"),
            max_body_bytes: self.count("leads.max_body_bytes"),
            telegram_timeout: self.duration("leads.telegram_timeout"),
            chat_id,
            delivery,
            delivery_is_chosen: self.word("leads.delivery") != "auto",
            service_role_key: self.find_secret("leads.service_role_key"),
            anon_key: self.find_secret("leads.anon_key"),
            phone_region: self.word("leads.phone_region").to_owned(),
            retention_days: self.find_integer("leads.retention_days"),
        }
    }
}

/// Reports the key at fault, what is wrong with it, and what to do.
pub(super) fn check(checked: &Checked, broken: &[String], report: &mut impl FnMut(&str, String, String)) {
    if checked.find_word("leads.delivery") == Some("worker") {
        for (key, advice) in [
            ("telegram.token", "set it (or token_file), or choose another leads.delivery"),
            ("leads.chat_id", "set it (or chat_id_file) to the chat that is to be told, or choose another delivery"),
        ] {
            if !checked.0.contains_key(key) && !broken.iter().any(|name| name == key) {
                report(key, "it is required by leads.delivery = \"worker\"".to_owned(), advice.to_owned());
            }
        }
    }
    let keys = (checked.find_secret("leads.service_role_key"), checked.find_secret("leads.anon_key"));
    if let (Some(service), Some(anon)) = keys
        && service.expose() == anon.expose()
    {
        let what = "it is the same as leads.service_role_key, and one key cannot both open and not open".to_owned();
        report("leads.anon_key", what, "give each a value of its own".to_owned());
    }
}

/// Warns of what works and is probably not meant, if any key of the section is set.
pub(super) fn warnings(leads: &LeadsConfig, settings: &[Setting], warn: &mut impl FnMut(&str, &str)) {
    let is_set = |setting: &Setting| setting.key.section == "leads" && setting.origin.place != Place::Default;
    if !settings.iter().any(is_set) {
        return;
    }
    if leads.allowed_origins.is_empty() && !leads.allow_originless {
        warn("leads.allowed_origins", "it is empty, so POST /leads answers 403 to everybody");
    }
    if leads.allowed_origins.iter().any(|origin| is_in_the_clear(origin)) {
        warn("leads.allowed_origins", "a page that came unencrypted posts leads that others may read; use https");
    }
    if leads.chat_id.is_some() && !settings.iter().any(|setting| is_there(setting, "telegram.token")) {
        warn("leads.chat_id", "telegram.token is unset, so nobody is told of a lead by this process");
    }
    if leads.is_silent() && leads.chat_id.is_none() {
        warn(
            "leads.chat_id",
            "it is unset, so leads are stored and nobody is told of them; set it, or leads.delivery = \"off\" if that is meant",
        );
    }
    match &leads.service_role_key {
        None if leads.delivery != Delivery::Rpc => {}
        None => warn("leads.service_role_key", "it is unset, so /rest answers 503 and nobody can claim a lead"),
        Some(key) => warn_if_short("leads.service_role_key", key, warn),
    }
    if let Some(key) = &leads.anon_key {
        warn_if_short("leads.anon_key", key, warn);
    }
}

/// 16 characters of hex are 64 bits: less can be tried out over a network in a patient attacker's time.
pub(super) fn warn_if_short(name: &str, secret: &Secret, warn: &mut impl FnMut(&str, &str)) {
    if secret.expose().len() < 16 {
        warn(name, "it is shorter than 16 characters");
    }
}

fn is_there(setting: &Setting, dotted: &str) -> bool {
    setting.key.dotted() == dotted && setting.value.is_some()
}

fn is_in_the_clear(origin: &str) -> bool {
    let url = url::Url::parse(origin);
    url.is_ok_and(|url| url.scheme() == "http" && !url.host_str().is_some_and(is_loopback))
}

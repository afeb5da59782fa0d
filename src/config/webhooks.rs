//! `[webhooks]`, `[events]` and `[analytics]`: where events go that leave this file, and the rules between these keys.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::sections::{Checked, IN_THE_TABLE};
use super::value::Value;

/// `[webhooks]`: how endpoints are sent to, and where they may be.
#[derive(Clone, Debug)]
pub struct WebhooksConfig {
    /// How long one attempt may take, all of it.
    pub timeout: Duration,
    /// Attempts under way at the same time.
    pub max_in_flight: usize,
    /// Of those, to one endpoint; at most `max_in_flight`.
    pub per_endpoint: usize,
    /// Ports that an address may name, besides 443.
    pub ports: Vec<u16>,
    /// Networks that are not public and may be sent to all the same.
    pub allow_networks: Vec<IpNet>,
    /// Whether `http` and this machine may be sent to; only in `dev`.
    pub allow_insecure: bool,
    /// Certificates that are trusted besides the usual ones.
    pub ca_file: Option<PathBuf>,
    /// How long an endpoint may fail without one success until it is disabled; `None` is never.
    pub disable_after: Option<Duration>,
}

/// `[events]`: what tenants may post, and how long what was published is kept.
#[derive(Clone, Debug)]
pub struct EventsConfig {
    /// Whether only registered types may be posted.
    pub strict_types: bool,
    /// Days after which a published event is deleted.
    pub retention_days: u32,
}

/// `[analytics]`: the files that events are written to.
#[derive(Clone, Debug)]
pub struct AnalyticsConfig {
    /// Their directory; unset means that none are written.
    pub dir: Option<PathBuf>,
}

impl Checked {
    pub(super) fn webhooks(&self) -> WebhooksConfig {
        let Some(Value::Ports(ports)) = self.0.get("webhooks.ports") else { unreachable!("{IN_THE_TABLE}") };
        WebhooksConfig {
            timeout: self.duration("webhooks.timeout"),
            max_in_flight: self.count("webhooks.max_in_flight"),
            per_endpoint: self.count("webhooks.per_endpoint"),
            ports: ports.clone(),
            allow_networks: self.networks("webhooks.allow_networks"),
            allow_insecure: self.switch("webhooks.allow_insecure"),
            ca_file: self.find_path("webhooks.ca_file"),
            disable_after: Some(self.duration("webhooks.disable_after")).filter(|after| !after.is_zero()),
        }
    }

    pub(super) fn events(&self) -> EventsConfig {
        EventsConfig {
            strict_types: self.switch("events.strict_types"),
            retention_days: self.integer("events.retention_days"),
        }
    }

    pub(super) fn analytics(&self) -> AnalyticsConfig {
        AnalyticsConfig { dir: self.find_path("analytics.dir") }
    }
}

/// Reports the key at fault, what is wrong with it, and what to do.
pub(super) fn check(checked: &Checked, is_dev: bool, report: &mut impl FnMut(&str, String, String)) {
    if let Some(Value::Switch(true)) = checked.0.get("webhooks.allow_insecure")
        && !is_dev
    {
        let what =
            "webhooks would travel unencrypted and could be aimed at this machine; only `pillarbox dev` may do that";
        let advice = "remove it; a receiver in your own network needs webhooks.allow_networks, and webhooks.ca_file for a certificate of your own";
        report("webhooks.allow_insecure", what.to_owned(), advice.to_owned());
    }
    let counts = (checked.find_integer("webhooks.per_endpoint"), checked.find_integer("webhooks.max_in_flight"));
    if let (Some(one), Some(all)) = counts
        && one > all
    {
        let what = format!("attempts to one endpoint are part of webhooks.max_in_flight, which is {all}");
        report("webhooks.per_endpoint", what, "lower it, or raise webhooks.max_in_flight".to_owned());
    }
}

/// Warns of what works and is probably not meant.
pub(super) fn warnings(webhooks: &WebhooksConfig, warn: &mut impl FnMut(&str, &str)) {
    if webhooks.allow_networks.iter().any(|network| network.prefix_len() == 0) {
        warn(
            "webhooks.allow_networks",
            "every address may be sent to, those inside your network too; name the networks that are meant",
        );
    }
    if webhooks.max_in_flight == webhooks.per_endpoint {
        warn(
            "webhooks.per_endpoint",
            "one endpoint that hangs can take every attempt that webhooks.max_in_flight allows",
        );
    }
}

//! Keys of what leaves this file and of when things run: webhooks, events, messages about them, jobs.

use super::{duration, hours, key, ms, secret, unset};
use crate::config::keys::Key;
use crate::config::kind::{Kind, SecretForm};

pub(super) const KEYS: &[Key] = &[
    // --- webhooks
    key(
        "webhooks",
        "timeout",
        duration(ms(1000), ms(60_000)),
        "15s",
        "How long one attempt may take, from the look-up of the name to the end of the answer.",
    ),
    key("webhooks", "max_in_flight", Kind::Integer { min: 1, max: 1024 }, "64", "Attempts under way at the same time."),
    key(
        "webhooks",
        "per_endpoint",
        Kind::Integer { min: 1, max: 256 },
        "4",
        "Of those, attempts to one endpoint; one to an endpoint that takes a fifth of the time-out or more. All such endpoints together have half of the attempts.",
    ),
    key("webhooks", "ports", Kind::Ports, "443", "Ports that an endpoint's address may name; 443 always is one."),
    key(
        "webhooks",
        "allow_networks",
        Kind::Networks,
        "none",
        "Networks that are not public and may be sent to all the same, such as `10.20.0.0/16`.",
    ),
    key(
        "webhooks",
        "allow_insecure",
        Kind::Switch,
        "false",
        "Whether `http` and this machine may be sent to; on in `pillarbox dev`, and refused elsewhere.",
    ),
    unset(
        "webhooks",
        "ca_file",
        Kind::Path,
        "Certificates in PEM that are trusted besides the usual ones, for receivers in your own network.",
    ),
    key(
        "webhooks",
        "disable_after",
        duration(ms(0), hours(24 * 365)),
        "5d",
        "How long an endpoint may fail without one success until it is disabled; 0 is never.",
    ),
    // --- events
    key(
        "events",
        "strict_types",
        Kind::Switch,
        "false",
        "Whether tenants may post only types that were registered with `pillarbox events register`.",
    ),
    // A delivery is under way for up to three days, and whoever asks why something did not arrive asks later.
    key(
        "events",
        "retention_days",
        Kind::Integer { min: 1, max: 3650 },
        "30",
        "Days after which an event that every consumer has accepted is deleted.",
    ),
    // --- analytics
    unset(
        "analytics",
        "dir",
        Kind::Path,
        "Directory for a file a day with one line per event; while it is unset, none is written.",
    ),
    // --- communications
    secret(
        "communications",
        "alert_chat",
        SecretForm::ChatId,
        None,
        "Chat that is told when a webhook's endpoint fails for long or was disabled; unset means that nobody is.",
    ),
    // --- jobs
    key(
        "jobs",
        "time_zone",
        Kind::TimeZone,
        "UTC",
        "Time zone of the schedules, by its IANA name, such as `Europe/Berlin`.",
    ),
    // An event comes back for up to 17 hours of back-off; its ledger row has to outlive that.
    key(
        "jobs",
        "ledger_retention",
        duration(hours(24), hours(24 * 3650)),
        "30d",
        "How long the ledger remembers an event that was handled.",
    ),
];

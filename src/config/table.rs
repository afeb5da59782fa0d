//! The one table of configuration keys. Defaults, the unknown-key check, the file that `init` writes, `config show`
//! and `docs/configuration.md` are all read from it, so that none of them can say something else.

use std::time::Duration;

use super::keys::Key;
use super::kind::{Kind, SecretForm};

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;
const GB: u64 = 1024 * MB;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn hours(n: u64) -> Duration {
    Duration::from_secs(n * 3600)
}

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

const fn key(section: &'static str, name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { section, name, kind, default: Some(default), doc, alias: None }
}

const fn secret(
    section: &'static str,
    name: &'static str,
    form: SecretForm,
    alias: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::Secret(form), default: None, doc, alias }
}

const fn unset(section: &'static str, name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { section, name, kind, default: None, doc, alias: None }
}

/// Every key, section by section in the order in which files and tables list them.
pub const KEYS: &[Key] = &[
    // --- store
    key(
        "store",
        "data_dir",
        Kind::Path,
        "pillarbox-data",
        "Directory of the database, its lock and its backups; `--data-dir` overrides it.",
    ),
    key(
        "store",
        "synchronous",
        Kind::Choice(&["full", "normal"]),
        "full",
        "`full` flushes every commit to the disk; `normal` is faster, and a power cut may lose the last commits.",
    ),
    key("store", "readers", Kind::Integer { min: 1, max: 64 }, "4", "Connections that read at the same time."),
    key(
        "store",
        "queue",
        Kind::Integer { min: 1, max: 1_000_000 },
        "4096",
        "Writes that may wait; one more is answered 503.",
    ),
    key(
        "store",
        "busy_timeout",
        duration(ms(1), ms(600_000)),
        "5s",
        "How long a write waits while another program holds the database.",
    ),
    key("store", "cache", Kind::Size { min: MB, max: 16 * GB }, "32MB", "Page cache of the writer."),
    key(
        "store",
        "min_free",
        Kind::Size { min: 0, max: 1024 * GB },
        "32MB",
        "With less free space on the disk than this, intake is answered 503.",
    ),
    key(
        "store",
        "ballast",
        Kind::Size { min: 0, max: 16 * GB },
        "8MB",
        "Size of a file that is given up when the disk is full, so that work in hand can end; 0 keeps none.",
    ),
    // --- http
    key(
        "http",
        "listen",
        Kind::Address,
        "127.0.0.1:8080",
        "Address and port of the HTTP server (no TLS); `--listen` overrides it.",
    ),
    key(
        "http",
        "shutdown_timeout",
        duration(ms(0), ms(600_000)),
        "20s",
        "How long work in hand may take to end after SIGTERM or SIGINT.",
    ),
    // A full ack (two lists of 500 ids with reasons) has to fit.
    key(
        "http",
        "body_limit",
        Kind::Size { min: 512 * KB, max: 64 * MB },
        "1MB",
        "Largest request body that is read; that of a batch of events may be eight times as large, up to 64 MB.",
    ),
    key(
        "http",
        "trusted_proxies",
        Kind::Networks,
        "loopback",
        "Proxies whose `X-Forwarded-For` is believed: addresses, networks, `loopback`, `private`, or `none`.",
    ),
    // --- log
    key(
        "log",
        "level",
        Kind::Directives,
        "info",
        "Level, or a list such as `info,pillarbox::webhooks=debug`; the HTTP libraries stay at `warn` unless named, and never below `info`.",
    ),
    key(
        "log",
        "format",
        Kind::Choice(&["auto", "text", "json"]),
        "auto",
        "`auto` is text on a terminal and JSON lines otherwise.",
    ),
    // --- bot
    secret(
        "bot",
        "backend_secret",
        SecretForm::Bearer,
        Some("BOT_TO_BACKEND_SECRET"),
        "Bearer secret between bot and backend; while it is unset, those endpoints answer 503.",
    ),
    key(
        "bot",
        "event_source",
        Kind::Choice(&["auto", "local", "off", "remote"]),
        "auto",
        "Where bot events are consumed from: `local` is this file, `remote` another backend, `off` nowhere; `auto` is `local` with a Telegram token and `off` without.",
    ),
    unset(
        "bot",
        "remote_url",
        Kind::Url,
        "Base address of the remote backend; required by `event_source = \"remote\"`.",
    ),
    key(
        "bot",
        "remote_source",
        Kind::SourceName,
        "remote",
        "Name of the remote backend in the ledger; keep it as long as the backend is the same.",
    ),
    key("bot", "default_lang", Kind::Choice(&["ru", "en"]), "ru", "Language of people who have not chosen one."),
    // --- telegram
    secret(
        "telegram",
        "token",
        SecretForm::TelegramToken,
        Some("TELEGRAM_BOT_TOKEN"),
        "Token of the bot, from @BotFather; while it is unset, nothing is sent.",
    ),
    key(
        "telegram",
        "api_url",
        Kind::Url,
        "https://api.telegram.org",
        "Base address of the Bot API, without the token.",
    ),
    key("telegram", "per_second", Kind::Integer { min: 1, max: 1000 }, "25", "Messages a second over all chats."),
    key(
        "telegram",
        "bulk_per_second",
        Kind::Integer { min: 1, max: 1000 },
        "20",
        "Of those, reminders, digests and broadcasts.",
    ),
    key("telegram", "chat_interval", duration(ms(0), hours(1)), "1s", "Pause between two messages to one chat."),
    key("telegram", "group_per_minute", Kind::Integer { min: 1, max: 60_000 }, "20", "Messages a minute to one group."),
    key(
        "telegram",
        "timeout",
        duration(ms(100), ms(600_000)),
        "15s",
        "How long one call may take; after that its outcome is unknown.",
    ),
    key(
        "telegram",
        "connect_timeout",
        duration(ms(100), ms(600_000)),
        "5s",
        "How long connecting may take, within `timeout`.",
    ),
    key("telegram", "max_in_flight", Kind::Integer { min: 1, max: 1000 }, "16", "Calls under way at the same time."),
    key(
        "telegram",
        "give_up_after",
        duration(ms(60_000), hours(24 * 30)),
        "24h",
        "Age at which a message that certainly was not delivered is no longer tried.",
    ),
    // --- leads
    unset(
        "leads",
        "allowed_origins",
        Kind::Origins,
        "Origins of the pages that may post leads, such as `https://example.org`; unset means none.",
    ),
    key(
        "leads",
        "allow_originless",
        Kind::Switch,
        "false",
        "Whether a lead is taken from a request without an Origin header, which no browser sends from a page.",
    ),
    key(
        "leads",
        "rate_limit_per_hour",
        Kind::Integer { min: 1, max: 100 },
        "8",
        "Posts an hour of one visitor; one more is answered 429.",
    ),
    key(
        "leads",
        "min_fill_ms",
        Kind::Integer { min: 500, max: 30_000 },
        "1500",
        "Milliseconds in which a person can fill the form in; a faster one is refused.",
    ),
    key(
        "leads",
        "max_body_bytes",
        Kind::Integer { min: 4096, max: 262_144 },
        "65536",
        "Largest body of a lead, in bytes; a larger one is answered 413.",
    ),
    key(
        "leads",
        "telegram_timeout",
        duration(ms(1000), ms(15_000)),
        "5s",
        "How long the call that sends a lead's notification may take.",
    ),
    secret(
        "leads",
        "chat_id",
        SecretForm::ChatId,
        None,
        "Chat that is told of leads: a group's id is negative; the bot has to be in it.",
    ),
    key(
        "leads",
        "delivery",
        Kind::Choice(&["auto", "worker", "rpc", "off"]),
        "auto",
        "Who sends notifications: `worker` is this process, `rpc` a program that claims them over `/rest`, `off` nobody; `auto` is `worker` with telegram.token and chat_id, else `off`.",
    ),
    secret(
        "leads",
        "service_role_key",
        SecretForm::Bearer,
        Some("SUPABASE_SERVICE_ROLE_KEY"),
        "Key that opens `/rest/v1/rpc` and `/v1/leads`; while it is unset, those answer 503, the latter to who has no API key.",
    ),
    secret(
        "leads",
        "anon_key",
        SecretForm::Bearer,
        Some("SUPABASE_ANON_KEY"),
        "Key that `/rest/v1/rpc` recognises as one that may do nothing: 403, not 401.",
    ),
    key(
        "leads",
        "phone_region",
        Kind::Region,
        "RU",
        "Country whose phone numbers may be written without its code, by its two letters.",
    ),
    unset(
        "leads",
        "retention_days",
        Kind::Integer { min: 0, max: 3650 },
        "Days after which a lead is deleted; 0 keeps each until somebody deletes it, and unset means that nobody has decided.",
    ),
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

//! The one table of configuration keys. Defaults, the unknown-key check, the file that `init` writes, `config show`
//! and `docs/configuration.md` are all read from it, so that none of them can say something else.

use std::time::Duration;

/// One key of the configuration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Key {
    /// The TOML table it is in.
    pub section: &'static str,
    /// Its name in that table.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// Its value when nobody sets it, as one would write it; `None` means unset.
    pub default: Option<&'static str>,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// A second environment variable that sets it, by the name the contracts know.
    pub alias: Option<&'static str>,
}

impl Key {
    /// `section.name`, as `--set` and the messages write it.
    pub fn dotted(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// `PILLARBOX_SECTION__NAME`.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}__{}", self.section, self.name).to_ascii_uppercase()
    }

    /// Whether its value is never shown. Such a key `x` may also be given as `x_file`, the path of a file with the value.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret(_))
    }
}

/// What every environment variable of ours begins with.
pub(super) const PREFIX: &str = "PILLARBOX_";

/// The variable that names the configuration file; the only one of ours that is no key.
pub(super) const FILE_VARIABLE: &str = "PILLARBOX_CONFIG";

/// What a value may be. Bounds are inclusive.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A path of the file system; a relative one starts at the working directory.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer {
        /// The least.
        min: u32,
        /// The greatest.
        max: u32,
    },
    /// A length of time, `"30s"`.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A number of bytes, `"64MB"`; 1 MB is 1024 × 1024 bytes.
    Size {
        /// The least, in bytes.
        min: u64,
        /// The greatest, in bytes.
        max: u64,
    },
    /// An IP address and a port.
    Address,
    /// An `http` or `https` address.
    Url,
    /// A name of 1 to 32 of `a-z 0-9 _ -`, except `local`.
    SourceName,
    /// Directives of the log filter: a level, or `target=level`, separated by commas.
    Directives,
    /// A time zone of the IANA database.
    TimeZone,
    /// A value that is never shown.
    Secret(SecretForm),
}

/// What a secret has to look like.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SecretForm {
    /// Visible ASCII, since it travels in an HTTP header.
    Bearer,
    /// `digits:letters`, as BotFather hands it out.
    TelegramToken,
}

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
    alias: &'static str,
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::Secret(form), default: None, doc, alias: Some(alias) }
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
    key("http", "body_limit", Kind::Size { min: 512 * KB, max: 64 * MB }, "1MB", "Largest request body that is read."),
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
        "BOT_TO_BACKEND_SECRET",
        "Bearer secret between bot and backend; while it is unset, those endpoints answer 503.",
    ),
    key(
        "bot",
        "event_source",
        Kind::Choice(&["auto", "local", "off", "remote"]),
        "auto",
        "Where bot events are consumed from: `local` is this file, `remote` another backend, `off` nowhere; `auto` is `local` with a Telegram token and `off` without.",
    ),
    Key {
        section: "bot",
        name: "remote_url",
        kind: Kind::Url,
        default: None,
        doc: "Base address of the remote backend; required by `event_source = \"remote\"`.",
        alias: None,
    },
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
        "TELEGRAM_BOT_TOKEN",
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

/// The names of the sections, in the order of [`KEYS`].
pub(super) fn section_names() -> Vec<&'static str> {
    let mut names: Vec<_> = KEYS.iter().map(|key| key.section).collect();
    names.dedup();
    names
}

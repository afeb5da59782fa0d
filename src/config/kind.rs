//! What kinds of values there are. What a value of each looks like is known by `value.rs` and `lists.rs`.

use std::time::Duration;

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
    /// An `http` or `https` address to which something is added: without `?` and `#`.
    Url,
    /// An `http` or `https` address that is opened as it stands.
    Page,
    /// The public name of a bot, with or without its `@`.
    Username,
    /// A name of 1 to 32 of `a-z 0-9 _ -`, except `local`.
    SourceName,
    /// Directives of the log filter: a level, or `target=level`, separated by commas.
    Directives,
    /// A time zone of the IANA database.
    TimeZone,
    /// `true` or `false`.
    Switch,
    /// Origins of web pages, `"https://example.org"`; a list.
    Origins,
    /// IP addresses and networks, and words that stand for some of them; a list.
    Networks,
    /// Ports of TCP; a list.
    Ports,
    /// A country or region by its two letters (ISO 3166).
    Region,
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
    /// The id of a chat: an integer other than 0. It is no password, but it names a place that is nobody else's business.
    ChatId,
    /// What Telegram sends back in a header: 1 to 256 of `A-Z a-z 0-9 _ -`.
    WebhookSecret,
}

impl Kind {
    /// Whether several values are written, separated by commas or white space, or as a list of TOML.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Origins | Self::Networks | Self::Ports)
    }
}

//! From what was written to what it means. One function a kind; each refusal says what would have been right.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use tracing_subscriber::filter::Directive;
use url::Url;

use super::amounts::{DURATION_ADVICE, SIZE_ADVICE, duration, size};
use super::gather::Written;
use super::kind::{Kind, SecretForm};
use super::lists;
use crate::kernel::secret::Secret;

/// A value that has been checked.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Path(PathBuf),
    Word(String),
    Integer(u32),
    Duration(Duration),
    Size(u64),
    Address(SocketAddr),
    Url(Url),
    Zone(chrono_tz::Tz),
    Switch(bool),
    Origins(Vec<String>),
    Networks(Vec<IpNet>),
    Ports(Vec<u16>),
    Secret(Secret),
}

/// Why a value was not taken. Neither text contains the value.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Refusal {
    pub(super) what: String,
    pub(super) advice: String,
}

pub(super) fn refuse<T>(what: impl Into<String>, advice: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { what: what.into(), advice: advice.into() })
}

impl Kind {
    /// The text of `written` if a value of this kind may be written so in TOML: numbers and switches bare, everything
    /// else in quotes. A chat's id is a number to whoever copies it, and is taken either way.
    pub(super) fn text_of(self, written: &Written) -> Result<&str, Refusal> {
        let whole_number = matches!(self, Self::Integer { .. });
        match written {
            Written::Plain(text) => Ok(text),
            Written::Quoted(_) if whole_number || matches!(self, Self::Switch) => {
                refuse(format!("{} is needed, this is text", self.noun()), "remove the quotes")
            }
            Written::Quoted(text) => Ok(text),
            Written::Number(text) if matches!(self, Self::Secret(SecretForm::ChatId)) => Ok(text),
            Written::Number(text) | Written::Numbers(text) if matches!(self, Self::Ports) => Ok(text),
            Written::List(text) if self.is_list() => Ok(text),
            Written::Switch(word) if matches!(self, Self::Switch) => Ok(word),
            Written::Number(text) if whole_number => Ok(text),
            Written::Number(text) if text == "0" && matches!(self, Self::Size { .. } | Self::Duration { .. }) => {
                Ok(text)
            }
            Written::Number(_) => refuse(format!("{} is needed, this is a bare number", self.noun()), self.advice()),
            Written::List(_) | Written::Numbers(_) | Written::Tables(_) => {
                refuse(format!("{} is needed, this is of type array", self.noun()), self.advice())
            }
            Written::Switch(_) => refuse(format!("{} is needed, this is of type boolean", self.noun()), self.advice()),
            Written::Other(found) => {
                refuse(format!("{} is needed, this is of type {found}", self.noun()), self.advice())
            }
            Written::Section => refuse(format!("{} is needed, this is a section", self.noun()), self.advice()),
        }
    }

    /// Checks `text`, which must be free of white space at its ends unless that belongs to the value.
    pub(super) fn parse(self, text: &str) -> Result<Value, Refusal> {
        match self {
            Self::Path => path(text).map(Value::Path),
            Self::Choice(words) => choice(text, words).map(Value::Word),
            Self::Integer { min, max } => integer(text, min, max).map(Value::Integer),
            Self::Duration { min, max } => duration(text, min, max).map(Value::Duration),
            Self::Size { min, max } => size(text, min, max).map(Value::Size),
            Self::Address => address(text).map(Value::Address),
            Self::Url => url(text).map(Value::Url),
            Self::Page => page(text).map(Value::Url),
            Self::Username => username(text).map(Value::Word),
            Self::SourceName => source_name(text).map(Value::Word),
            Self::Directives => directives(text).map(Value::Word),
            Self::TimeZone => time_zone(text).map(Value::Zone),
            Self::Switch => switch(text).map(Value::Switch),
            Self::Origins => lists::origins(text).map(Value::Origins),
            Self::Networks => lists::networks(text).map(Value::Networks),
            Self::Ports => lists::ports(text).map(Value::Ports),
            Self::Region => region(text).map(Value::Word),
            Self::Secret(form) => secret(text, form).map(Value::Secret),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Integer { .. } => "a whole number",
            Self::Duration { .. } => "a length of time",
            Self::Size { .. } => "a size",
            Self::Switch => "true or false",
            Self::Ports => "a port or a list of ports",
            Self::Origins | Self::Networks => "text or a list of texts",
            _ => "text",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Integer { .. } => "write a whole number without quotes, such as 4",
            Self::Duration { .. } => DURATION_ADVICE,
            Self::Size { .. } => SIZE_ADVICE,
            Self::Switch => "write true or false without quotes",
            Self::Ports => lists::PORT_ADVICE,
            Self::Origins | Self::Networks => "write the entries in quotes, separated by commas",
            _ => "write it in quotes",
        }
    }

    /// What `text` may be shown as when it was refused; `None` where it could be, or contain, a secret.
    pub(super) fn showable(self, text: &str) -> Option<String> {
        let hidden = match self {
            Self::Secret(_) => true,
            Self::Url | Self::Page | Self::Origins => text.contains('@') || has_bot_token(text),
            _ => false,
        };
        (!hidden).then(|| text.to_owned())
    }
}

fn path(text: &str) -> Result<PathBuf, Refusal> {
    match text {
        "" => refuse("the path is empty", "write the path, or remove the line"),
        _ if text.contains('\0') => refuse("a path cannot contain a NUL", "write the path without it"),
        _ if text.starts_with('~') => refuse("`~` is not expanded here", "write the path in full"),
        _ => Ok(PathBuf::from(text)),
    }
}

fn choice(text: &str, words: &[&str]) -> Result<String, Refusal> {
    if words.contains(&text) {
        return Ok(text.to_owned());
    }
    refuse("there is no such choice", format!("write one of {}", words.join(", ")))
}

fn integer(text: &str, min: u32, max: u32) -> Result<u32, Refusal> {
    match text.parse::<i128>() {
        Ok(number) => match u32::try_from(number).ok().filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(number),
            None => refuse("the number is out of range", format!("write a whole number from {min} to {max}")),
        },
        Err(_) => refuse("this is not a whole number", format!("write a whole number from {min} to {max}")),
    }
}

fn address(text: &str) -> Result<SocketAddr, Refusal> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => refuse(
            "this is not an IP address and a port",
            "write both, such as \"127.0.0.1:8080\", \"[::1]:8080\", or \"0.0.0.0:8080\" for every interface",
        ),
    }
}

fn url(text: &str) -> Result<Url, Refusal> {
    let url = page(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("a base address has neither `?` nor `#`", "remove that part");
    }
    Ok(url)
}

fn page(text: &str) -> Result<Url, Refusal> {
    let advice = "write it like \"https://backend.example.org\"";
    let Ok(url) = Url::parse(text) else {
        return refuse("this is not a complete address", advice);
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return refuse("only http and https addresses can be used", advice);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("a name or password in an address would show in logs", "remove the part before `@`");
    }
    if has_bot_token(url.path()) {
        return refuse(
            "the address contains a bot token",
            "remove `/bot…` and set telegram.token (or telegram.token_file)",
        );
    }
    Ok(url)
}

fn username(text: &str) -> Result<String, Refusal> {
    let name = text.strip_prefix('@').unwrap_or(text);
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !(5..=32).contains(&name.len()) || !name.chars().all(allowed) {
        return refuse(
            "this is not the public name of a bot",
            "write the name that @BotFather shows, such as \"example_bot\"",
        );
    }
    Ok(name.to_owned())
}

/// Whether a path segment reads `bot123:…`, which is how the Bot API is called and a likely thing to paste.
fn has_bot_token(path: &str) -> bool {
    path.split('/').any(|segment| {
        let digits = segment.strip_prefix("bot").unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit()) && (digits.contains(':') || digits.contains("%3A"))
    })
}

fn source_name(text: &str) -> Result<String, Refusal> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if text == "local" {
        return refuse(
            "`local` is the ledger's name for this file's own events",
            "choose another name, such as \"remote\"",
        );
    }
    if text.is_empty() || text.len() > 32 || !text.chars().all(allowed) {
        return refuse("this is not a source name", "write 1 to 32 of a-z, 0-9, _ and -");
    }
    Ok(text.to_owned())
}

fn directives(text: &str) -> Result<String, Refusal> {
    let advice = "write off, error, warn, info, debug or trace, or add target=level parts, such as \"info,pillarbox::webhooks=debug\"";
    for part in text.split(',').map(str::trim) {
        // The filter would read a bare word that is no level as a target and show everything of it: `inof` for `info`.
        let bare = !part.contains(['=', '[']);
        let level = ["off", "error", "warn", "info", "debug", "trace"].contains(&part.to_ascii_lowercase().as_str());
        if part.is_empty() || (bare && !level) || part.parse::<Directive>().is_err() {
            return refuse("this is not a list of log levels", advice);
        }
    }
    Ok(text.to_owned())
}

fn time_zone(text: &str) -> Result<chrono_tz::Tz, Refusal> {
    if let Ok(zone) = text.parse() {
        return Ok(zone);
    }
    let nearest = super::gather::nearest(text, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
    let advice = format!("write an IANA name; the nearest is \"{}\"", nearest.unwrap_or("UTC"));
    refuse("there is no such time zone", advice)
}

fn switch(text: &str) -> Result<bool, Refusal> {
    text.parse().or_else(|_| refuse("this is neither true nor false", "write true or false"))
}

fn region(text: &str) -> Result<String, Refusal> {
    match text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => known_region(text.to_ascii_uppercase()),
        false => refuse("this is not the two letters of a country", "write them as in ISO 3166, such as \"RU\""),
    }
}

fn known_region(region: String) -> Result<String, Refusal> {
    if region.parse::<phonenumber::country::Id>().is_ok() {
        return Ok(region);
    }
    refuse("no country with telephone numbers has these letters", "write them as in ISO 3166, such as \"RU\"")
}

fn secret(text: &str, form: SecretForm) -> Result<Secret, Refusal> {
    if text.is_empty() {
        return refuse("the secret is empty", "write the secret, or remove the line to leave it unset");
    }
    match form {
        SecretForm::Bearer if !text.bytes().all(|byte| byte.is_ascii_graphic()) => refuse(
            "the secret has characters that cannot travel in an HTTP header",
            "use visible ASCII without spaces, such as the output of `openssl rand -hex 32`",
        ),
        SecretForm::TelegramToken if !looks_like_token(text) => refuse(
            "this does not look like a bot token (digits, a colon, letters)",
            "copy the whole token from @BotFather",
        ),
        SecretForm::WebhookSecret if text.len() > 256 || !text.bytes().all(is_of_token) => refuse(
            "the secret has characters that Telegram does not take here, or is longer than 256",
            "use letters, digits, `_` and `-`, such as the output of `openssl rand -hex 32`",
        ),
        // One chat has one spelling here, however it was written.
        SecretForm::ChatId => match text.parse::<i64>() {
            Ok(id) if id != 0 => Ok(Secret::new(id.to_string())),
            _ => {
                refuse("this is not the id of a chat", "write the whole number that Telegram gives it, with its minus")
            }
        },
        _ => Ok(Secret::new(text)),
    }
}

fn looks_like_token(text: &str) -> bool {
    text.split_once(':').is_some_and(|(id, key)| {
        !id.is_empty()
            && id.bytes().all(|byte| byte.is_ascii_digit())
            && !key.is_empty()
            && key.bytes().all(is_of_token)
    })
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_not_taken_for_a_target() {
        for text in ["info", "WARN", "info,pillarbox::chat=debug", "warn, pillarbox=trace", "off"] {
            assert!(directives(text).is_ok(), "{text}");
        }
        for text in ["", "inof", "info,", "info,pillarbox", "pillarbox=loud", "info,,debug"] {
            assert!(directives(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_with_credentials_are_refused_and_not_shown() {
        for text in
            ["https://u:p@example.org", "https://api.telegram.org/bot12:AAA/", "https://api.telegram.org/bot12%3AAA"]
        {
            assert!(url(text).is_err(), "{text}");
        }
        assert_eq!(Kind::Url.showable("https://u:p@example.org"), None);
        assert_eq!(Kind::Url.showable("https://api.telegram.org/bot12:AAA?x"), None);
        for text in
            ["ftp://example.org", "example.org", "https://", "https://example.org/?a=b", "https://example.org/#a", "/x"]
        {
            assert!(url(text).is_err(), "{text}");
        }
        assert!(url("http://127.0.0.1:8081/bots/").is_ok());
        assert!(page("https://video.example/watch?v=1#t=2").is_ok());
        assert!(page("https://u:p@video.example/").is_err());
    }

    #[test]
    fn a_bots_name_is_kept_without_its_mark() {
        assert_eq!(username("@example_bot").unwrap(), "example_bot");
        for text in ["bot", "@", "example-bot", "https://t.me/example_bot", "бот_бот"] {
            assert!(username(text).is_err(), "{text}");
        }
    }
}

//! From what was written to what it means. One function a kind; each refusal says what would have been right.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::filter::Directive;
use url::Url;

use super::gather::Written;
use super::keys::{Kind, SecretForm};
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
    Secret(Secret),
}

/// Why a value was not taken. Neither text contains the value.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Refusal {
    pub(super) what: String,
    pub(super) advice: String,
}

fn refuse<T>(what: impl Into<String>, advice: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { what: what.into(), advice: advice.into() })
}

impl Kind {
    /// The text of `written` if a value of this kind may be written so in TOML: numbers bare, everything else in quotes.
    pub(super) fn text_of(self, written: &Written) -> Result<&str, Refusal> {
        let whole_number = matches!(self, Self::Integer { .. });
        match written {
            Written::Plain(text) => Ok(text),
            Written::Quoted(_) if whole_number => refuse("a whole number is needed, this is text", "remove the quotes"),
            Written::Quoted(text) => Ok(text),
            Written::Number(text) if whole_number => Ok(text),
            Written::Number(text) if text == "0" && matches!(self, Self::Size { .. } | Self::Duration { .. }) => {
                Ok(text)
            }
            Written::Number(_) => refuse(format!("{} is needed, this is a bare number", self.noun()), self.advice()),
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
            Self::SourceName => source_name(text).map(Value::Word),
            Self::Directives => directives(text).map(Value::Word),
            Self::TimeZone => time_zone(text).map(Value::Zone),
            Self::Secret(form) => secret(text, form).map(Value::Secret),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Integer { .. } => "a whole number",
            Self::Duration { .. } => "a length of time",
            Self::Size { .. } => "a size",
            _ => "text",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Integer { .. } => "write a whole number without quotes, such as 4",
            Self::Duration { .. } => DURATION_ADVICE,
            Self::Size { .. } => SIZE_ADVICE,
            _ => "write it in quotes",
        }
    }

    /// What `text` may be shown as when it was refused; `None` where it could be, or contain, a secret.
    pub(super) fn showable(self, text: &str) -> Option<String> {
        let hidden = match self {
            Self::Secret(_) => true,
            Self::Url => text.contains('@') || has_bot_token(text),
            _ => false,
        };
        (!hidden).then(|| text.to_owned())
    }
}

const DURATION_ADVICE: &str = "write a whole number and ms, s, m, h or d in quotes, such as \"30s\"";
const SIZE_ADVICE: &str =
    "write a whole number and B, KB, MB or GB in quotes, such as \"64MB\" (1 MB is 1024 x 1024 bytes)";

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

/// The number and the unit of `"30s"`; a bare `0` has no unit.
fn amount(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    // Twenty digits are more than any bound; the unit is then still looked at, and the range is what is refused.
    let number = if digits == 0 { return None } else { number.parse().unwrap_or(u64::MAX) };
    Some((number, unit))
}

fn duration(text: &str, min: Duration, max: Duration) -> Result<Duration, Refusal> {
    let unit_ms = match amount(text) {
        Some((number, unit)) => match unit {
            "ms" => Some((number, 1)),
            "s" => Some((number, 1000)),
            "m" => Some((number, 60_000)),
            "h" => Some((number, 3_600_000)),
            "d" => Some((number, 86_400_000)),
            "" if number == 0 => Some((0, 1)),
            _ => None,
        },
        None => None,
    };
    let Some((number, unit_ms)) = unit_ms else {
        return refuse("this is not a length of time", DURATION_ADVICE);
    };
    let length = Duration::from_millis(number.saturating_mul(unit_ms));
    if (min..=max).contains(&length) {
        return Ok(length);
    }
    let advice = format!("write a length from \"{}\" to \"{}\"", duration_text(min), duration_text(max));
    refuse("the length of time is out of range", advice)
}

/// `length` in the greatest unit that says it exactly.
pub(super) fn duration_text(length: Duration) -> String {
    let ms = length.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.iter().find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms)) {
        Some((unit, unit_ms)) => format!("{}{unit}", ms / unit_ms),
        None if ms == 0 => "0".to_owned(),
        None => format!("{ms}ms"),
    }
}

fn size(text: &str, min: u64, max: u64) -> Result<u64, Refusal> {
    let found = match amount(text) {
        Some((number, unit)) => match unit {
            "B" => Some((number, 1)),
            "KB" => Some((number, 1 << 10)),
            "MB" => Some((number, 1 << 20)),
            "GB" => Some((number, 1 << 30)),
            "" if number == 0 => Some((0, 1)),
            _ => None,
        },
        None => None,
    };
    let Some((number, unit_bytes)) = found else {
        return refuse("this is not a size", SIZE_ADVICE);
    };
    let bytes = number.saturating_mul(unit_bytes);
    if (min..=max).contains(&bytes) {
        return Ok(bytes);
    }
    refuse("the size is out of range", format!("write a size from \"{}\" to \"{}\"", size_text(min), size_text(max)))
}

/// `bytes` in the greatest unit that says it exactly.
pub(super) fn size_text(bytes: u64) -> String {
    let units = [("GB", 1u64 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, unit_bytes)) => format!("{}{unit}", bytes / unit_bytes),
        None if bytes == 0 => "0".to_owned(),
        None => format!("{bytes}B"),
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
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("a base address has neither `?` nor `#`", "remove that part");
    }
    Ok(url)
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
        _ => Ok(Secret::new(text)),
    }
}

fn looks_like_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.split_once(':').is_some_and(|(id, key)| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty() && key.bytes().all(allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (Duration, Duration) = (Duration::ZERO, Duration::MAX);

    #[test]
    fn lengths_of_time_are_a_number_and_one_unit() {
        for (text, ms) in
            [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("30d", 2_592_000_000), ("0", 0)]
        {
            assert_eq!(duration(text, ANY.0, ANY.1), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "30", "30 s", "-1s", "1.5h", "30S", "1h30m", "٣s", "1e3s"] {
            assert!(duration(text, ANY.0, ANY.1).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_beyond_every_number_are_out_of_range_and_do_not_wrap() {
        let year = Duration::from_secs(365 * 86_400);
        for text in ["99999999999999999999999999d", "18446744073709551615h"] {
            let refusal = duration(text, ANY.0, year).expect_err(text);
            assert_eq!(refusal.what, "the length of time is out of range", "{text}");
        }
        assert_eq!(size("18446744073709551615GB", 0, 1 << 40).expect_err("too large").what, "the size is out of range");
    }

    #[test]
    fn sizes_count_in_steps_of_1024() {
        for (text, bytes) in [("1B", 1), ("512KB", 524_288), ("64MB", 67_108_864), ("1GB", 1_073_741_824), ("0", 0)] {
            assert_eq!(size(text, 0, u64::MAX), Ok(bytes), "{text}");
            assert_eq!(size(&size_text(bytes), 0, u64::MAX), Ok(bytes), "{text}");
        }
        for text in ["", "64", "64mb", "64M", "64 MB", "1.5GB", "-1MB", "MB"] {
            assert!(size(text, 0, u64::MAX).is_err(), "{text}");
        }
    }

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
    }
}

//! Instants and lengths of time as a person gives them on the command line.

use std::time::Duration;

use crate::config::parse_length;
use crate::kernel::clock::{UnixMs, parse_rfc3339};

/// An instant: one that is named, or one that is so long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    At(UnixMs),
    Ago(Duration),
}

impl Moment {
    /// The instant, for somebody whose clock shows `now`.
    pub(super) fn at(self, now: UnixMs) -> UnixMs {
        match self {
            Self::At(at) => at,
            Self::Ago(length) => now.saturating_sub(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)),
        }
    }
}

/// `2h`, a day or an instant; for clap.
///
/// # Errors
/// What may be written instead.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    let named = parse_length(text).map(Moment::Ago).or_else(|| instant(text).ok().map(Moment::At));
    named.ok_or_else(|| {
        "write how long ago, such as 2h or 3d, a day, such as 2026-11-30, or an instant, such as \
         2026-11-30T09:00:00+03:00"
            .to_owned()
    })
}

/// A day, which is its first instant, UTC, or an instant; for clap.
///
/// # Errors
/// What may be written instead.
pub(super) fn instant(text: &str) -> Result<UnixMs, String> {
    let at = parse_rfc3339(text).or_else(|| parse_rfc3339(&format!("{text}T00:00:00Z")));
    at.ok_or_else(|| "write a day, such as 2026-11-30, or an instant, such as 2026-11-30T09:00:00+03:00".to_owned())
}

/// A length of time, such as `30s`; for clap.
///
/// # Errors
/// What may be written instead.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    parse_length(text).ok_or_else(|| "write a whole number and ms, s, m, h or d, such as 30s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_named_or_counted_back_from_now() {
        let now = 1_793_491_200_000;
        let at = |text: &str| moment(text).map(|moment| moment.at(now));
        assert_eq!(at("2h"), Ok(now - 7_200_000));
        assert_eq!(at("0"), Ok(now));
        assert_eq!(at("2026-11-01"), Ok(now));
        assert_eq!(at("2026-11-01T03:00:00+03:00"), Ok(now));
        assert_eq!(at("99999999999999d"), Ok(now - i64::MAX));
        for wrong in ["", "yesterday", "2 h", "-2h", "2026-13-01", "2h ago", "1793491200"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}

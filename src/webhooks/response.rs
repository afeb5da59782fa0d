//! What an answer means: which class of failure a status is, how long the receiver asks us to wait, and what is kept of
//! the body. Pure; `transport` reads the bytes.

use std::time::Duration;

use crate::kernel::clock::UnixMs;

/// Bytes of a body that are kept, for whoever looks after an endpoint.
pub(super) const KEPT: usize = 4 * 1024;

/// The longest that a receiver may have us wait.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Why an attempt did not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ErrorClass {
    /// The name could not be looked up.
    Dns,
    /// The egress rules forbid it.
    Blocked,
    /// No connection could be made.
    Connect,
    /// There was no understanding on encryption, the certificate included.
    Tls,
    /// It took too long, all of it together.
    Timeout,
    /// A redirect; none is followed.
    Http3xx,
    /// The receiver does not want it.
    Http4xx,
    /// The receiver cannot take it.
    Http5xx,
    /// A connection was made, and what came over it, if anything, is no answer.
    Protocol,
    /// Our process ended meanwhile, and what came of it is unknown; or, for a reason of ours, it could not be begun.
    Interrupted,
}

impl ErrorClass {
    /// Every class.
    pub(crate) const ALL: [Self; 10] = [
        Self::Dns,
        Self::Blocked,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Http3xx,
        Self::Http4xx,
        Self::Http5xx,
        Self::Protocol,
        Self::Interrupted,
    ];

    /// As it is stored and shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Blocked => "blocked",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Http3xx => "http_3xx",
            Self::Http4xx => "http_4xx",
            Self::Http5xx => "http_5xx",
            Self::Protocol => "protocol",
            Self::Interrupted => "interrupted",
        }
    }

    /// The class of that name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Why a status is no success; `None` if it is one.
    pub(crate) const fn of_status(status: u16) -> Option<Self> {
        match status {
            200..=299 => None,
            300..=399 => Some(Self::Http3xx),
            400..=499 => Some(Self::Http4xx),
            500..=599 => Some(Self::Http5xx),
            // 101 among them: nobody asked to switch.
            _ => Some(Self::Protocol),
        }
    }
}

/// How long the receiver asks us to leave it alone: `Retry-After` of a 429 or 503, in seconds or as a date (RFC 9110
/// §10.2.3), at most a day. What is neither, or over already, is no wish.
pub(super) fn retry_after(status: u16, text: &str, now: UnixMs) -> Option<Duration> {
    if !matches!(status, 429 | 503) {
        return None;
    }
    let text = text.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are a long time.
        text.parse().map_or(LONGEST_WAIT, Duration::from_secs)
    } else {
        let at = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        at.checked_sub(Duration::from_millis(now.max(0).unsigned_abs()))?
    };
    (!wait.is_zero()).then(|| wait.min(LONGEST_WAIT))
}

/// The beginning of a body as text of at most [`KEPT`] bytes. What is not UTF-8 becomes U+FFFD, and so does NUL, at which
/// many a reader of the file would stop; a character that the limit cuts is left out.
pub(super) fn kept(body: &[u8]) -> String {
    let body = &body[..body.len().min(KEPT)];
    let whole = match std::str::from_utf8(body) {
        // Nothing but the last character is amiss, and that because it goes on.
        Err(error) if error.error_len().is_none() => &body[..error.valid_up_to()],
        _ => body,
    };
    let mut text = String::from_utf8_lossy(whole).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(KEPT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14T22:13:20Z
    const NOW: UnixMs = 1_700_000_000_000;

    #[test]
    fn every_status_has_its_class() {
        let of = |status| ErrorClass::of_status(status).map(ErrorClass::as_str);
        for status in [200, 201, 202, 204, 206, 299] {
            assert_eq!(of(status), None, "{status}");
        }
        for status in [300, 301, 302, 303, 304, 307, 308, 399] {
            assert_eq!(of(status), Some("http_3xx"), "{status}");
        }
        assert_eq!([400, 404, 410, 429, 499].map(of), [Some("http_4xx"); 5]);
        assert_eq!([500, 502, 503, 599].map(of), [Some("http_5xx"); 4]);
        assert_eq!([100, 101, 199, 600, 999].map(of), [Some("protocol"); 5]);
    }

    #[test]
    fn every_class_is_read_back() {
        for class in ErrorClass::ALL {
            assert_eq!(ErrorClass::parse(class.as_str()), Some(class));
        }
        assert_eq!(ErrorClass::parse("http_2xx"), None);
    }

    #[test]
    fn a_wait_is_read_in_seconds_and_as_a_date() {
        let wait = |text| retry_after(429, text, NOW).map(|wait| wait.as_secs());
        assert_eq!([wait("1"), wait(" 120 "), wait("007")], [Some(1), Some(120), Some(7)]);
        assert_eq!(wait("Tue, 14 Nov 2023 22:14:20 GMT"), Some(60));
        assert_eq!(wait("Tuesday, 14-Nov-23 22:14:20 GMT"), Some(60), "the form of RFC 850");
        assert_eq!(wait("Tue Nov 14 22:14:20 2023"), Some(60), "the form of asctime");
        assert_eq!(retry_after(503, "5", NOW), Some(Duration::from_secs(5)));
    }

    #[test]
    fn an_absurd_wait_is_capped_or_ignored() {
        let wait = |text| retry_after(503, text, NOW).map(|wait| wait.as_secs());
        let a_day = Some(86_400);
        for text in ["86400", "86401", "18446744073709551615", "99999999999999999999999999"] {
            assert_eq!(wait(text), a_day, "{text}");
        }
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), a_day);
        let past = "Tue, 14 Nov 2023 22:13:20 GMT";
        for text in
            ["", "0", "-1", "+5", "1.5", "1e3", "0x10", "soon", "5 seconds", "٣", past, "Thu, 01 Jan 1970 00:00:00 GMT"]
        {
            assert_eq!(wait(text), None, "{text}");
        }
    }

    #[test]
    fn only_429_and_503_ask_for_a_wait() {
        for status in [200, 301, 400, 410, 500, 502, 504] {
            assert_eq!(retry_after(status, "60", NOW), None, "{status}");
        }
    }

    #[test]
    fn the_beginning_of_a_body_is_kept_as_text() {
        assert_eq!(kept("grüße".as_bytes()), "grüße");
        assert_eq!(kept(b"a\0b\xffc"), "a\u{fffd}b\u{fffd}c");
        let euros = "€".repeat(2000);
        assert_eq!(kept(euros.as_bytes()), "€".repeat(KEPT / 3), "no character is cut");
        assert_eq!(kept(&vec![0xff; 100_000]), "\u{fffd}".repeat(KEPT / 3));
        assert_eq!(kept(&vec![b'x'; 100_000]).len(), KEPT);
        assert_eq!(kept(b""), "");
    }
}

//! What is kept of a failed notification: a short code, never a text of somebody else. A type and not a habit, so that
//! no token, chat id or answer of a server can reach the file through it.

use std::borrow::Cow;

/// The most characters of a code (contract: `notification_last_error`).
const LONGEST: usize = 300;
/// So many digits in a row could be a chat's id, or a part of a token: such a text is not kept.
const LONGEST_NUMBER: usize = 5;

/// A code of `[a-z0-9_]`, 1 to 300 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode(Cow<'static, str>);

impl ErrorCode {
    /// Telegram did not answer in time; the message may have arrived.
    pub(crate) const TELEGRAM_TIMEOUT: Self = Self(Cow::Borrowed("telegram_timeout"));
    /// No connection to Telegram could be made.
    pub(crate) const TELEGRAM_UNREACHABLE: Self = Self(Cow::Borrowed("telegram_unreachable"));
    /// The summary could not be made.
    pub(crate) const SUMMARY_FAILED: Self = Self(Cow::Borrowed("notification_summary_failed"));
    /// The summary had no text.
    pub(crate) const SUMMARY_EMPTY: Self = Self(Cow::Borrowed("notification_summary_empty"));
    /// It failed, and no more is known or may be told.
    pub(crate) const NOTIFICATION_FAILED: Self = Self(Cow::Borrowed("notification_failed"));

    /// Telegram answered with this status.
    pub(crate) fn telegram_http(status: u16) -> Self {
        Self(Cow::Owned(format!("telegram_http_{status:03}")))
    }

    /// What a caller of the RPC surface says went wrong: its code, or [`Self::NOTIFICATION_FAILED`] for anything that
    /// is none or could hold more than a code should.
    pub(crate) fn from_caller(text: Option<&str>) -> Self {
        match text {
            Some(text) if is_code(text) && !has_long_number(text) => Self(Cow::Owned(text.to_owned())),
            _ => Self::NOTIFICATION_FAILED,
        }
    }

    /// The code.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_code(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(known)
}

fn has_long_number(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > LONGEST_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn a_callers_code_is_kept_and_anything_else_is_not() {
        let longest = "a".repeat(300);
        for code in ["telegram_http_429", "x", "chat_12345_gone", &longest] {
            assert_eq!(ErrorCode::from_caller(Some(code)).as_str(), code);
        }
        let too_long = "a".repeat(301);
        let refused = ["", "Timeout", "a b", "chat_100123", "a\0", "код", "-100123", "a-b", &too_long];
        for text in refused {
            assert_eq!(ErrorCode::from_caller(Some(text)), ErrorCode::NOTIFICATION_FAILED, "{text}");
        }
        assert_eq!(ErrorCode::from_caller(None), ErrorCode::NOTIFICATION_FAILED);
    }

    #[test]
    fn our_own_codes_are_codes() {
        let http = ErrorCode::telegram_http(429);
        assert_eq!(http.as_str(), "telegram_http_429");
        let all = [
            http,
            ErrorCode::TELEGRAM_TIMEOUT,
            ErrorCode::TELEGRAM_UNREACHABLE,
            ErrorCode::SUMMARY_FAILED,
            ErrorCode::SUMMARY_EMPTY,
            ErrorCode::NOTIFICATION_FAILED,
        ];
        for code in all {
            assert_eq!(ErrorCode::from_caller(Some(code.as_str())), code);
        }
    }
}

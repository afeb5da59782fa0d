//! What one attempt to deliver led to: the words that the worker, the test button, the journal and the lists share.

use std::net::IpAddr;
use std::time::Duration;

use super::response::ErrorClass;
use super::sql;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Who caused an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// It was due.
    Schedule,
    /// A person asked for it.
    Manual,
}

impl Trigger {
    /// Its word in the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Manual => "manual",
        }
    }

    /// The trigger of that name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Schedule, Self::Manual].into_iter().find(|trigger| trigger.as_str() == text)
    }
}

/// How an attempt ended, as it is journaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// How long it took, in real time.
    pub(crate) duration: Duration,
    /// The status, if there was an answer.
    pub(crate) http_status: Option<u16>,
    /// Why it did not deliver; `None` if and only if it did (2xx).
    pub(crate) error: Option<ErrorClass>,
    /// What `Retry-After` asks for, counted from the answer. It is heeded with 429 and 503 only.
    pub(crate) retry_after: Option<Duration>,
    /// The first 4 KiB of the answer's body.
    pub(crate) response_body: Option<String>,
    /// The address that was dialled.
    pub(crate) resolved_ip: Option<IpAddr>,
}

impl Outcome {
    /// Whether the receiver has it.
    pub(crate) fn is_delivered(&self) -> bool {
        self.error.is_none()
    }

    /// How long it took, as it is journaled.
    pub(super) fn duration_ms(&self) -> i64 {
        i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX)
    }

    /// The receiver says that it is gone for good.
    pub(crate) fn is_gone(&self) -> bool {
        self.http_status == Some(410) && !self.is_delivered()
    }

    /// For how long the receiver asks to be left alone, if it does.
    pub(crate) fn pause_asked_for(&self) -> Option<Duration> {
        self.retry_after.filter(|_| matches!(self.http_status, Some(429 | 503)))
    }

    /// The short code for `last_error`: the status if there was one that is no success, else the class.
    pub(crate) fn code(&self) -> Option<String> {
        let error = self.error?;
        Some(match self.http_status {
            Some(status) if !(200..300).contains(&status) => format!("http_{status}"),
            _ => error.as_str().to_owned(),
        })
    }
}

/// A row of the journal.
#[derive(Clone, Debug)]
pub(super) struct Journaled<'a> {
    pub(super) delivery: i64,
    pub(super) number: i64,
    pub(super) trigger: Trigger,
    pub(super) started_at: UnixMs,
    /// Unknown of an attempt that was cut off.
    pub(super) duration_ms: Option<i64>,
    pub(super) http_status: Option<u16>,
    pub(super) error: Option<ErrorClass>,
    pub(super) response_body: Option<&'a str>,
    pub(super) resolved_ip: Option<String>,
}

/// Journals an attempt of the test button. That of an endpoint which is gone meanwhile is not kept, nor one that could not
/// be made: nothing was sent.
///
/// # Errors
/// The store's.
pub(crate) fn record_test(
    tx: &Tx<'_>,
    endpoint: i64,
    message_id: &str,
    started_at: UnixMs,
    outcome: &Outcome,
) -> Result<(), StoreError> {
    if outcome.error == Some(ErrorClass::Interrupted) {
        return Ok(());
    }
    sql::probe::insert(tx, endpoint, message_id, started_at, outcome).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::{ErrorClass, Outcome};
    use std::time::Duration;

    fn outcome(http_status: Option<u16>, error: Option<ErrorClass>) -> Outcome {
        let retry_after = Some(Duration::from_secs(1));
        let (response_body, resolved_ip) = (None, None);
        Outcome { duration: Duration::ZERO, http_status, error, retry_after, response_body, resolved_ip }
    }

    #[test]
    fn the_code_is_the_status_or_else_the_class() {
        assert_eq!(outcome(Some(503), Some(ErrorClass::Http5xx)).code().as_deref(), Some("http_503"));
        assert_eq!(outcome(None, Some(ErrorClass::Tls)).code().as_deref(), Some("tls"));
        assert_eq!(outcome(Some(200), Some(ErrorClass::Timeout)).code().as_deref(), Some("timeout"));
        assert_eq!(outcome(Some(204), None).code(), None);
    }

    #[test]
    fn retry_after_is_heeded_with_429_and_503_only() {
        for status in [429, 503] {
            assert!(outcome(Some(status), Some(ErrorClass::Http4xx)).pause_asked_for().is_some());
        }
        for status in [200, 301, 404, 500, 502] {
            assert_eq!(outcome(Some(status), Some(ErrorClass::Http5xx)).pause_asked_for(), None);
        }
    }
}

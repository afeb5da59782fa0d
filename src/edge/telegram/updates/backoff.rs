//! What each failure of the intake leads to: how long it waits, and what is told of it. These waits are real time, as
//! all of transport is.

use std::time::Duration;

use rand::Rng;

use super::health::Trouble;
use crate::chat::{Class, FailureCode};
use crate::edge::telegram::Failure;
use crate::kernel::store::StoreError;

/// Whether another program still stands in the way is asked so often.
const STANDING: Duration = Duration::from_secs(60);
const LONGEST_CONFLICT: Duration = Duration::from_secs(30);
const LONGEST_OUTAGE: Duration = Duration::from_secs(64);
/// Telegram's wait is a minimum.
const SLACK: Duration = Duration::from_millis(500);
const FIRST_STORE: Duration = Duration::from_millis(250);
const LONGEST_STORE: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);

/// Why updates do not come in.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntakeError {
    /// Another program fetches them.
    #[error("another program fetches this bot's updates")]
    Conflict,
    /// Another program's webhook is set.
    #[error("another program's webhook is set (host {host})")]
    ForeignWebhook {
        /// Where it leads; never its path, which may hold a secret.
        host: String,
    },
    /// The token is not accepted.
    #[error("Telegram does not accept the token")]
    Unauthorized,
    /// Telegram wants to be left alone.
    #[error("Telegram wants to be left alone for a while")]
    RateLimited(Option<Duration>),
    /// Telegram cannot be reached, or answers that it cannot serve.
    #[error("Telegram does not answer as it should ({0})")]
    Unreachable(FailureCode),
    /// They cannot be stored.
    #[error(transparent)]
    Store(StoreError),
}

impl From<Failure> for IntakeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { class: Class::Unauthorized, .. } => Self::Unauthorized,
            Failure::Refused { class: Class::RateLimited { retry_after }, .. } => Self::RateLimited(retry_after),
            Failure::Refused { code: FailureCode::Conflict, .. } => Self::Conflict,
            Failure::Refused { code, .. } | Failure::Unknown { code } => Self::Unreachable(code),
        }
    }
}

impl From<StoreError> for IntakeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntakeError {
    /// A short word for the metrics and the log.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::ForeignWebhook { .. } => "foreign_webhook",
            Self::Unauthorized => "unauthorized",
            Self::RateLimited(_) => "rate_limited",
            Self::Unreachable(_) => "unreachable",
            Self::Store(_) => "store",
        }
    }

    /// What is told of it at once; the rest shows as silence when it lasts.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Conflict => Some(Trouble::Conflict),
            Self::ForeignWebhook { host } => Some(Trouble::ForeignWebhook(host.clone())),
            Self::Unauthorized => Some(Trouble::Unauthorized),
            Self::RateLimited(_) | Self::Unreachable(_) | Self::Store(_) => None,
        }
    }

    /// How long to wait after so many failures before this one.
    pub(super) fn pause(&self, before: u32) -> Duration {
        match self {
            // Two that wait alike would throw each other out for ever.
            Self::Conflict => jittered(doubled(SECOND, before).min(LONGEST_CONFLICT)),
            Self::ForeignWebhook { .. } | Self::Unauthorized => STANDING,
            Self::RateLimited(Some(wait)) => *wait + SLACK,
            Self::RateLimited(None) | Self::Unreachable(_) => doubled(SECOND, before).min(LONGEST_OUTAGE),
            Self::Store(_) => doubled(FIRST_STORE, before).min(LONGEST_STORE),
        }
    }
}

fn doubled(first: Duration, times: u32) -> Duration {
    first * 2_u32.pow(times.min(16))
}

/// A half more at most.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(1.0..1.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(class: Class, code: FailureCode) -> IntakeError {
        Failure::Refused { class, code }.into()
    }

    #[test]
    fn every_failure_has_one_consequence() {
        let limited = |retry_after| refused(Class::RateLimited { retry_after }, FailureCode::RateLimited);
        let seven = Some(Duration::from_secs(7));
        let foreign = IntakeError::ForeignWebhook { host: "a.example".to_owned() };
        let lost: IntakeError = Failure::Unknown { code: FailureCode::Timeout }.into();
        let connect = refused(Class::Later, FailureCode::Connect);
        let cases = [
            (refused(Class::Unauthorized, FailureCode::Unauthorized), "unauthorized", [60_000, 60_000, 60_000], true),
            (foreign, "foreign_webhook", [60_000, 60_000, 60_000], true),
            (limited(seven), "rate_limited", [7_500, 7_500, 7_500], false),
            (limited(None), "rate_limited", [1_000, 2_000, 64_000], false),
            (lost, "unreachable", [1_000, 2_000, 64_000], false),
            (connect, "unreachable", [1_000, 2_000, 64_000], false),
            (StoreError::QueueFull.into(), "store", [250, 500, 5_000], false),
        ];
        for (error, code, pauses, is_told) in cases {
            assert_eq!((error.code(), error.trouble().is_some()), (code, is_told), "{error:?}");
            let taken = [0, 1, 20].map(|before| error.pause(before).as_millis());
            assert_eq!(taken, pauses, "{error:?}");
        }
    }

    #[test]
    fn a_conflict_waits_a_little_differently_each_time() {
        let conflict = refused(Class::Later, FailureCode::Conflict);
        assert_eq!((conflict.code(), conflict.trouble()), ("conflict", Some(Trouble::Conflict)));
        for (before, least) in [(0, 1_000), (3, 8_000), (9, 30_000)] {
            let pauses: Vec<u128> = (0..20).map(|_| conflict.pause(before).as_millis()).collect();
            assert!(pauses.iter().all(|pause| (least..least + least / 2 + 1).contains(pause)), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        }
    }
}

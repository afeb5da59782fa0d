//! What is wrong with the notifications as a whole, told once when it begins and once when it is over: codes and counts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kernel::clock::UnixMs;
use crate::leads::health::{Alert, Health};

/// Between two looks of busy passes; what a look counts is more than a pass needs to know.
const LOOK_AGAIN_AFTER_MS: i64 = 30_000;

/// The alerts that were told and are not over.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    at: Option<UnixMs>,
    told: Vec<Alert>,
}

/// What is new of the alerts.
#[derive(Debug, PartialEq, Eq)]
struct News {
    begun: Vec<Alert>,
    over: Vec<Alert>,
}

impl Watch {
    /// Whether it is time for a look. A clock that was set back is one more reason.
    pub(super) fn is_due(&self, now: UnixMs) -> bool {
        self.seen().at.is_none_or(|at| !(0..LOOK_AGAIN_AFTER_MS).contains(&now.saturating_sub(at)))
    }

    /// Tells what has changed since the last look.
    pub(super) fn tell(&self, now: UnixMs, health: &Health) {
        let News { begun, over } = self.compare(now, &health.alerts);
        let (pending, failed, stale) = (health.pending.count, health.failed.count, health.stale_sending);
        for alert in begun {
            let alert = alert.as_str();
            tracing::warn!(alert, pending, failed, stale, "the notifications of leads need a person");
        }
        for alert in over {
            let alert = alert.as_str();
            tracing::info!(alert, pending, failed, stale, "an alert of the notifications of leads is over");
        }
    }

    fn compare(&self, now: UnixMs, alerts: &[Alert]) -> News {
        let mut seen = self.seen();
        let begun = alerts.iter().copied().filter(|alert| !seen.told.contains(alert)).collect();
        let over = seen.told.iter().copied().filter(|alert| !alerts.contains(alert)).collect();
        *seen = Seen { at: Some(now), told: alerts.to_owned() };
        News { begun, over }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Every change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_new_once_and_over_once() {
        use Alert::{FailedPresent, StaleSending};
        let watch = Watch::default();
        let news = |begun: &[Alert], over: &[Alert]| News { begun: begun.into(), over: over.into() };
        assert_eq!(watch.compare(1, &[FailedPresent]), news(&[FailedPresent], &[]));
        assert_eq!(watch.compare(1, &[FailedPresent, StaleSending]), news(&[StaleSending], &[]));
        assert_eq!(watch.compare(1, &[StaleSending]), news(&[], &[FailedPresent]));
        assert_eq!(watch.compare(1, &[]), news(&[], &[StaleSending]));
        assert_eq!(watch.compare(1, &[]), news(&[], &[]));
    }

    #[test]
    fn busy_passes_look_twice_a_minute() {
        let watch = Watch::default();
        assert!(watch.is_due(1_000));
        watch.compare(1_000, &[]);
        assert!(!watch.is_due(30_999) && watch.is_due(31_000) && watch.is_due(999));
    }
}

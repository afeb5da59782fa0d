//! The one source of time, so that every due time, lease and limit can be moved by a test or by `pillarbox dev`.
//!
//! Times are unix milliseconds, UTC ([`UnixMs`]). The clock of `dev` is the system clock plus an offset that only
//! grows; every sleeper is woken by an advance and looks again. Transport time-outs and lease renewal use real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type UnixMs = i64;

/// The longest real sleep before the wall clock is read again, so that a clock set by hand or by NTP is noticed.
const LONGEST_NAP: Duration = Duration::from_secs(60);

/// A handle on the process's time; clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    base: Base,
    offset_ms: AtomicI64,
    advanced: Notify,
}

#[derive(Debug)]
enum Base {
    System,
    /// Stands still at this instant until it is advanced: the clock of tests.
    Stopped(UnixMs),
}

impl Clock {
    /// The system clock, with an offset of zero until [`Clock::advance`] is called.
    pub fn system() -> Self {
        Self::with(Base::System, 0)
    }

    /// The system clock plus `offset_ms`, as `dev` continues it from its data directory.
    pub fn system_ahead_by(offset_ms: i64) -> Self {
        Self::with(Base::System, offset_ms.max(0))
    }

    /// A clock that stands at `at` and moves only by [`Clock::advance`].
    pub fn stopped_at(at: UnixMs) -> Self {
        Self::with(Base::Stopped(at), 0)
    }

    fn with(base: Base, offset_ms: i64) -> Self {
        Self(Arc::new(Inner { base, offset_ms: AtomicI64::new(offset_ms), advanced: Notify::new() }))
    }

    /// This instant.
    pub fn now(&self) -> UnixMs {
        let base = match self.0.base {
            Base::System => system_now(),
            Base::Stopped(at) => at,
        };
        base.saturating_add(self.offset_ms())
    }

    /// How far this clock has been moved ahead, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        self.0.offset_ms.load(Ordering::Acquire)
    }

    /// Moves the clock forward in one jump and wakes every sleeper. Returns the new offset in milliseconds.
    pub fn advance(&self, by: Duration) -> i64 {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let step = |offset: i64| Some(offset.saturating_add(by_ms));
        let before = self.0.offset_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        self.0.advanced.notify_waiters();
        before.unwrap_or_else(|offset| offset).saturating_add(by_ms)
    }

    /// Sets a stopped clock to an instant, also to an earlier one, as NTP or a hand does to the system's.
    #[cfg(test)]
    pub(crate) fn set(&self, at: UnixMs) {
        let Base::Stopped(base) = self.0.base else { panic!("the system's clock is not ours to set") };
        self.0.offset_ms.store(at - base, Ordering::Release);
        self.0.advanced.notify_waiters();
    }

    /// Returns once [`Clock::now`] has reached `at`; at once if it has.
    pub async fn sleep_until(&self, at: UnixMs) {
        while self.now() < at {
            self.nap_until(at).await;
        }
    }

    /// Returns once [`Clock::now`] has reached `at`, or earlier: when the clock was moved, and at the latest after a
    /// minute of real time. For whoever computes `at` from the clock, and has to do so anew when that was set back.
    pub async fn nap_until(&self, at: UnixMs) {
        // Listen before looking: an advance between the two would otherwise be missed.
        let moved = self.0.advanced.notified();
        tokio::pin!(moved);
        moved.as_mut().enable();
        let left_ms = at.saturating_sub(self.now());
        if left_ms <= 0 {
            return;
        }
        match self.0.base {
            Base::Stopped(_) => moved.await,
            Base::System => {
                let nap = Duration::from_millis(left_ms.unsigned_abs()).min(LONGEST_NAP);
                let _ = tokio::time::timeout(nap, moved).await;
            }
        }
    }
}

/// `at` as RFC 3339 with milliseconds, UTC: how times look in JSON.
pub fn rfc3339(at: UnixMs) -> String {
    let instant = chrono::DateTime::from_timestamp_millis(at).unwrap_or(chrono::DateTime::UNIX_EPOCH);
    instant.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The instant an RFC 3339 text names; `None` if it is not one.
pub fn parse_rfc3339(text: &str) -> Option<UnixMs> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.timestamp_millis())
}

fn system_now() -> UnixMs {
    // A clock before 1970 reads as 1970: nothing is due then, and nothing breaks.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

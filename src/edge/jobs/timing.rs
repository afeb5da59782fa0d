//! When one job runs next: its schedule, what its last pass asked for, and the pause after a failure.
//!
//! Both instants are the wall clock's, and that can be set back: by NTP, by a hand, by a restored machine. An instant
//! that was computed before then lies too far ahead, by as much. So it is computed anew at every look, and looks are at
//! most a minute of real time apart (`Clock::nap_until`): the schedule is asked again each time, and what a pass had
//! asked for is held to be due as soon as the clock is seen to go back, since only a new pass knows better. A run of a
//! recorded job that comes up a second time is known by its instant and skipped.

use super::{Cause, Schedule};
use crate::app::Again;
use crate::kernel::clock::UnixMs;

/// The pause after a failed run, doubled up to the longest; on the injected clock.
const FIRST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 30_000;

/// The next instants of one job.
pub(super) struct Timing {
    schedule: Option<Schedule>,
    scheduled: Option<UnixMs>,
    again: Option<UnixMs>,
    pause_ms: i64,
    /// When it was last looked at.
    seen: UnixMs,
}

impl Timing {
    /// `again` is when the first run besides the schedule is wanted.
    pub(super) fn new(schedule: Option<Schedule>, again: Option<UnixMs>, now: UnixMs) -> Self {
        let scheduled = schedule.as_ref().and_then(|schedule| schedule.next_after(now));
        Self { schedule, scheduled, again, pause_ms: FIRST_PAUSE_MS, seen: now }
    }

    /// Until when there is nothing to do, as far as is known.
    pub(super) fn due(&self) -> UnixMs {
        earlier(self.scheduled, self.again).unwrap_or(UnixMs::MAX)
    }

    /// What is due now. An instant of the schedule is given out once.
    pub(super) fn look(&mut self, now: UnixMs) -> Option<Cause> {
        let next = self.schedule.as_ref().and_then(|schedule| schedule.next_after(now));
        self.scheduled = earlier(self.scheduled, next);
        if now < self.seen {
            self.again = self.again.map(|_| now);
        }
        self.seen = now;
        if let Some(at) = self.scheduled.filter(|at| *at <= now) {
            self.scheduled = next;
            return Some(Cause::Schedule(at));
        }
        self.again.filter(|at| *at <= now).map(|_| Cause::Wake)
    }

    /// A run has ended well, or was skipped, and asks for another.
    pub(super) fn ended(&mut self, again: Again) {
        self.pause_ms = FIRST_PAUSE_MS;
        self.again = match again {
            Again::Later => None,
            Again::Now => Some(self.seen),
            Again::At(at) => Some(at),
        };
    }

    /// A run has failed: it is tried again after a pause.
    pub(super) fn failed(&mut self) {
        self.again = Some(self.seen.saturating_add(self.pause_ms));
        self.pause_ms = (self.pause_ms * 2).min(LONGEST_PAUSE_MS);
    }
}

fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::{Again, Cause, Schedule, Timing};

    const HOUR: i64 = 3_600_000;
    const NOON: i64 = 1_796_040_000_000;

    fn every_ten_seconds() -> Option<Schedule> {
        Some(Schedule::parse("0/10 * * * * *", chrono_tz::UTC).unwrap())
    }

    #[test]
    fn a_clock_set_back_does_not_stop_the_sweeps() {
        let mut timing = Timing::new(every_ten_seconds(), None, NOON);
        assert_eq!(timing.due(), NOON + 10_000);
        assert_eq!(timing.look(NOON - HOUR + 1), None, "it is looked at, and the next sweep is near again");
        assert_eq!(timing.due(), NOON - HOUR + 10_000);
        assert_eq!(timing.look(NOON - HOUR + 10_000), Some(Cause::Schedule(NOON - HOUR + 10_000)));
        assert_eq!(timing.due(), NOON - HOUR + 20_000);
    }

    #[test]
    fn a_clock_set_back_makes_what_a_pass_asked_for_due() {
        let mut timing = Timing::new(None, Some(NOON), NOON);
        assert_eq!(timing.look(NOON), Some(Cause::Wake));
        timing.ended(Again::At(NOON + 60_000));
        assert_eq!(timing.look(NOON + 1_000), None);
        assert_eq!(timing.look(NOON - HOUR), Some(Cause::Wake));
        timing.failed();
        assert_eq!(timing.due(), NOON - HOUR + 1_000);
        assert_eq!(timing.look(NOON - 2 * HOUR), Some(Cause::Wake), "a pause is no longer for it either");
        timing.ended(Again::Later);
        assert_eq!(timing.look(NOON - 3 * HOUR), None, "who asked for nothing is left alone");
    }

    #[test]
    fn a_clock_set_ahead_runs_what_was_missed_once() {
        let mut timing = Timing::new(every_ten_seconds(), None, NOON);
        assert_eq!(timing.look(NOON + HOUR), Some(Cause::Schedule(NOON + 10_000)));
        assert_eq!(timing.look(NOON + HOUR), None);
    }

    #[test]
    fn the_pause_doubles_to_half_a_minute_and_begins_anew_after_a_success() {
        let mut timing = Timing::new(None, None, NOON);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            timing.failed();
            pauses.push(timing.due() - NOON);
        }
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        timing.ended(Again::Now);
        assert_eq!(timing.due(), NOON);
        timing.failed();
        assert_eq!(timing.due(), NOON + 1_000);
    }
}

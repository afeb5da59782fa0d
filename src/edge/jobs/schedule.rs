//! When a job is due, on a wall clock that has gaps and folds.
//!
//! The `cron` crate skips a time inside the spring gap and loses or repeats times in the autumn fold. So it is only
//! asked about a wall clock without either (local time read as if it were UTC), and each of its answers is then placed
//! in the zone by our rule: the first valid instant after a gap, and once in a fold. That suits daily jobs; anything
//! more frequent is scheduled in UTC, where there is neither.

use std::str::FromStr;

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;

use crate::kernel::clock::UnixMs;

/// Whose wall clock a schedule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    /// `jobs.time_zone`.
    Configured,
}

/// A cron expression in a zone.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    cron: cron::Schedule,
    zone: Tz,
}

/// How far a time inside a gap is looked for on its other side; the widest gap on record is a whole day.
const WIDEST_GAP_MINUTES: i64 = 48 * 60;

impl Schedule {
    /// Reads six-field cron text, with seconds.
    ///
    /// # Errors
    /// The `cron` crate's, for a text that is none.
    pub(crate) fn parse(text: &str, zone: Tz) -> Result<Self, cron::error::Error> {
        Ok(Self { cron: cron::Schedule::from_str(text)?, zone })
    }

    /// The first instant after `after`, or `None` for a schedule that has ended.
    pub(crate) fn next_after(&self, after: UnixMs) -> Option<UnixMs> {
        let after = DateTime::from_timestamp_millis(after)?;
        // In the second half of a fold the wall clock has been here before: look on from two hours earlier, so that
        // nothing is missed, and take the first answer that really lies ahead. UTC has no folds, and a sweep of every
        // ten seconds would go through 720 instants each time.
        let back = if self.zone == Tz::UTC { Duration::zero() } else { Duration::hours(2) };
        let wall = after.with_timezone(&self.zone).naive_local() - back;
        let answers = self.cron.after(&Utc.from_utc_datetime(&wall));
        let mut instants = answers.filter_map(|wall| self.place(wall.naive_utc()));
        instants.find(|instant| *instant > after).map(|instant| instant.timestamp_millis())
    }

    fn place(&self, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
        for minute in 0..WIDEST_GAP_MINUTES {
            match self.zone.from_local_datetime(&(wall + Duration::minutes(minute))) {
                LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => {
                    return Some(instant.with_timezone(&Utc));
                }
                LocalResult::None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::kernel::clock::{parse_rfc3339, rfc3339};

    fn next(cron: &str, zone: chrono_tz::Tz, after: &str) -> String {
        let schedule = Schedule::parse(cron, zone).unwrap();
        rfc3339(schedule.next_after(parse_rfc3339(after).unwrap()).unwrap())
    }

    #[test]
    fn a_time_in_the_spring_gap_runs_at_the_first_valid_instant() {
        // 2026-03-08 02:30 does not exist in New York, nor 2026-03-29 02:30 in Chisinau.
        let new_york = chrono_tz::America::New_York;
        assert_eq!(next("0 30 2 * * *", new_york, "2026-03-08T00:00:00-05:00"), "2026-03-08T07:00:00.000Z");
        assert_eq!(next("0 30 2 * * *", new_york, "2026-03-08T07:00:00Z"), "2026-03-09T06:30:00.000Z");
        let chisinau = chrono_tz::Europe::Chisinau;
        assert_eq!(next("0 30 2 * * *", chisinau, "2026-03-29T00:00:00+02:00"), "2026-03-29T00:00:00.000Z");
    }

    #[test]
    fn a_time_in_the_autumn_fold_runs_once() {
        // 2026-11-01 01:30 happens twice in New York, 2026-10-25 02:30 twice in Chisinau.
        let new_york = chrono_tz::America::New_York;
        assert_eq!(next("0 30 1 * * *", new_york, "2026-11-01T00:00:00-04:00"), "2026-11-01T05:30:00.000Z");
        assert_eq!(next("0 30 1 * * *", new_york, "2026-11-01T05:30:00Z"), "2026-11-02T06:30:00.000Z");
        assert_eq!(next("0 30 1 * * *", new_york, "2026-11-01T06:10:00Z"), "2026-11-02T06:30:00.000Z");
        let chisinau = chrono_tz::Europe::Chisinau;
        assert_eq!(next("0 30 2 * * *", chisinau, "2026-10-24T23:30:00Z"), "2026-10-26T00:30:00.000Z");
    }

    #[test]
    fn an_interval_in_utc_is_regular() {
        assert_eq!(next("0/10 * * * * *", chrono_tz::UTC, "2026-03-29T00:59:55Z"), "2026-03-29T01:00:00.000Z");
        assert_eq!(next("0/10 * * * * *", chrono_tz::UTC, "2026-03-29T01:00:00Z"), "2026-03-29T01:00:10.000Z");
    }
}

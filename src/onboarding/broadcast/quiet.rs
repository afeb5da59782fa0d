//! Quiet hours: from one minute of the day to another, on the wall clock of a zone.

use chrono::{DateTime, Days, NaiveDateTime, NaiveTime, TimeZone, Timelike};
use chrono_tz::Tz;

use crate::kernel::clock::UnixMs;

/// How far the end is looked for behind a gap of the wall clock.
const WIDEST_GAP_MINUTES: i64 = 24 * 60;

/// Hours in which nothing is sent. `from` may be behind `to`: then they go over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet {
    /// The first quiet minute of the day, 0 to 1439.
    pub(crate) from: u32,
    /// The first minute that is not quiet any more.
    pub(crate) to: u32,
    /// Whose wall clock that is.
    pub(crate) zone: Tz,
}

impl Quiet {
    /// When the quiet hours end, if `at` is in them.
    pub(crate) fn ends_after(&self, at: UnixMs) -> Option<UnixMs> {
        let local = DateTime::from_timestamp_millis(at)?.with_timezone(&self.zone);
        let minute = local.hour() * 60 + local.minute();
        let is_quiet = if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        };
        if !is_quiet {
            return None;
        }
        let days = Days::new(u64::from(minute >= self.to));
        let date = local.date_naive().checked_add_days(days)?;
        let end = date.and_time(NaiveTime::from_hms_opt(self.to / 60, self.to % 60, 0)?);
        // In the second half of a fold the first of the two ends has passed.
        self.place(end).into_iter().find(|end| *end > at).or(Some(at.saturating_add(60_000)))
    }

    /// The instants at which the wall shows this, or the first one after the gap in which it never does.
    fn place(&self, wall: NaiveDateTime) -> Vec<UnixMs> {
        let shown = |minutes| {
            let at = self.zone.from_local_datetime(&(wall + chrono::Duration::minutes(minutes)));
            [at.earliest(), at.latest()]
        };
        let found = (0..WIDEST_GAP_MINUTES).map(shown).find(|instants| instants[0].is_some());
        found.into_iter().flatten().flatten().map(|at| at.timestamp_millis()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Quiet;
    use crate::kernel::clock::{parse_rfc3339, rfc3339};

    fn ends(quiet: Quiet, at: &str) -> Option<String> {
        quiet.ends_after(parse_rfc3339(at).unwrap()).map(rfc3339)
    }

    #[test]
    fn they_go_over_midnight_by_the_wall_of_their_zone() {
        let quiet = Quiet { from: 22 * 60, to: 8 * 60, zone: chrono_tz::Europe::Berlin };
        assert_eq!(ends(quiet, "2026-11-30T20:59:59Z"), None);
        assert_eq!(ends(quiet, "2026-11-30T21:00:00Z").as_deref(), Some("2026-12-01T07:00:00.000Z"));
        assert_eq!(ends(quiet, "2026-12-01T06:59:59Z").as_deref(), Some("2026-12-01T07:00:00.000Z"));
        assert_eq!(ends(quiet, "2026-12-01T07:00:00Z"), None);
        // The clocks change in this night: it is an hour shorter.
        assert_eq!(ends(quiet, "2027-03-27T21:00:00Z").as_deref(), Some("2027-03-28T06:00:00.000Z"));
    }

    #[test]
    fn they_end_where_the_wall_has_a_gap_or_a_fold() {
        let noon = Quiet { from: 12 * 60, to: 14 * 60, zone: chrono_tz::UTC };
        assert_eq!(ends(noon, "2026-11-30T13:59:00Z").as_deref(), Some("2026-11-30T14:00:00.000Z"));
        // 02:30 does not exist on this day in Berlin.
        let gap = Quiet { from: 0, to: 150, zone: chrono_tz::Europe::Berlin };
        assert_eq!(ends(gap, "2027-03-28T00:30:00Z").as_deref(), Some("2027-03-28T01:00:00.000Z"));
        // 02:30 is there twice on this one.
        let fold = Quiet { from: 0, to: 150, zone: chrono_tz::Europe::Berlin };
        assert_eq!(ends(fold, "2027-10-31T00:10:00Z").as_deref(), Some("2027-10-31T00:30:00.000Z"));
        assert_eq!(ends(fold, "2027-10-31T01:10:00Z").as_deref(), Some("2027-10-31T01:30:00.000Z"));
    }
}

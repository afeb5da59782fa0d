//! Which day it is for the leaders, and whether its noon has passed.

use chrono::{DateTime, NaiveTime, TimeZone};
use chrono_tz::Tz;

use crate::kernel::clock::UnixMs;

/// A day of a zone, as one instant of it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    /// Its date, such as `2026-11-30`.
    pub(crate) date: String,
    /// Its noon, if that lies ahead.
    pub(crate) noon: Option<UnixMs>,
}

/// The day of this instant in a zone: by the calendar of the zone, whatever its offset does that day.
pub(crate) fn local_day(now: UnixMs, zone: Tz) -> Day {
    let local = DateTime::from_timestamp_millis(now).unwrap_or_default().with_timezone(&zone);
    let noon = NaiveTime::from_hms_opt(12, 0, 0).and_then(|noon| {
        // Changes of the clock are at night; where one were not, the first of two noons counts, and a missing one has passed.
        zone.from_local_datetime(&local.date_naive().and_time(noon)).earliest()
    });
    let noon = noon.map(|noon| noon.timestamp_millis()).filter(|noon| now < *noon);
    Day { date: local.date_naive().to_string(), noon }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;

    use super::local_day;
    use crate::kernel::clock::{parse_rfc3339, rfc3339};

    fn day(now: &str, zone: Tz) -> (String, Option<String>) {
        let day = local_day(parse_rfc3339(now).unwrap(), zone);
        (day.date, day.noon.map(rfc3339))
    }

    #[test]
    fn the_day_is_the_zones_and_ends_at_its_midnight() {
        let berlin = chrono_tz::Europe::Berlin;
        assert_eq!(day("2026-11-30T10:59:59Z", berlin), ("2026-11-30".into(), Some("2026-11-30T11:00:00.000Z".into())));
        assert_eq!(day("2026-11-30T11:00:00Z", berlin), ("2026-11-30".into(), None));
        assert_eq!(day("2026-11-30T22:59:59Z", berlin), ("2026-11-30".into(), None));
        assert_eq!(day("2026-11-30T23:00:00Z", berlin).0, "2026-12-01");
    }

    #[test]
    fn noon_is_twelve_on_the_wall_on_the_days_on_which_the_clock_changes() {
        let berlin = chrono_tz::Europe::Berlin;
        assert_eq!(day("2027-03-28T00:30:00Z", berlin).1.as_deref(), Some("2027-03-28T10:00:00.000Z"));
        assert_eq!(day("2027-10-31T00:30:00Z", berlin).1.as_deref(), Some("2027-10-31T11:00:00.000Z"));
        let new_york = chrono_tz::America::New_York;
        assert_eq!(day("2027-03-14T06:00:00Z", new_york).1.as_deref(), Some("2027-03-14T16:00:00.000Z"));
        assert_eq!(day("2027-11-07T05:00:00Z", new_york).1.as_deref(), Some("2027-11-07T17:00:00.000Z"));
    }

    #[test]
    fn a_zone_at_the_date_line_may_lack_a_day() {
        // Samoa went from the 29th to the 31st of December 2011.
        let apia = chrono_tz::Pacific::Apia;
        assert_eq!(day("2011-12-30T09:59:59Z", apia).0, "2011-12-29");
        assert_eq!(day("2011-12-30T10:00:00Z", apia).0, "2011-12-31");
        let kiritimati = chrono_tz::Pacific::Kiritimati;
        assert_eq!(
            day("2026-11-30T10:00:00Z", kiritimati),
            ("2026-12-01".into(), Some("2026-11-30T22:00:00.000Z".into()))
        );
    }
}

//! When a delivery that failed is tried again. Each pause is counted from the end of the attempt before it.

use rand::Rng;

use crate::kernel::clock::UnixMs;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// The pauses after the first failure, the second, and so on: 61 h 35 m 05 s in all. A receiver that was restarted has
/// its event within seconds, and one that was down from Friday evening to Monday morning still gets it.
pub(super) const PAUSES_MS: [i64; 8] =
    [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR];

/// The longest that anything waits for its turn by itself: the longest pause with its jitter, or the longest
/// `Retry-After` that is heeded. What is due later than this from now was written under another clock.
pub(in crate::webhooks) const LONGEST_WAIT_MS: i64 = 24 * HOUR + 24 * HOUR / 10;

/// The longest `Retry-After` that is heeded.
pub(in crate::webhooks) const LONGEST_HOLD_MS: i64 = 24 * HOUR;

/// How much of a tenth of the pause is added to it, so that what failed together does not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jitter {
    /// Anything between nothing and the whole tenth.
    Random,
    /// Nothing.
    #[cfg(test)]
    None,
    /// The whole tenth.
    #[cfg(test)]
    Most,
}

impl Jitter {
    fn of(self, pause_ms: i64) -> i64 {
        match self {
            Self::Random => rand::rng().random_range(0..=pause_ms / 10),
            #[cfg(test)]
            Self::None => 0,
            #[cfg(test)]
            Self::Most => pause_ms / 10,
        }
    }
}

/// When to try again after so many failures; `None` if that was the last try.
pub(super) fn next(failures: i64, now: UnixMs, jitter: Jitter) -> Option<UnixMs> {
    let at = usize::try_from(failures.checked_sub(1)?).ok()?;
    let pause_ms = *PAUSES_MS.get(at)?;
    Some(now.saturating_add(pause_ms).saturating_add(jitter.of(pause_ms)))
}

#[cfg(test)]
mod tests {
    use super::{HOUR, Jitter, LONGEST_WAIT_MS, MINUTE, PAUSES_MS, SECOND, next};

    #[test]
    fn nine_tries_take_two_and_a_half_days_and_that_was_it() {
        let mut at = 0;
        let mut times = vec![];
        for failures in 1.. {
            let Some(due) = next(failures, at, Jitter::None) else { break };
            at = due;
            times.push(due);
        }
        assert_eq!(times.len(), 8);
        assert_eq!(times[..3], [5 * SECOND, 5 * MINUTE + 5 * SECOND, 35 * MINUTE + 5 * SECOND]);
        assert_eq!(at, 61 * HOUR + 35 * MINUTE + 5 * SECOND);
        assert_eq!(next(0, 0, Jitter::None), None);
        assert_eq!(next(i64::MIN, 0, Jitter::None), None);
    }

    #[test]
    fn jitter_adds_up_to_a_tenth_and_takes_nothing_away() {
        for (failures, pause) in (1..).zip(PAUSES_MS) {
            assert_eq!(next(failures, 0, Jitter::Most), Some(pause + pause / 10));
            let drawn: Vec<i64> = (0..200).map(|_| next(failures, 0, Jitter::Random).unwrap()).collect();
            assert!(drawn.iter().all(|at| (pause..=pause + pause / 10).contains(at)), "{drawn:?}");
            assert!(drawn.iter().any(|at| *at != drawn[0]), "nothing is drawn");
        }
        assert_eq!(next(8, 0, Jitter::Most), Some(LONGEST_WAIT_MS));
    }
}

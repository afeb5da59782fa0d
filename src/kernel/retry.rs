//! The one back-off: a pause that doubles with every failure. Each user names its first pause, its longest, and why.

/// `first_ms` doubled this often, at most `longest_ms`; milliseconds. A negative count is none.
pub fn doubled(first_ms: i64, doublings: i64, longest_ms: i64) -> i64 {
    // Past 2^40 nothing that starts with a millisecond is a pause any more; the shift itself must stay below 63.
    let factor = 1_i64 << doublings.clamp(0, 40);
    first_ms.saturating_mul(factor).min(longest_ms)
}

#[cfg(test)]
mod tests {
    use super::doubled;

    #[test]
    fn a_pause_doubles_up_to_its_longest_and_never_overflows() {
        let pauses: Vec<i64> = (0..5).map(|times| doubled(1_000, times, 6_000)).collect();
        assert_eq!(pauses, [1_000, 2_000, 4_000, 6_000, 6_000]);
        assert_eq!(doubled(i64::MAX / 2, i64::MAX, i64::MAX), i64::MAX);
        assert_eq!(doubled(5, i64::MIN, 10), 5);
    }
}

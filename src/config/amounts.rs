//! Lengths of time and sizes: one whole number and one unit, read and written.

use std::time::Duration;

use super::value::{Refusal, refuse};

pub(super) const DURATION_ADVICE: &str = "write a whole number and ms, s, m, h or d in quotes, such as \"30s\"";
pub(super) const SIZE_ADVICE: &str =
    "write a whole number and B, KB, MB or GB in quotes, such as \"64MB\" (1 MB is 1024 x 1024 bytes)";

/// The number and the unit of `"30s"`; a bare `0` has no unit.
fn amount(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    // Twenty digits are more than any bound; the unit is then still looked at, and the range is what is refused.
    let number = if digits == 0 { return None } else { number.parse().unwrap_or(u64::MAX) };
    Some((number, unit))
}

/// The length of time that `text` says, as the configuration has it; `None` if it is none. For the command line.
pub(crate) fn parse_length(text: &str) -> Option<Duration> {
    duration(text, Duration::ZERO, Duration::MAX).ok()
}

pub(super) fn duration(text: &str, min: Duration, max: Duration) -> Result<Duration, Refusal> {
    let unit_ms = match amount(text) {
        Some((number, unit)) => match unit {
            "ms" => Some((number, 1)),
            "s" => Some((number, 1000)),
            "m" => Some((number, 60_000)),
            "h" => Some((number, 3_600_000)),
            "d" => Some((number, 86_400_000)),
            "" if number == 0 => Some((0, 1)),
            _ => None,
        },
        None => None,
    };
    let Some((number, unit_ms)) = unit_ms else {
        return refuse("this is not a length of time", DURATION_ADVICE);
    };
    let length = Duration::from_millis(number.saturating_mul(unit_ms));
    if (min..=max).contains(&length) {
        return Ok(length);
    }
    let advice = format!("write a length from \"{}\" to \"{}\"", duration_text(min), duration_text(max));
    refuse("the length of time is out of range", advice)
}

/// `length` in the greatest unit that says it exactly.
pub(super) fn duration_text(length: Duration) -> String {
    let ms = length.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.iter().find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms)) {
        Some((unit, unit_ms)) => format!("{}{unit}", ms / unit_ms),
        None if ms == 0 => "0".to_owned(),
        None => format!("{ms}ms"),
    }
}

pub(super) fn size(text: &str, min: u64, max: u64) -> Result<u64, Refusal> {
    let found = match amount(text) {
        Some((number, unit)) => match unit {
            "B" => Some((number, 1)),
            "KB" => Some((number, 1 << 10)),
            "MB" => Some((number, 1 << 20)),
            "GB" => Some((number, 1 << 30)),
            "" if number == 0 => Some((0, 1)),
            _ => None,
        },
        None => None,
    };
    let Some((number, unit_bytes)) = found else {
        return refuse("this is not a size", SIZE_ADVICE);
    };
    let bytes = number.saturating_mul(unit_bytes);
    if (min..=max).contains(&bytes) {
        return Ok(bytes);
    }
    refuse("the size is out of range", format!("write a size from \"{}\" to \"{}\"", size_text(min), size_text(max)))
}

/// `bytes` in the greatest unit that says it exactly.
pub(super) fn size_text(bytes: u64) -> String {
    let units = [("GB", 1u64 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, unit_bytes)) => format!("{}{unit}", bytes / unit_bytes),
        None if bytes == 0 => "0".to_owned(),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (Duration, Duration) = (Duration::ZERO, Duration::MAX);

    #[test]
    fn lengths_of_time_are_a_number_and_one_unit() {
        for (text, ms) in
            [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("30d", 2_592_000_000), ("0", 0)]
        {
            assert_eq!(duration(text, ANY.0, ANY.1), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "30", "30 s", "-1s", "1.5h", "30S", "1h30m", "٣s", "1e3s"] {
            assert!(duration(text, ANY.0, ANY.1).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_beyond_every_number_are_out_of_range_and_do_not_wrap() {
        let year = Duration::from_secs(365 * 86_400);
        for text in ["99999999999999999999999999d", "18446744073709551615h"] {
            let refusal = duration(text, ANY.0, year).expect_err(text);
            assert_eq!(refusal.what, "the length of time is out of range", "{text}");
        }
        assert_eq!(size("18446744073709551615GB", 0, 1 << 40).expect_err("too large").what, "the size is out of range");
    }

    #[test]
    fn sizes_count_in_steps_of_1024() {
        for (text, bytes) in [("1B", 1), ("512KB", 524_288), ("64MB", 67_108_864), ("1GB", 1_073_741_824), ("0", 0)] {
            assert_eq!(size(text, 0, u64::MAX), Ok(bytes), "{text}");
            assert_eq!(size(&size_text(bytes), 0, u64::MAX), Ok(bytes), "{text}");
        }
        for text in ["", "64", "64mb", "64M", "64 MB", "1.5GB", "-1MB", "MB"] {
            assert!(size(text, 0, u64::MAX).is_err(), "{text}");
        }
    }
}

//! The id that a form gives its request: a UUID, or the short form that people can read to one another.

/// Whether it may name a request. It is kept and answered as it was sent.
pub(super) fn is_valid(text: &str) -> bool {
    text.len() <= 80 && (is_uuid(text) || is_short_form(text))
}

/// Of any version and in any case, in the form with four hyphens.
fn is_uuid(text: &str) -> bool {
    let groups = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == groups.len()
        && parts.iter().zip(groups).all(|(part, length)| part.len() == length && all(part, |b| b.is_ascii_hexdigit()))
}

/// `IP-20261130-A1B2C3`: eight digits, then 6 to 16 of `A-Z0-9`.
fn is_short_form(text: &str) -> bool {
    let Some((day, rest)) = text.strip_prefix("IP-").and_then(|rest| rest.split_once('-')) else { return false };
    day.len() == 8
        && all(day, |b| b.is_ascii_digit())
        && (6..=16).contains(&rest.len())
        && all(rest, |b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn all(text: &str, is_fit: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn a_uuid_or_the_short_form_and_nothing_else() {
        for valid in [
            "00000000-0000-0000-0000-000000000000",
            "F47AC10B-58CC-4372-a567-0E02B2C3D479",
            "0191e7a0-0000-7000-8000-0000000000ff",
            "IP-20261130-A1B2C3",
            "IP-00000000-ABCDEFGH12345678",
        ] {
            assert!(is_valid(valid), "{valid}");
        }
        for invalid in [
            "",
            "f47ac10b58cc4372a5670e02b2c3d479",
            "{f47ac10b-58cc-4372-a567-0e02b2c3d479}",
            "f47ac10b-58cc-4372-a567-0e02b2c3d47g",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479 ",
            "f47ac10b-58cc-4372-a567-0e02b2c3d47-9",
            "ip-20261130-A1B2C3",
            "IP-2026113-A1B2C3",
            "IP-20261130-A1B2C",
            "IP-20261130-ABCDEFGH123456789",
            "IP-20261130-a1b2c3",
            "IP-20261130-A1B2-C3",
            "IP-２０２６１１３０-A1B2C3",
            "IP-20261130-A1B2C3\n",
        ] {
            assert!(!is_valid(invalid), "{invalid}");
        }
    }
}

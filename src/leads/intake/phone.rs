//! A telephone number as it is dialled from anywhere: the digits of its E.164 form, without the plus, whatever the region.
//!
//! Russia's rule is our own and a line long, since the sites that it was written for send what it expects. Other regions
//! have plans of numbers that only a library knows.

/// What a text says as a telephone number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phone {
    /// The E.164 digits of a valid number; of another the digits that were sent.
    pub(super) digits: String,
    /// Whether there may be such a number.
    pub(super) is_valid: bool,
}

/// Reads a number that was written in this region. The first one of a region other than `RU` takes 50 ms, for the
/// library reads its plans then; each further one 3 µs: not on the writer's thread.
pub(super) fn read(text: &str, region: &str) -> Phone {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if region == "RU" { russian(digits) } else { international(text, digits, region) }
}

/// Ten digits are a number of the country, eleven may begin with 8, which is dialled inside it for 7.
fn russian(digits: String) -> Phone {
    let digits = match (digits.len(), digits.strip_prefix('8')) {
        (10, _) => format!("7{digits}"),
        (11, Some(rest)) => format!("7{rest}"),
        _ => digits,
    };
    Phone { is_valid: digits.len() == 11 && digits.starts_with('7'), digits }
}

/// The library sees only digits and a leading plus: what else people write is no part of a number.
fn international(text: &str, digits: String, region: &str) -> Phone {
    let plus = if text.trim_start().starts_with('+') { "+" } else { "" };
    match phonenumber::parse(region.parse().ok(), format!("{plus}{digits}")) {
        Ok(number) if number.is_valid() => {
            let number = number.format().mode(phonenumber::Mode::E164).to_string();
            Phone { digits: number.trim_start_matches('+').to_owned(), is_valid: true }
        }
        _ => Phone { digits, is_valid: false },
    }
}

#[cfg(test)]
mod tests {
    use super::{Phone, read};

    fn check(region: &str, cases: &[(&str, &str, bool)]) {
        for (text, digits, is_valid) in cases {
            let expected = Phone { digits: (*digits).to_owned(), is_valid: *is_valid };
            assert_eq!(read(text, region), expected, "{region} {text}");
        }
    }

    #[test]
    fn a_russian_number_is_eleven_digits_that_begin_with_seven() {
        check(
            "RU",
            &[
                ("+7 (999) 123-45-67", "79991234567", true),
                ("8 999 123 45 67", "79991234567", true),
                ("9991234567", "79991234567", true),
                ("8991234567", "78991234567", true),
                ("79991234567", "79991234567", true),
                ("+1 202 555 0123", "12025550123", false),
                ("799912345678", "799912345678", false),
                ("8123", "8123", false),
                ("٩٩٩١٢٣٤٥٦٧", "", false),
                ("", "", false),
            ],
        );
    }

    #[test]
    fn other_regions_have_their_own_plans() {
        check(
            "DE",
            &[("030 123456", "4930123456", true), ("+7 999 123-45-67", "79991234567", true), ("12", "12", false)],
        );
        check("KZ", &[("8 (701) 123-45-67", "77011234567", true)]);
        check("US", &[("(202) 555-0123 ☎", "12025550123", true), ("", "", false), ("+", "", false)]);
        check("ZZ", &[("+1 202 555 0123", "12025550123", true), ("202 555 0123", "2025550123", false)]);
    }
}

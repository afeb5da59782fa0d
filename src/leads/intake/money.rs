//! An amount in a text that a person wrote: its digits, which are for sorting; what was meant stays in the text.

/// The digits of the text as one number; nothing if there are none, or more than a column holds.
pub(super) fn amount(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn the_digits_are_the_amount() {
        let cases = [
            ("5 000 000 ₽", Some(5_000_000)),
            ("около 3 млн", Some(3)),
            ("-12", Some(12)),
            ("1.500,50", Some(150_050)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("пока не знаю", None),
            ("", None),
            ("٣٤", None),
        ];
        for (text, expected) in cases {
            assert_eq!(amount(text), expected, "{text}");
        }
    }
}

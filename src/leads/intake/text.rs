//! Texts of a form as they are kept: without control characters, and cut between characters at the length of their column.

use url::Url;

/// One line: white space collapsed and trimmed, control characters removed, at most `most` characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(4 * most));
    let (mut count, mut has_gap) = (0, false);
    for c in text.chars() {
        if c.is_whitespace() {
            has_gap = count > 0;
        } else if !c.is_control() {
            let space = usize::from(has_gap);
            if count + space + 1 > most {
                break;
            }
            kept.extend(has_gap.then_some(' '));
            kept.push(c);
            count += space + 1;
            has_gap = false;
        }
    }
    kept
}

/// Several lines: every line break is LF; control characters but the tab are removed; trimmed, at most `most` characters.
pub(super) fn lines(text: &str, most: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(4 * most));
    let mut count = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next().filter(|_| count < most) {
        let c = match c {
            '\r' if rest.peek() == Some(&'\n') => continue,
            '\r' => '\n',
            other => other,
        };
        let is_kept = matches!(c, '\n' | '\t') || !c.is_control();
        let is_before_the_text = count == 0 && c.is_whitespace();
        if is_kept && !is_before_the_text {
            kept.push(c);
            count += 1;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept
}

/// A line that is an address of the web; of any other scheme it is nothing.
pub(super) fn web_address(text: &str, most: usize) -> Option<String> {
    let text = line(text, most);
    let is_web = Url::parse(&text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    is_web.then_some(text)
}

/// `None` for the empty text.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{line, lines, web_address};

    #[test]
    fn a_line_is_one_and_is_cut_between_characters() {
        let cases = [
            ("  a \r\n\t b\u{a0}\u{2028}c  ", 80, "a b c"),
            ("\u{0}a\u{7}\u{7f}\u{85}b\u{9f}", 80, "a b"),
            ("Ёжик", 3, "Ёжи"),
            ("😀😀😀", 2, "😀😀"),
            ("a b", 2, "a"),
            ("ab c", 3, "ab"),
            ("\u{202e}שלום", 80, "\u{202e}שלום"),
            ("abc", 0, ""),
            (" \r\n ", 80, ""),
        ];
        for (sent, most, expected) in cases {
            assert_eq!(line(sent, most), expected, "{sent:?}");
        }
    }

    #[test]
    fn lines_keep_their_breaks_and_are_cut_between_characters() {
        let cases = [
            ("\r\n a\r\nb\rc\n\nd \t\r\n", 80, "a\nb\nc\n\nd"),
            ("\u{1} \u{0}a\u{8}\tb", 80, "a\tb"),
            ("😀\r\n😀😀", 3, "😀\n😀"),
            ("a\n\nb", 3, "a"),
            ("\r", 80, ""),
        ];
        for (sent, most, expected) in cases {
            assert_eq!(lines(sent, most), expected, "{sent:?}");
        }
    }

    #[test]
    fn only_addresses_of_the_web_are_kept() {
        for kept in ["https://site.example/a?b=c#d", "HTTP://site.example", "https://сайт.рф/путь"] {
            assert_eq!(web_address(kept, 1200).as_deref(), Some(kept));
        }
        for dropped in
            ["", "javascript:alert(1)", "//site.example", "/path", "ftp://site.example", "https://", "http:// a b"]
        {
            assert_eq!(web_address(dropped, 1200), None, "{dropped}");
        }
        assert_eq!(web_address("https://site.example/абв", 22).as_deref(), Some("https://site.example/а"));
    }
}

//! Telegram HTML read as plain text: what is sent when the formatting of a message was refused.

/// The text that a reader of this HTML would see: tags gone, entities decoded. Broken markup is the reason why it is
/// called, so whatever cannot be a tag or an entity stays as it is.
pub(crate) fn plain_text(html: &str) -> String {
    let mut plain = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(length) = tag_length(rest) {
            rest = &rest[length..];
        } else if let Some((decoded, length)) = entity(rest) {
            plain.push(decoded);
            rest = &rest[length..];
        } else {
            // `<` and `&` are one byte each, so this is a character boundary.
            plain.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    plain
}

/// The length of the tag at the start of `text`, if one stands there.
fn tag_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let name = inner.strip_prefix('/').unwrap_or(inner);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let end = text.find('>')?;
    // A second `<` before the end means that the first one was text.
    (!text[1..end].contains('<')).then_some(end + 1)
}

/// The character that the entity at the start of `text` stands for, and the entity's length.
fn entity(text: &str) -> Option<(char, usize)> {
    let inner = text.strip_prefix('&')?;
    // Longer than any entity that Telegram knows: it was an ampersand after all.
    let end = inner.bytes().take(12).position(|byte| byte == b';')?;
    let name = &inner[..end];
    let decoded = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => char::from_u32(code_point(name)?)?,
    };
    Some((decoded, end + 2))
}

fn code_point(name: &str) -> Option<u32> {
    let number = name.strip_prefix('#')?;
    match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_and_entities_are_decoded() {
        let cases = [
            ("plain", "plain"),
            ("<b>bold</b> text", "bold text"),
            (r#"<a href="https://x.example/?a=1&amp;b=2">link</a>"#, "link"),
            (
                "1 &lt; 2 &amp;&amp; 3 &gt; 2 &quot;ok&quot; &#39;x&#39; &#x1F44D;",
                "1 < 2 && 3 > 2 \"ok\" 'x' \u{1f44d}",
            ),
            ("a < b and <i>unclosed", "a < b and unclosed"),
            ("a <b c <d>e", "a <b c e"),
            ("Tom & Jerry; &unknown; &", "Tom & Jerry; &unknown; &"),
            ("&#xD800;&#99999999999;", "&#xD800;&#99999999999;"),
            ("x<", "x<"),
            ("\u{44f}<b>\u{44f}</b>&", "\u{44f}\u{44f}&"),
        ];
        for (html, expected) in cases {
            assert_eq!(plain_text(html), expected, "{html}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_read(html in "(<|>|&|;|#|x|/|b|[0-9]|\u{44f}|\u{1f44d}){0,40}") {
            let plain = plain_text(&html);
            proptest::prop_assert!(plain.len() <= html.len());
        }
    }
}

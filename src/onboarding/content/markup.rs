//! Telegram's HTML, read strictly: what is refused here is what its server refuses, or shows other than it was meant.
//!
//! The fake Bot API has a reader of its own that was written from the server's manner; a test lets both judge every
//! shipped block.

/// UTF-16 units of a message that Telegram takes (Bot API, sendMessage), counted after its formatting is read.
pub(crate) const LONGEST_TEXT: usize = 4_096;
/// Characters that a button shows.
pub(crate) const LONGEST_LABEL: usize = 64;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Flaw {
    /// Nobody shows such a block.
    #[error("there is no such block; the nearest is `{nearest}`")]
    UnknownBlock {
        /// A key that there is.
        nearest: String,
    },
    /// It cannot be read as a template.
    #[error("line {line}: this is no template: {what}")]
    NoTemplate {
        /// Where.
        line: usize,
        /// What the template language says.
        what: String,
    },
    /// It names something that it is not given.
    #[error("it names `{name}`, which this block is not given; it may name {known}")]
    UnknownValue {
        /// The name.
        name: String,
        /// Those that it may name.
        known: String,
    },
    /// It could not be rendered.
    #[error("{with}: it cannot be rendered: {what}")]
    NotRendered {
        /// With which values.
        with: String,
        /// What the template language says.
        what: String,
    },
    /// Its markup is not Telegram's.
    #[error("{what} at `{near}`")]
    Markup {
        /// What is wrong.
        what: &'static str,
        /// The text from there on.
        near: String,
    },
    /// A tag that Telegram does not have.
    #[error("there is no tag <{name}>; there are b, i, u, s, span, tg-spoiler, blockquote, pre, code, a, tg-emoji")]
    UnknownTag {
        /// The tag.
        name: String,
    },
    /// An attribute that Telegram does not have there.
    #[error("<{tag}> takes no attribute like {attribute}")]
    Attribute {
        /// The tag.
        tag: String,
        /// The attribute.
        attribute: String,
    },
    /// Nothing would be seen.
    #[error("{with}: nothing is left to be seen")]
    Empty {
        /// With which values.
        with: String,
    },
    /// More than is taken.
    #[error("{with}: {length} of at most {most} characters")]
    TooLong {
        /// With which values.
        with: String,
        /// How long it is; for messages in UTF-16 units, as Telegram counts.
        length: usize,
        /// How long it may be.
        most: usize,
    },
    /// A button has one line.
    #[error("a button has one line")]
    Lines,
}

/// Checks a message that is sent as it stands, without values: its markup and its length.
///
/// # Errors
/// What is wrong.
pub(crate) fn check_message(html: &str) -> Result<(), Flaw> {
    check_length(&visible(html)?, LONGEST_TEXT, "as it stands")
}

/// Checks what a button says, without values.
///
/// # Errors
/// What is wrong.
pub(crate) fn check_label(text: &str) -> Result<(), Flaw> {
    if text.trim().is_empty() {
        return Err(Flaw::Empty { with: "as it stands".to_owned() });
    }
    check_line(text)?;
    match text.chars().count() {
        length if length > LONGEST_LABEL => {
            Err(Flaw::TooLong { with: "as it stands".to_owned(), length, most: LONGEST_LABEL })
        }
        _ => Ok(()),
    }
}

/// Whether it is one line.
pub(super) fn check_line(text: &str) -> Result<(), Flaw> {
    if text.chars().any(char::is_control) { Err(Flaw::Lines) } else { Ok(()) }
}

/// Whether the visible text has a length that Telegram takes.
pub(super) fn check_length(visible: &str, most: usize, with: &str) -> Result<(), Flaw> {
    let with = || with.to_owned();
    match visible.trim().encode_utf16().count() {
        0 => Err(Flaw::Empty { with: with() }),
        length if length > most => Err(Flaw::TooLong { with: with(), length, most }),
        _ => Ok(()),
    }
}

/// The text that a reader of this HTML sees.
///
/// # Errors
/// What is wrong with its markup.
pub(crate) fn visible(html: &str) -> Result<String, Flaw> {
    let mut text = String::with_capacity(html.len());
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = if rest.starts_with('&') {
            let (decoded, after) = reference(rest)?;
            text.push(decoded);
            after
        } else {
            tag(rest, &mut open)?
        };
    }
    text.push_str(rest);
    match open.last() {
        Some(name) => Err(flaw("a tag is never closed", &format!("<{name}>"))),
        None => Ok(text),
    }
}

fn flaw(what: &'static str, from: &str) -> Flaw {
    Flaw::Markup { what, near: from.chars().take(24).collect() }
}

/// Reads the tag at the start of `from`; what stands behind it.
fn tag<'a>(from: &'a str, open: &mut Vec<&'a str>) -> Result<&'a str, Flaw> {
    let end = from.find('>').ok_or_else(|| flaw("a `<` that begins no tag; write &lt;", from))?;
    let (inner, after) = (&from[1..end], &from[end + 1..]);
    if let Some(name) = inner.strip_prefix('/') {
        return match open.pop() {
            Some(expected) if expected == name.trim_end() => Ok(after),
            Some(_) => Err(flaw("tags are closed in another order than they were opened", from)),
            None => Err(flaw("an end without a beginning", from)),
        };
    }
    let name_end = inner.find(char::is_whitespace).unwrap_or(inner.len());
    let (name, attributes) = inner.split_at(name_end);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(flaw("a `<` that begins no tag; write &lt;", from));
    }
    check_attributes(name, attributes.trim())?;
    open.push(name);
    Ok(after)
}

/// Whether a tag has the attributes that it must have, and no other.
fn check_attributes(tag: &str, attributes: &str) -> Result<(), Flaw> {
    let value = |name: &str| {
        let quoted = attributes.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"')?;
        (!quoted.is_empty() && !quoted.contains(['"', '<'])).then_some(quoted)
    };
    let is_good = match tag {
        "b" | "strong" | "i" | "em" | "u" | "ins" | "s" | "strike" | "del" | "tg-spoiler" | "pre" => {
            attributes.is_empty()
        }
        "blockquote" => matches!(attributes, "" | "expandable"),
        "span" => value("class") == Some("tg-spoiler"),
        "code" => attributes.is_empty() || value("class").is_some_and(|class| class.starts_with("language-")),
        "a" => value("href").is_some(),
        "tg-emoji" => value("emoji-id").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit())),
        _ => return Err(Flaw::UnknownTag { name: tag.to_owned() }),
    };
    let attribute = if attributes.is_empty() { "none".to_owned() } else { attributes.chars().take(40).collect() };
    if is_good { Ok(()) } else { Err(Flaw::Attribute { tag: tag.to_owned(), attribute }) }
}

/// Reads the reference at the start of `from`: its character, and what stands behind it. An `&` that begins none is one.
fn reference(from: &str) -> Result<(char, &str), Flaw> {
    let inner = &from[1..];
    let end = inner.find(|next: char| !next.is_ascii_alphanumeric() && next != '#').unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    let Some(after) = after.strip_prefix(';').filter(|_| !name.is_empty()) else { return Ok(('&', inner)) };
    let decoded = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        _ => name.strip_prefix('#').and_then(numbered),
    };
    decoded.map(|decoded| (decoded, after)).ok_or_else(|| flaw("Telegram does not know this reference", from))
}

fn numbered(digits: &str) -> Option<char> {
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(code).filter(|decoded| *decoded != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_telegram_shows_is_read() {
        for (html, seen) in [
            ("plain & simple, R&D", "plain & simple, R&D"),
            ("<b>a <i>b</i></b> &lt;3 &amp; &quot;c&quot; &#233;&#xE9;", "a b <3 & \"c\" éé"),
            ("<a href=\"https://a.example/?x=1&amp;y=2\">x</a> > y", "x > y"),
            ("<span class=\"tg-spoiler\">s</span><pre><code class=\"language-rust\">fn</code></pre>", "sfn"),
            ("<blockquote expandable>q</blockquote>", "q"),
        ] {
            assert_eq!(visible(html).as_deref(), Ok(seen), "{html}");
        }
    }

    #[test]
    fn what_it_refuses_or_shows_otherwise_is_refused() {
        for html in [
            "a < b",
            "<b>a",
            "<b><i>a</b></i>",
            "a</b>",
            "<h1>a</h1>",
            "<br/>",
            "<B>a</B>",
            "<a>x</a>",
            "<a href=''>x</a>",
            "<a href=\"\">x</a>",
            "<b class=\"x\">a</b>",
            "<span class=\"red\">a</span>",
            "<span>a</span>",
            "a &nbsp; b",
            "&#0;",
            "&#x110000;",
            "<script>x</script>",
            "<",
        ] {
            assert!(visible(html).is_err(), "{html}");
        }
    }

    #[test]
    fn lengths_are_counted_as_telegram_counts_them() {
        assert!(check_message(&"x".repeat(4_096)).is_ok());
        assert!(check_message(&format!("<b>{}</b>", "&amp;".repeat(4_096))).is_ok());
        // A character beyond the first plane is two units.
        assert!(matches!(check_message(&"🙂".repeat(2_049)), Err(Flaw::TooLong { length: 4_098, most: 4_096, .. })));
        assert!(matches!(check_message("<b> \n</b>"), Err(Flaw::Empty { .. })));
        assert!(check_label(&"🙂".repeat(64)).is_ok());
        assert!(matches!(check_label(&"x".repeat(65)), Err(Flaw::TooLong { .. })));
        assert_eq!(check_label("a\nb"), Err(Flaw::Lines));
        assert!(matches!(check_label("  "), Err(Flaw::Empty { .. })));
    }
}

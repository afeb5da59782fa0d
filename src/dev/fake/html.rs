//! The Bot API's HTML: which tags there are, what is refused, and what text and entities remain.
//!
//! Offsets and lengths of entities are UTF-16 code units; offsets in error texts are bytes of the markup.

use serde_json::{Value, json};

/// Reads `html` into visible text and its entities.
///
/// # Errors
/// The part of the server's text that follows `can't parse entities: `.
pub(super) fn parse(html: &str) -> Result<(String, Vec<Value>), String> {
    let mut reader = Reader { html, at: 0, text: String::new(), utf16: 0, open: Vec::new(), entities: Vec::new() };
    while let Some(next) = reader.peek() {
        match next {
            '<' if reader.rest().starts_with("</") => reader.end_tag()?,
            '<' => reader.start_tag()?,
            '&' => reader.reference(),
            _ => {
                reader.at += next.len_utf8();
                reader.push(next);
            }
        }
    }
    if let Some(tag) = reader.open.last() {
        return Err(format!("Can't find end tag corresponding to start tag \"{}\"", tag.name));
    }
    // Closed from the inside out; the server lists them in reading order, the outer one first.
    reader.entities.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    Ok((reader.text, reader.entities.into_iter().map(|(_, _, entity)| entity).collect()))
}

struct Reader<'a> {
    html: &'a str,
    at: usize,
    text: String,
    utf16: usize,
    open: Vec<Open>,
    entities: Vec<(usize, usize, Value)>,
}

struct Open {
    name: String,
    start: usize,
    attributes: Vec<(String, String)>,
}

impl Open {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The entity this tag makes, without offset and length; `None` for a tag that makes none.
    fn entity(&self, inside_pre: bool) -> Option<Value> {
        let language = || self.attribute("class").and_then(|class| class.strip_prefix("language-"));
        Some(match self.name.as_str() {
            "b" | "strong" => json!({"type": "bold"}),
            "i" | "em" => json!({"type": "italic"}),
            "u" | "ins" => json!({"type": "underline"}),
            "s" | "strike" | "del" => json!({"type": "strikethrough"}),
            "span" | "tg-spoiler" => json!({"type": "spoiler"}),
            "blockquote" if self.attribute("expandable").is_some() => json!({"type": "expandable_blockquote"}),
            "blockquote" => json!({"type": "blockquote"}),
            "pre" => json!({"type": "pre"}),
            // Inside <pre> it only names the language.
            "code" if inside_pre => language().map(|language| json!({"type": "language", "language": language}))?,
            "code" => json!({"type": "code"}),
            "a" => json!({"type": "text_link", "url": self.attribute("href")?}),
            "tg-emoji" => json!({"type": "custom_emoji", "custom_emoji_id": self.attribute("emoji-id")?}),
            _ => return None,
        })
    }
}

const TAGS: [&str; 17] = [
    "b",
    "strong",
    "i",
    "em",
    "u",
    "ins",
    "s",
    "strike",
    "del",
    "span",
    "tg-spoiler",
    "blockquote",
    "pre",
    "code",
    "a",
    "tg-emoji",
    "tg-time",
];

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.html[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn push(&mut self, next: char) {
        self.text.push(next);
        self.utf16 += next.len_utf16();
    }

    /// Steps over characters while they fit, and returns them.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|next| !fits(next)).unwrap_or(rest.len());
        &self.html[start..self.at]
    }

    fn start_tag(&mut self) -> Result<(), String> {
        let began = self.at;
        self.at += 1;
        let name = self.take_while(|next| !next.is_whitespace() && next != '>').to_lowercase();
        if self.at == self.html.len() {
            return Err(format!("Unclosed start tag at byte offset {began}"));
        }
        if !TAGS.contains(&name.as_str()) {
            return Err(format!("Unsupported start tag \"{name}\" at byte offset {began}"));
        }
        let attributes = self.attributes(&name, began)?;
        let tag = Open { start: self.utf16, attributes, name };
        if tag.name == "span" && tag.attribute("class") != Some("tg-spoiler") {
            return Err(format!("Tag \"span\" must have class \"tg-spoiler\" at byte offset {began}"));
        }
        if tag.name == "tg-emoji" && tag.attribute("emoji-id").is_none() {
            return Err(format!("Tag \"tg-emoji\" must have attribute \"emoji-id\" at byte offset {began}"));
        }
        self.open.push(tag);
        Ok(())
    }

    /// The attributes up to and with the `>`.
    fn attributes(&mut self, tag: &str, began: usize) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        loop {
            self.take_while(char::is_whitespace);
            match self.peek() {
                None => return Err(format!("Unclosed start tag \"{tag}\" at byte offset {began}")),
                Some('>') => {
                    self.at += 1;
                    return Ok(found);
                }
                Some(_) => found.push(self.attribute(tag, began)?),
            }
        }
    }

    fn attribute(&mut self, tag: &str, began: usize) -> Result<(String, String), String> {
        let name = self.take_while(|next| !next.is_whitespace() && next != '=' && next != '>').to_lowercase();
        if name.is_empty() {
            return Err(format!("Empty attribute name in the tag \"{tag}\" at byte offset {began}"));
        }
        self.take_while(char::is_whitespace);
        if self.peek() != Some('=') {
            return Ok((name, String::new()));
        }
        self.at += 1;
        self.take_while(char::is_whitespace);
        let value = match self.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                let value = self.take_while(|next| next != quote).to_owned();
                if self.peek().is_none() {
                    return Err(format!("Unclosed start tag at byte offset {began}"));
                }
                self.at += 1;
                value
            }
            _ => self.take_while(|next| !next.is_whitespace() && next != '>').to_owned(),
        };
        Ok((name, unescaped(&value)))
    }

    fn end_tag(&mut self) -> Result<(), String> {
        let began = self.at;
        self.at += 2;
        let name = self.take_while(|next| !next.is_whitespace() && next != '>').to_lowercase();
        self.take_while(char::is_whitespace);
        if self.peek() != Some('>') {
            return Err(format!("Unclosed end tag at byte offset {began}"));
        }
        self.at += 1;
        let tag = self.open.pop().ok_or_else(|| format!("Unexpected end tag at byte offset {began}"))?;
        if !name.is_empty() && name != tag.name {
            let expected = &tag.name;
            return Err(format!(
                "Unmatched end tag at byte offset {began}, expected \"</{expected}>\", found \"</{name}>\""
            ));
        }
        self.close(&tag);
        Ok(())
    }

    fn close(&mut self, tag: &Open) {
        let inside_pre = self.open.last().is_some_and(|outer| outer.name == "pre");
        let Some(mut entity) = tag.entity(inside_pre).filter(|_| self.utf16 > tag.start) else { return };
        entity["offset"] = tag.start.into();
        entity["length"] = (self.utf16 - tag.start).into();
        if tag.name == "pre" && self.entities.last().is_some_and(|(_, _, inner)| inner["type"] == "language") {
            let (start, end, language) = self.entities.pop().expect("was just looked at");
            if (start, end) == (tag.start, self.utf16) {
                entity["language"] = language["language"].clone();
            }
        }
        self.entities.push((tag.start, self.utf16, entity));
    }

    /// A character reference; what is none stays as it is written.
    fn reference(&mut self) {
        let (decoded, len) = reference(self.rest()).unwrap_or(('&', 1));
        self.at += len;
        self.push(decoded);
    }
}

/// The character that a reference at the beginning of `text` stands for, and the bytes it takes.
fn reference(text: &str) -> Option<(char, usize)> {
    let body = &text[1..];
    let end = body.find(|next: char| !next.is_ascii_alphanumeric() && next != '#').unwrap_or(body.len());
    let name = &body[..end];
    let decoded = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code).filter(|decoded| *decoded != '\0')?
        }
    };
    let semicolon = usize::from(body[end..].starts_with(';'));
    Some((decoded, 1 + end + semicolon))
}

fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let (decoded, len) = reference(&rest[at..]).unwrap_or(('&', 1));
        out.push(decoded);
        rest = &rest[at + len..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_entities_counted_in_utf16() {
        let (text, entities) =
            parse("👥 <b>Ivän &amp; <i>Cö</i></b> &lt;3 <a href=\"https://a.example/?x=1&amp;y=2\">x</a>")
                .expect("parses");
        assert_eq!(text, "👥 Ivän & Cö <3 x");
        let expected = json!([
            {"type": "bold", "offset": 3, "length": 9},
            {"type": "italic", "offset": 10, "length": 2},
            {"type": "text_link", "url": "https://a.example/?x=1&y=2", "offset": 16, "length": 1},
        ]);
        assert_eq!(json!(entities), expected);
    }

    #[test]
    fn code_in_pre_names_its_language() {
        let (_, entities) = parse("<pre><code class=\"language-rust\">fn</code></pre>").expect("parses");
        assert_eq!(json!(entities), json!([{"type": "pre", "language": "rust", "offset": 0, "length": 2}]));
    }

    #[test]
    fn broken_markup_is_refused_with_its_place() {
        for (html, error) in [
            ("<b>x", "Can't find end tag corresponding to start tag \"b\""),
            ("x</b>", "Unexpected end tag at byte offset 1"),
            ("<b><i>x</b></i>", "Unmatched end tag at byte offset 7, expected \"</i>\", found \"</b>\""),
            ("é <div>x</div>", "Unsupported start tag \"div\" at byte offset 3"),
            ("1 < 2 > 0", "Unsupported start tag \"\" at byte offset 2"),
            ("<b", "Unclosed start tag at byte offset 0"),
            ("<a href=\"x", "Unclosed start tag at byte offset 0"),
            ("<b>x</b", "Unclosed end tag at byte offset 4"),
            ("<span>x</span>", "Tag \"span\" must have class \"tg-spoiler\" at byte offset 0"),
        ] {
            assert_eq!(parse(html), Err(error.to_owned()), "{html}");
        }
    }

    #[test]
    fn what_is_no_reference_stays_as_written() {
        assert_eq!(parse("a & b &nbsp; &#233;&#xE9; &#0; &").expect("parses").0, "a & b &nbsp; éé &#0; &");
    }
}

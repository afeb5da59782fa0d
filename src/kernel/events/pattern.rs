//! Which events are meant: a type by its whole name, or all that begin with the same words (`lead.*`).

/// The longest type, in characters, as the schema has it.
const LONGEST: usize = 128;

/// A type's whole name, or a prefix of words with `.*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Reads a pattern; `None` if no event can be meant by it.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.strip_suffix(".*").unwrap_or(text);
        let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_fit);
        (text.len() <= LONGEST && words.split('.').all(is_word)).then(|| Self(text.to_owned()))
    }

    /// Whether an event of this type is meant.
    pub fn matches(&self, event_type: &str) -> bool {
        match self.0.strip_suffix('*') {
            // The dot stays: `lead.*` means no `leads.received`, and not `lead` itself.
            Some(prefix) => event_type.len() > prefix.len() && event_type.starts_with(prefix),
            None => event_type == self.0,
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names one type.
    pub fn is_exact(&self) -> bool {
        !self.0.ends_with('*')
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_prefix_ends_at_a_dot() {
        let matches = |pattern: &str, event_type: &str| Pattern::parse(pattern).expect(pattern).matches(event_type);
        assert!(matches("lead.received", "lead.received"));
        assert!(!matches("lead.received", "lead.received.again") && !matches("lead.received", "lead.receive"));
        assert!(matches("lead.*", "lead.received") && matches("lead.*", "lead.notification.sent"));
        assert!(!matches("lead.*", "leads.received") && !matches("lead.*", "lead") && !matches("lead.*", "lead."));
        assert!(matches("a.b.*", "a.b.c") && !matches("a.b.*", "a.bc"));
    }

    #[test]
    fn what_no_event_can_be_called_is_no_pattern() {
        for text in ["lead.received", "a", "a_1.b2", "lead.*", &"a".repeat(128)] {
            assert!(Pattern::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "*",
            ".*",
            "lead*",
            "lead.*.x",
            "lead.**",
            "Lead.received",
            "lead received",
            ".lead",
            "lead.",
            "a..b",
            "l\u{e9}ad",
            &"a".repeat(129),
        ] {
            assert!(Pattern::parse(text).is_none(), "{text}");
        }
    }
}

//! Which consumers have accepted an event: the column `acceptances`, `{"webhooks": 1700000000000}`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

use crate::kernel::clock::UnixMs;

/// The column, as text. A name that is in it has accepted, whatever stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acceptances(String);

impl Acceptances {
    /// Takes the column's text. One that is no object, which only a program with the checks switched off can write,
    /// counts as nobody's.
    pub(crate) fn read(text: String) -> Self {
        if text == "{}" || Self::parse(&text).is_some() { Self(text) } else { Self("{}".to_owned()) }
    }

    fn parse(text: &str) -> Option<BTreeMap<String, &RawValue>> {
        serde_json::from_str(text).ok()
    }

    /// The text of the column.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether that consumer has accepted.
    pub(crate) fn has(&self, name: &str) -> bool {
        // Nearly always nobody has, or those just added.
        self.0 != "{}" && Self::parse(&self.0).is_some_and(|known| known.contains_key(name))
    }

    /// Notes that a consumer, which had not, has accepted. Names are plain words of ours.
    pub(crate) fn add(&mut self, name: &str, at: UnixMs) {
        let end = self.0.trim_end().len() - 1;
        self.0.truncate(end);
        let comma = if self.0.trim_end().ends_with('{') { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{comma}\"{name}\":{at}}}");
    }

    /// Who has accepted, and when; 0 for what is no time.
    pub(crate) fn times(&self) -> BTreeMap<String, UnixMs> {
        let known = Self::parse(&self.0).unwrap_or_default();
        known.into_iter().map(|(name, at)| (name, at.get().parse().unwrap_or(0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Acceptances;

    #[test]
    fn acceptances_are_added_to_whatever_another_program_wrote_there() {
        let mut fresh = Acceptances::read("{}".into());
        assert!(!fresh.has("webhooks"));
        fresh.add("webhooks", 5);
        fresh.add("analytics", 7);
        assert_eq!(fresh.as_str(), r#"{"webhooks":5,"analytics":7}"#);
        assert!(fresh.has("webhooks") && fresh.has("analytics") && !fresh.has("communications"));
        assert_eq!(fresh.times().into_iter().collect::<Vec<_>>(), [("analytics".into(), 7), ("webhooks".into(), 5)]);

        let mut odd = Acceptances::read(" { \"x\" : [1e999, \"}\"] , \"y\": \"yes\" } ".into());
        odd.add("webhooks", 5);
        assert!(odd.has("x") && odd.has("y") && odd.has("webhooks"));
        assert_eq!(odd.times()["y"], 0);
        let mut spaced = Acceptances::read("{ }".into());
        spaced.add("webhooks", 5);
        assert!(spaced.has("webhooks"));
        assert_eq!(Acceptances::read("[1]".into()).as_str(), "{}");
        assert_eq!(Acceptances::read("{}\0{".into()).as_str(), "{}");
    }
}

//! Which events an endpoint gets: all, those of a type, or those whose type begins with certain words.

use crate::webhooks::Error;

/// Entries of an endpoint's list.
const MOST_ENTRIES: usize = 100;
/// The most characters of an event's type.
const LONGEST_TYPE: usize = 128;

/// The types that an endpoint wants; `None` is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::webhooks) struct Subscription(Option<Vec<String>>);

impl Subscription {
    /// The list of an endpoint, as it was checked when it was stored.
    pub(in crate::webhooks) fn stored(event_types: Option<Vec<String>>) -> Self {
        Self(event_types)
    }

    /// Whether an event of that type is wanted.
    pub(in crate::webhooks) fn wants(&self, event_type: &str) -> bool {
        self.0.as_ref().is_none_or(|entries| entries.iter().any(|entry| fits(entry, event_type)))
    }
}

/// `lead.received` fits that type; `lead.*` fits every type that begins with `lead.`.
fn fits(entry: &str, event_type: &str) -> bool {
    match entry.strip_suffix(".*") {
        Some(prefix) => event_type.strip_prefix(prefix).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.')),
        None => entry == event_type,
    }
}

/// Checks what an owner asks for.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn check(event_types: Option<&[String]>) -> Result<(), Error> {
    let field = "event_types";
    let Some(entries) = event_types else { return Ok(()) };
    if entries.is_empty() {
        return Err(Error::Invalid { field, what: "must name at least one type; null is all of them" });
    }
    if entries.len() > MOST_ENTRIES {
        return Err(Error::Invalid { field, what: "must have at most 100 entries" });
    }
    let is_entry = |entry: &String| is_type(entry.strip_suffix(".*").unwrap_or(entry));
    if !entries.iter().all(is_entry) {
        return Err(Error::Invalid {
            field,
            what: "must be types of a-z, 0-9, _ and dots, or such with .* behind them",
        });
    }
    Ok(())
}

/// Whether an event may have this type, as the schema has it.
fn is_type(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
    (1..=LONGEST_TYPE).contains(&text.len()) && text.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::{Subscription, check};

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn a_type_is_wanted_by_its_name_or_by_how_it_begins() {
        let wants = |entries: &[&str], event_type| Subscription::stored(Some(list(entries))).wants(event_type);
        assert!(Subscription::stored(None).wants("lead.received"));
        assert!(wants(&["order.paid", "lead.received"], "lead.received"));
        assert!(wants(&["lead.*"], "lead.received") && wants(&["lead.*"], "lead.a.b"));
        for other in ["lead", "lead.", "leads.received", "lea", "my.lead.received", ""] {
            assert!(!wants(&["lead.*"], other), "{other}");
        }
        assert!(!wants(&["lead.received"], "lead.received.twice") && !wants(&["lead"], "lead.received"));
        assert!(wants(&["a.b.*"], "a.b.c") && !wants(&["a.b.*"], "a.c"));
    }

    #[test]
    fn only_types_and_beginnings_of_types_can_be_asked_for() {
        let longest = "x".repeat(128);
        for good in ["a", "lead.received", "lead.*", "a_1.b", &longest, &format!("{longest}.*")] {
            assert!(check(Some(&list(&[good]))).is_ok(), "{good}");
        }
        for bad in ["", "*", ".*x", "Lead", "lead*", "lead.*.x", "lead.**", "a b", "ä", &"x".repeat(129), "lead.*\n"] {
            assert!(check(Some(&list(&[bad]))).is_err(), "{bad:?}");
        }
        assert!(check(None).is_ok());
        assert!(check(Some(&[])).is_err());
        assert!(check(Some(&vec!["a".to_owned(); 100])).is_ok());
        assert!(check(Some(&vec!["a".to_owned(); 101])).is_err());
    }
}

//! How quickly names were answered the last time: what a resolver's threads are shared out by.

use std::collections::HashMap;

/// Names that are remembered in each of two generations; those of the older one that were not asked about since are
/// forgotten together. Ten times the endpoints of a large installation.
const REMEMBERED: usize = 4096;

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It has answered quickly.
    Quick,
    /// Nothing is known of it.
    New,
    /// It has kept a thread for long.
    Slow,
}

/// What is known of names. Bounded: whoever makes up names makes others be forgotten, and found out anew.
#[derive(Debug, Default)]
pub(super) struct Paces {
    recent: HashMap<String, Pace>,
    older: HashMap<String, Pace>,
}

impl Paces {
    pub(super) fn of(&self, name: &str) -> Pace {
        self.recent.get(name).or_else(|| self.older.get(name)).copied().unwrap_or(Pace::New)
    }

    pub(super) fn note(&mut self, name: &str, pace: Pace) {
        if self.recent.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(name.to_owned(), pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_asked_about_are_remembered_among_any_number_that_are_made_up() {
        let mut paces = Paces::default();
        paces.note("slow.example", Pace::Slow);
        for n in 0..3 * REMEMBERED {
            paces.note(&format!("{n}.evil.example"), Pace::Quick);
            if n % 100 == 0 {
                paces.note("good.example", Pace::Quick);
            }
        }
        assert_eq!(paces.of("good.example"), Pace::Quick);
        assert_eq!(paces.of("slow.example"), Pace::New, "nobody has asked about it");
        assert!(paces.recent.len() + paces.older.len() <= 2 * REMEMBERED);
        paces.note("good.example", Pace::Slow);
        assert_eq!(paces.of("good.example"), Pace::Slow);
    }
}

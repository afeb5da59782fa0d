//! How soon a broker should call, computed here: what the browser thinks of it stays in `qualification`.

/// What the texts mention, each a column of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Maternity capital, a Russian state grant that may pay for a home.
    pub(crate) matkapital: bool,
    pub(crate) bad_credit_history: bool,
    pub(crate) previous_rejection: bool,
}

impl Flags {
    /// What any of these texts mentions.
    pub(super) fn of(texts: &[&str]) -> Self {
        let mut flags = Self::default();
        for text in texts {
            let text = text.to_lowercase();
            flags.matkapital |= text.contains("маткап") || text.contains("материнск");
            flags.bad_credit_history |= text.split_once("кредитн").is_some_and(|(_, rest)| rest.contains("истор"));
            flags.previous_rejection |= text.contains("отказ");
        }
        flags
    }
}

/// What of a lead counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) phone: bool,
    pub(super) city: bool,
    pub(super) scenario: bool,
    pub(super) object: bool,
    pub(super) price: bool,
    pub(super) down_payment: bool,
    pub(super) bank_history: bool,
    pub(super) comment: bool,
    pub(super) trouble: bool,
}

impl Known {
    fn score(self) -> u32 {
        let weights = [
            (self.phone, 15),
            (self.city, 5),
            (self.scenario, 10),
            (self.object, 10),
            (self.price, 12),
            (self.down_payment, 12),
            (self.bank_history, 8),
            (self.comment, 5),
            (self.trouble, 8),
        ];
        weights.into_iter().filter(|(is_known, _)| *is_known).map(|(_, weight)| weight).sum()
    }
}

/// Of three, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    Hot,
    Warm,
    Cold,
}

impl Priority {
    pub(super) fn of(known: Known) -> Self {
        match known.score() {
            60.. => Self::Hot,
            35.. => Self::Warm,
            _ => Self::Cold,
        }
    }

    /// The word for programs.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }

    /// What the broker reads.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Hot => "срочно обработать",
            Self::Warm => "обработать в рабочий день",
            Self::Cold => "уточнить вводные",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flags, Known, Priority};

    #[test]
    fn a_flag_is_set_by_what_any_text_mentions() {
        let none = Flags::default();
        let cases = [
            ("Есть МАТКАПИТАЛ", Flags { matkapital: true, ..none }),
            ("материнский капитал", Flags { matkapital: true, ..none }),
            ("испорчена Кредитная История", Flags { bad_credit_history: true, ..none }),
            ("с плохой кредитной, увы, историей", Flags { bad_credit_history: true, ..none }),
            ("история кредитная", none),
            ("кредит на историю", none),
            ("Банк ОТКАЗАЛ дважды", Flags { previous_rejection: true, ..none }),
            ("", none),
        ];
        for (text, expected) in cases {
            assert_eq!(Flags::of(&["", text]), expected, "{text}");
        }
        assert_eq!(Flags::of(&["кредитн", "истор"]), none, "each text by itself");
        let all = Flags { matkapital: true, bad_credit_history: true, previous_rejection: true };
        assert_eq!(Flags::of(&["отказ", "маткап", "кредитная история"]), all);
    }

    #[test]
    fn the_score_is_the_sum_of_what_is_known() {
        let none = Known::default();
        let each = [
            (Known { phone: true, ..none }, 15),
            (Known { city: true, ..none }, 5),
            (Known { scenario: true, ..none }, 10),
            (Known { object: true, ..none }, 10),
            (Known { price: true, ..none }, 12),
            (Known { down_payment: true, ..none }, 12),
            (Known { bank_history: true, ..none }, 8),
            (Known { comment: true, ..none }, 5),
            (Known { trouble: true, ..none }, 8),
        ];
        for (known, weight) in each {
            assert_eq!(known.score(), weight, "{known:?}");
        }
        assert_eq!(Priority::of(none), Priority::Cold);
    }

    #[test]
    fn sixty_is_hot_and_thirty_five_is_warm() {
        let base = Known { phone: true, city: true, scenario: true, ..Known::default() };
        let cases = [
            (base, Priority::Cold),
            (Known { comment: true, ..base }, Priority::Warm),
            (Known { object: true, price: true, bank_history: true, ..base }, Priority::Hot),
            (
                Known { city: false, scenario: true, object: true, price: true, down_payment: true, ..base },
                Priority::Warm,
            ),
        ];
        for (known, expected) in cases {
            assert_eq!(Priority::of(known), expected, "{} {known:?}", known.score());
        }
    }
}

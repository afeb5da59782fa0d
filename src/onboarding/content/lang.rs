//! The languages of the bot, by the names that the file and the configuration have for them.

/// A language of the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lang {
    Ru,
    En,
}

impl Lang {
    /// Every language there are texts in.
    pub(crate) const ALL: [Self; 2] = [Self::Ru, Self::En];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ru => "ru",
            Self::En => "en",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lang| lang.as_str() == text)
    }
}

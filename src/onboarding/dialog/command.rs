//! What a person wants, as the bot understands it.

use crate::chat::Membership;
use crate::onboarding::content::Lang;

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `/start`, with the code of a leader's link.
    Start(Option<String>),
    /// `/menu`
    Menu,
    /// `/language`
    Language,
    /// `/help`
    Help,
    /// `/stop`
    Stop,
    /// A language of the first screen.
    Choose(Lang),
    /// A step of the funnel.
    Step(Step),
    /// "Yes, this member is me."
    Bind(i64),
    /// "No."
    NoBind(i64),
    /// A page of the menu.
    Show(Page),
    /// A hot lead was seen to.
    Handled {
        /// The lead's chat.
        lead: i64,
        /// The page of the list on which the button was.
        page: i64,
    },
    /// A setting takes this value.
    Set(Setting),
    /// The leader is to be told that help is wanted.
    AskHelp,
    /// A command that there is not.
    Unknown,
    /// A text that is no command.
    Text,
    /// Anything that is no text.
    Thing,
    /// A message was changed.
    Edited,
    /// A button of another version, or of nobody.
    Stale,
    /// The bot was let in, or shown out.
    Membership(Membership),
    /// Nothing that is answered.
    Silence,
}

/// A step of the funnel that a button leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// What this is about.
    Intro,
    /// The video.
    Video,
    /// It was watched.
    Watched,
    /// The way to the site.
    Site,
}

/// A page of the menu; lists have a number, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The menu itself.
    Menu,
    /// How far the person is.
    Path,
    /// Whom they brought.
    Partners(i64),
    /// Who of those is waiting for them.
    Hot(i64),
    /// Their numbers and their link.
    Cabinet,
    /// The console.
    Console,
    /// Language and opt-ins.
    Settings,
    /// Help.
    Help,
}

/// A setting and its new value: pressed twice, it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The language.
    Lang(Lang),
    /// Messages about events, and reminders.
    Urgent(bool),
    /// Digests.
    Digest(bool),
    /// Broadcasts.
    Broadcast(bool),
}

/// Where the answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Into a message of its own.
    New,
    /// Into this message, which it takes the place of.
    Edit(i64),
}

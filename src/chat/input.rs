//! What a person did, without any messenger's own types, and the port to whoever reads it out of an update.

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    /// The chat it came in; negative for groups, 0 for an update of no chat.
    pub(crate) chat_id: i64,
    /// What kind of chat that is.
    pub(crate) place: Place,
    /// Who did it, if the update says so.
    pub(crate) author: Option<Author>,
    /// What was done.
    pub(crate) what: What,
}

/// A kind of chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One person and the bot.
    Private,
    /// Several people.
    Group,
    /// Readers, and who writes to them.
    Channel,
}

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    /// The person's id, which is also that of their private chat.
    pub(crate) id: i64,
    /// Whether it is a program.
    pub(crate) is_bot: bool,
    /// As they call themselves: any text.
    pub(crate) first_name: String,
    /// Their public name, without the `@`.
    pub(crate) username: Option<String>,
    /// The language of their application, as an IETF tag.
    pub(crate) lang: Option<String>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A text was written.
    Text {
        /// The messenger's number of it in its chat.
        message_id: i64,
        /// What it says.
        text: String,
    },
    /// A sticker, a photo, a voice: anything that is no text.
    Thing {
        /// The messenger's number of it in its chat.
        message_id: i64,
    },
    /// A message was changed after it was sent.
    Edited,
    /// A button was pressed.
    Tap {
        /// The button's data.
        data: Option<String>,
        /// The message the button is on; `None` if that is too old to be changed.
        message_id: Option<i64>,
    },
    /// The bot was let in, or shown out.
    Membership(Membership),
    /// A kind this version has no use for, messages of the messenger itself too.
    Nothing,
}

/// What the bot is in a chat now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// It may write there.
    Member,
    /// It was blocked, or removed.
    Gone,
}

/// Whoever reads updates of one messenger.
pub(crate) trait Reader: Send + Sync {
    /// What a stored update says.
    ///
    /// # Errors
    /// [`Unreadable`] when it is none, or not one that this version can take apart.
    fn read(&self, raw: &str) -> Result<Input, Unreadable>;
}

/// An update that cannot be read. Without a text: that would hold what a person wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the update cannot be read")]
pub(crate) struct Unreadable;

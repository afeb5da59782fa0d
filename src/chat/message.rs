//! A message as it is queued and as it is sent: text, formatting and buttons, without any messenger's own types.

use serde::{Deserialize, Serialize};

use super::Error;
use super::kind::Kind;
use crate::kernel::clock::UnixMs;

/// The most bytes that a button's data may have (Bot API, `InlineKeyboardButton.callback_data`).
const MAX_BUTTON_DATA: usize = 64;

/// How the text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Telegram's HTML; values in it are escaped already.
    Html,
    /// As it stands.
    Plain,
}

impl Format {
    /// The format's name in the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Plain => "plain",
        }
    }

    /// The format of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "html" => Ok(Self::Html),
            "plain" => Ok(Self::Plain),
            _ => Err(Error::UnknownText { column: "format" }),
        }
    }
}

/// Rows of buttons under a message; empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Keyboard(pub(crate) Vec<Vec<Button>>);

/// One button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Button {
    /// What it says.
    pub(crate) text: String,
    /// What it does.
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// What pressing a button does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Sends this data to the bot; 1 to 64 bytes.
    Data(String),
    /// Opens this address.
    Url(String),
}

impl Keyboard {
    /// Whether every button may be sent.
    ///
    /// # Errors
    /// [`Error::InvalidButton`] for data that is empty or over 64 bytes: such a button would cost the whole message,
    /// so its author should see it when it is queued.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let fits = |button: &Button| match &button.action {
            Action::Data(data) => (1..=MAX_BUTTON_DATA).contains(&data.len()),
            Action::Url(url) => !url.is_empty(),
        };
        if self.0.iter().flatten().all(fits) { Ok(()) } else { Err(Error::InvalidButton) }
    }
}

/// A message to be queued.
#[derive(Clone, Debug)]
pub(crate) struct NewMessage {
    /// The chat; negative for groups.
    pub(crate) chat_id: i64,
    /// Its cause, which decides lane and repetition.
    pub(crate) kind: Kind,
    /// The rendered text.
    pub(crate) text: String,
    /// How the text is to be read.
    pub(crate) format: Format,
    /// The buttons under it.
    pub(crate) keyboard: Keyboard,
    /// The message of this chat, by the messenger's number, that is changed instead of adding one.
    pub(crate) edit: Option<i64>,
    /// What makes the message one of its kind; a second one with the same key is not queued.
    pub(crate) dedup_key: String,
    /// Not before this instant; at once if absent.
    pub(crate) due_at: Option<UnixMs>,
    /// Handed to [`super::Addressee::fall_back`] if the message cannot be delivered.
    pub(crate) fallback: Option<serde_json::Value>,
}

/// Whether the messenger shows a page that the text has an address of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preview {
    /// As the messenger likes.
    #[default]
    Usual,
    /// Never: its server would fetch the page.
    Off,
}

/// A message as the messenger gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The chat; negative for groups.
    pub(crate) chat_id: i64,
    /// The text.
    pub(crate) text: String,
    /// How the text is to be read.
    pub(crate) format: Format,
    /// The buttons under it.
    pub(crate) keyboard: Keyboard,
    /// The message of this chat, by the messenger's number, that is changed instead of adding one.
    pub(crate) edit: Option<i64>,
    /// Whether a page is shown with it.
    pub(crate) preview: Preview,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyboard(data: &str) -> Keyboard {
        Keyboard(vec![vec![Button { text: "help".into(), action: Action::Data(data.into()) }]])
    }

    #[test]
    fn a_keyboard_is_stored_in_a_form_of_its_own() {
        let json = serde_json::to_string(&keyboard("m:help")).expect("a keyboard is JSON");
        assert_eq!(json, r#"[[{"text":"help","data":"m:help"}]]"#);
        let back: Keyboard = serde_json::from_str(&json).expect("what we wrote");
        assert_eq!(back, keyboard("m:help"));
    }

    #[test]
    fn button_data_is_counted_in_bytes() {
        assert!(keyboard(&"a".repeat(64)).check().is_ok());
        assert!(keyboard(&"\u{44f}".repeat(33)).check().is_err());
        assert!(keyboard("").check().is_err());
    }
}

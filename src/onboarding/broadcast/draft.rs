//! Making a broadcast: what it says, to whom, how fast; checked before it is in the file.

use url::Url;

use super::{Audience, Error, Quiet, sql};
use crate::kernel::store::Tx;
use crate::onboarding::content::markup::{check_label, check_message};

/// The longest text with its markup that the file takes, in characters.
const LONGEST_BODY: usize = 16_384;

/// A button that opens an address, with what it says in each language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Button {
    pub(crate) ru: Option<String>,
    pub(crate) en: Option<String>,
    pub(crate) url: String,
}

/// A broadcast as it is made.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// What it is called in lists; nobody else sees it.
    pub(crate) name: String,
    /// The texts, in Telegram's HTML, without placeholders.
    pub(crate) ru: Option<String>,
    pub(crate) en: Option<String>,
    pub(crate) button: Option<Button>,
    pub(crate) audience: Audience,
    /// Messages a second.
    pub(crate) per_second: u32,
    pub(crate) quiet: Option<Quiet>,
}

/// Makes a broadcast; its id.
///
/// # Errors
/// [`Error::Flawed`] for what Telegram would refuse or what makes no sense; the store's.
pub(crate) fn create(tx: &Tx<'_>, draft: &Draft) -> Result<i64, Error> {
    if draft.name.trim().is_empty() || draft.name.chars().count() > 200 {
        return Err(flawed("the name", "it has 1 to 200 characters"));
    }
    if draft.ru.is_none() && draft.en.is_none() {
        return Err(flawed("the text", "there is none in any language"));
    }
    for (what, text) in [("the text in ru", &draft.ru), ("the text in en", &draft.en)] {
        text.as_deref().map_or(Ok(()), |text| check_text(what, text))?;
    }
    if let Some(button) = &draft.button {
        check_button(draft, button)?;
    }
    if !(1..=1000).contains(&draft.per_second) {
        return Err(flawed("the rate", "it is 1 to 1000 messages a second"));
    }
    if draft.quiet.is_some_and(|quiet| quiet.from == quiet.to) {
        return Err(flawed("the quiet hours", "they end where they begin"));
    }
    Ok(sql::insert(tx, draft)?)
}

fn check_text(what: &'static str, text: &str) -> Result<(), Error> {
    if text.chars().count() > LONGEST_BODY {
        return Err(flawed(what, &format!("with its markup it has more than {LONGEST_BODY} characters")));
    }
    check_message(text).map_err(|flaw| flawed(what, &flaw.to_string()))
}

fn check_button(draft: &Draft, button: &Button) -> Result<(), Error> {
    let is_address = Url::parse(&button.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "tg"));
    if !is_address || button.url.len() > 2048 {
        return Err(flawed("the button's address", "write an http, https or tg address of up to 2048 characters"));
    }
    for (what, text, label) in
        [("the button in ru", &draft.ru, &button.ru), ("the button in en", &draft.en, &button.en)]
    {
        if let Some(Err(flaw)) = label.as_deref().map(check_label) {
            return Err(flawed(what, &flaw.to_string()));
        }
        if text.is_some() && label.is_none() {
            return Err(flawed(what, "there is a text in this language, so the button has to say something in it"));
        }
    }
    Ok(())
}

fn flawed(what: &'static str, why: &str) -> Error {
    Error::Flawed { what, why: why.to_owned() }
}

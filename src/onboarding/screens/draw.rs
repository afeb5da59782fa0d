//! A screen and a view, as the text and the buttons that a person sees.

use super::{Act, Address, Btn, Flags, Item, Row, Screen, View, When};
use crate::chat::{Action, Button, Keyboard, plain_text};
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::content::{Content, Lang, Values};

/// UTF-16 units of visible text that a message may have. Telegram may count characters instead, which are no more.
const LONGEST_TEXT: usize = 4096;

/// Characters of a button that fit a line on a telephone.
const LONGEST_LABEL: usize = 64;

/// What a person sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// The text, in Telegram's HTML.
    pub(crate) text: String,
    /// The buttons.
    pub(crate) keyboard: Keyboard,
}

/// Draws a screen in a language. Of a list that is too long for one message the last items are left out, with their
/// buttons: what somebody calls themselves costs their line, and never the screen.
///
/// # Errors
/// A text that cannot be rendered; the store's.
pub(crate) fn draw(
    tx: &Tx<'_>,
    content: &Content,
    lang: Option<Lang>,
    screen: &Screen,
    view: &View,
) -> Result<Drawn, Error> {
    let canvas = Canvas { tx, content, lang, view };
    let (text, shown) = fitting(view.items.len(), |shown| canvas.text(screen, shown))?;
    Ok(Drawn { text, keyboard: canvas.keyboard(screen, shown)? })
}

/// The text with as many of its items as one message takes, and how many those are.
fn fitting<E>(items: usize, text_of: impl Fn(usize) -> Result<String, E>) -> Result<(String, usize), E> {
    let mut shown = items;
    let mut text = text_of(shown)?;
    while shown > 0 && visible_length(&text) > LONGEST_TEXT {
        shown -= 1;
        text = text_of(shown)?;
    }
    Ok((text, shown))
}

fn visible_length(html: &str) -> usize {
    plain_text(html).encode_utf16().count()
}

struct Canvas<'a> {
    tx: &'a Tx<'a>,
    content: &'a Content,
    lang: Option<Lang>,
    view: &'a View,
}

impl Canvas<'_> {
    fn text(&self, screen: &Screen, shown: usize) -> Result<String, Error> {
        let mut values = self.view.values.clone();
        let lines: Vec<&str> = self.view.items.iter().take(shown).map(|item| item.line.as_str()).collect();
        values.set_written("items", lines.join("\n"));
        self.content.render(self.tx, screen.text, self.lang, &values)
    }

    fn keyboard(&self, screen: &Screen, shown: usize) -> Result<Keyboard, Error> {
        let mut rows = Vec::new();
        for row in screen.rows {
            match row {
                Row::Of(buttons) => rows.push(self.row(buttons)?),
                Row::Each(button) => {
                    for item in self.view.items.iter().take(shown) {
                        rows.push(self.button_of(button, item)?.into_iter().collect());
                    }
                }
                Row::Pages(data) => rows.push(self.pages(data)?),
            }
        }
        rows.retain(|row: &Vec<Button>| !row.is_empty());
        Ok(Keyboard(rows))
    }

    fn row(&self, buttons: &[Btn]) -> Result<Vec<Button>, Error> {
        let mut row = Vec::new();
        for button in buttons.iter().filter(|button| self.is_there(button.when, &self.view.flags)) {
            let action = match button.act {
                Act::Data(data) => Some(Action::Data(data.to_owned())),
                Act::Open(address) => self.address(address),
                // It names one of a list, and here is none.
                Act::Item(_) | Act::Id(_) => None,
            };
            if let Some(action) = action {
                row.push(Button { text: self.label(button.label, &self.view.values)?, action });
            }
        }
        Ok(row)
    }

    fn button_of(&self, button: &Btn, item: &Item) -> Result<Option<Button>, Error> {
        if !self.is_there(button.when, &item.flags) {
            return Ok(None);
        }
        let page = self.view.page.map_or(1, |(page, _)| page);
        let action = match button.act {
            Act::Item(data) => Action::Data(format!("{data}:{}:{page}", item.id)),
            Act::Id(data) => Action::Data(format!("{data}:{}", item.id)),
            Act::Data(data) => Action::Data(data.to_owned()),
            Act::Open(address) => match self.address(address) {
                Some(action) => action,
                None => return Ok(None),
            },
        };
        Ok(Some(Button { text: self.label(button.label, &item.values)?, action }))
    }

    fn pages(&self, data: &str) -> Result<Vec<Button>, Error> {
        let Some((page, pages)) = self.view.page else { return Ok(Vec::new()) };
        let mut row = Vec::new();
        for (label, to) in [("page_back_button", page - 1), ("page_on_button", page + 1)] {
            if (1..=pages).contains(&to) {
                let text = self.label(label, &Values::none())?;
                row.push(Button { text, action: Action::Data(format!("{data}:{to}")) });
            }
        }
        Ok(row)
    }

    fn is_there(&self, when: When, flags: &Flags) -> bool {
        match when {
            When::Always => true,
            When::Has(address) => self.view.addresses.contains_key(&address),
            When::Is(flag) => flags.contains(&flag),
            When::Not(flag) => !flags.contains(&flag),
        }
    }

    fn address(&self, address: Address) -> Option<Action> {
        self.view.addresses.get(&address).cloned().map(Action::Url)
    }

    fn label(&self, block: &str, values: &Values) -> Result<String, Error> {
        let label = self.content.render(self.tx, block, self.lang, values)?;
        Ok(label.chars().take(LONGEST_LABEL).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::fitting;

    /// A head of ten characters, and lines of so many emoji, in bold.
    fn list(items: usize, emoji: usize) -> (String, usize) {
        let line = format!("<b>{}</b>", "\u{1f600}".repeat(emoji));
        fitting(items, |shown| Ok::<_, ()>(format!("0123456789{}", line.repeat(shown)))).expect("it is rendered")
    }

    #[test]
    fn a_list_that_is_too_long_loses_its_last_lines() {
        assert_eq!(list(10, 200).1, 10);
        // 10 + 10 * 410 units are too many, 10 + 9 * 410 are not.
        assert_eq!(list(10, 205).1, 9);
        // What is seen counts: markup does not, and an emoji is two units.
        assert_eq!(list(1, 2_043).1, 1);
        assert_eq!(list(1, 2_044), ("0123456789".to_owned(), 0));
    }
}

//! An answer to an update: a screen or a text, queued under a key of the update's own.

use std::cell::Cell;

use super::command::Where;
use super::{Addresses, Dialog};
use crate::chat::{self, Format, Keyboard, Kind, NewMessage};
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::content::{Content, Lang, Values};
use crate::onboarding::screens::{Drawn, Screen, View, draw};
use crate::onboarding::updates::Arrived;

/// The answers to one update.
pub(crate) struct Reply<'a> {
    tx: &'a Tx<'a>,
    dialog: &'a Dialog,
    arrived: &'a Arrived<'a>,
    /// Where the first of them goes; those after it are messages of their own.
    to: Cell<Where>,
    lang: Cell<Option<Lang>>,
    /// How many there were: the key of the next is `reply:<update>:<n>`.
    count: Cell<u32>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(tx: &'a Tx<'a>, dialog: &'a Dialog, arrived: &'a Arrived<'a>, to: Where) -> Self {
        Self { tx, dialog, arrived, to: Cell::new(to), lang: Cell::new(None), count: Cell::new(0) }
    }

    /// From now on in this language; a person who has chosen none is answered in the default one.
    pub(crate) fn speak(&self, lang: Option<Lang>) {
        self.lang.set(lang);
    }

    /// From now on in a message of its own: what is there stays as it is.
    pub(super) fn stand_apart(&self) {
        self.to.set(Where::New);
    }

    /// The language it is in.
    pub(crate) fn lang(&self) -> Option<Lang> {
        self.lang.get()
    }

    /// The texts, for lines of lists and for what others are told.
    pub(crate) fn content(&self) -> &'a Content {
        &self.dialog.content
    }

    /// Where buttons lead that lead out of the bot.
    pub(crate) fn addresses(&self) -> &'a Addresses {
        &self.dialog.addresses
    }

    /// Shows a screen.
    ///
    /// # Errors
    /// A text that cannot be rendered; the queue's; the store's.
    pub(crate) fn show(&self, screen: &Screen, view: &View) -> Result<(), Error> {
        let Drawn { text, keyboard } = draw(self.tx, self.content(), self.lang(), screen, view)?;
        let edit = match self.to.get() {
            Where::Edit(message_id) if self.count.get() == 0 => Some(message_id),
            Where::Edit(_) | Where::New => None,
        };
        self.queue(text, keyboard, edit)
    }

    /// Says a text, in a message of its own and without buttons.
    ///
    /// # Errors
    /// As [`Reply::show`].
    pub(crate) fn say(&self, block: &str, values: &Values) -> Result<(), Error> {
        let text = self.content().render(self.tx, block, self.lang(), values)?;
        self.queue(text, Keyboard::default(), None)
    }

    fn queue(&self, text: String, keyboard: Keyboard, edit: Option<i64>) -> Result<(), Error> {
        let number = self.count.replace(self.count.get() + 1);
        let message = NewMessage {
            chat_id: self.arrived.input.chat_id,
            kind: Kind::Reply,
            text,
            format: Format::Html,
            keyboard,
            edit,
            dedup_key: format!("reply:{}:{number}", self.arrived.update),
            due_at: None,
            fallback: None,
        };
        chat::enqueue(self.tx, &message)?;
        Ok(())
    }
}

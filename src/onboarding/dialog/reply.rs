//! An answer to an update: a screen or a text, queued under a key of the update's own.

use std::cell::Cell;

use super::Dialog;
use super::command::Where;
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::content::{Lang, Values};
use crate::onboarding::screens::{Screen, View};
use crate::onboarding::updates::Arrived;

/// The answers to one update.
pub(crate) struct Reply<'a> {
    pub(super) tx: &'a Tx<'a>,
    pub(super) dialog: &'a Dialog,
    pub(super) arrived: &'a Arrived<'a>,
    /// Where the first of them goes; those after it are messages of their own.
    pub(super) to: Where,
    /// What the person chose.
    pub(super) lang: Option<Lang>,
    /// How many there were: the key of the next is `reply:<update>:<n>`.
    pub(super) count: Cell<u32>,
}

impl Reply<'_> {
    /// Shows a screen.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn show(&self, _: &Screen, _: &View) -> Result<(), Error> {
        Ok(())
    }

    /// Says a text, in a message of its own and without buttons.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn say(&self, _block: &str, _: &Values) -> Result<(), Error> {
        Ok(())
    }
}

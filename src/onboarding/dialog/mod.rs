//! The conversation: what an update means for the person it comes from, and what they are shown.

pub(crate) mod bind;
mod command;
mod facts;
mod reply;

use std::sync::Arc;

pub(crate) use command::{Page, Setting, command_of};
pub(crate) use facts::{Facts, gather};
pub(crate) use reply::Reply;

use super::Error;
use super::content::Content;
use super::port::Backend;
use super::updates::Arrived;
use crate::kernel::store::Tx;

/// What the conversation needs besides the transaction.
pub(crate) struct Dialog {
    /// The texts.
    pub(crate) content: Arc<Content>,
    /// Who knows members.
    pub(crate) backend: Arc<dyn Backend>,
    /// Where buttons lead.
    pub(crate) addresses: Addresses,
}

/// Where buttons lead that lead out of the bot; what is unset has no button.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// The introduction (`bot.video_url`).
    pub(crate) video: Option<String>,
    /// The console (`bot.console_url`).
    pub(crate) console: Option<String>,
    /// The bot's public name, without the `@` (`bot.username`), of which invite links are made.
    pub(crate) username: Option<String>,
}

/// Applies an update: the person's row, their stage, and what they are answered.
///
/// # Errors
/// [`Error`]; then nothing of it was.
pub(crate) fn handle(_: &Tx<'_>, _: &Dialog, _: &Arrived<'_>) -> Result<(), Error> {
    Ok(())
}

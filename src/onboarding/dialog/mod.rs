//! The conversation: what an update means for the person it comes from, and what they are shown.
//!
//! **What.** [`command_of`] reads what is wanted out of an input, [`gather`] asks the backend for what that needs, and
//! [`handle`] applies it in one transaction: the person's row, their stage, the answers.
//!
//! **States.** A person is at a stage that only rises. A bind prompt is open, or asked (of a backend elsewhere), bound,
//! refused or changed; it stands for 24 hours.
//!
//! **Guarantees.**
//! - Who brought a person first stays their leader: `src/onboarding/dialog/tests/start.rs::the_first_leader_stays`.
//! - A button pressed again shows its screen again and lifts nothing:
//!   `src/onboarding/dialog/tests/steps.rs::a_step_pressed_again_lifts_nothing`.
//! - A person who blocked the bot is written to again after `/start` or when Telegram says so, and at nothing else:
//!   `src/onboarding/dialog/tests/odd.rs::only_start_and_membership_make_somebody_reachable`.
//! - A chat is bound only by its own answer to a prompt that stands:
//!   `src/onboarding/dialog/tests/bind.rs::an_expired_prompt_binds_nothing`.
//!
//! **Windows.** None but the inbox's: everything is one transaction.
//!
//! **Not here.** Groups, edited messages and programs: they are not talked to. What updates look like (`edge/telegram`).

pub(crate) mod bind;
mod command;
mod facts;
mod membership;
mod odd;
mod reply;
pub(super) mod sql;
mod start;
pub(crate) mod steps;
mod stop;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

pub(crate) use command::{Command, Page, Setting, command_of};
pub(crate) use facts::{Facts, gather};
pub(crate) use reply::Reply;

use super::content::{Content, Lang};
use super::people::short_name;
use super::port::Backend;
use super::sql::{Person, find_person};
use super::updates::Arrived;
use super::{Error, menu};
use crate::chat::Author;
use crate::kernel::store::{StoreError, Tx};

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
    /// Whether the backend can be asked for a way to the site.
    pub(crate) has_site: bool,
}

/// Applies an update: the person's row, their stage, and what they are answered.
///
/// # Errors
/// [`Error`]; then nothing of it was.
pub(crate) fn handle(tx: &Tx<'_>, dialog: &Dialog, arrived: &Arrived<'_>) -> Result<(), Error> {
    let (command, to) = command_of(arrived.input);
    match command {
        Command::Silence => return Ok(()),
        Command::Membership(membership) => return Ok(membership::note(tx, arrived.input.chat_id, membership)?),
        _ => {}
    }
    let Some(person) = meet(tx, arrived)? else { return Ok(()) };
    let reply = Reply::new(tx, dialog, arrived, to);
    reply.speak(person.lang.or_else(|| guess(arrived.input.author.as_ref())));
    let facts = arrived.facts;
    match command {
        Command::Start(code) => start::start(tx, &reply, &person, code.as_deref(), facts),
        Command::Language => steps::ask_language(&reply, &person),
        Command::Choose(lang) => steps::choose(tx, &reply, &person, lang),
        Command::Step(step) => steps::step(tx, &reply, &person, step, facts),
        Command::Stop => stop::stop(tx, &reply, &person),
        Command::Bind(uid) => bind::confirm(tx, dialog, &reply, &person, uid),
        Command::NoBind(uid) => bind::decline(tx, &reply, &person, uid),
        Command::Show(page) => menu::open(tx, &reply, &person, facts, page),
        Command::Handled { lead, page } => menu::handled(tx, &reply, &person, lead, page),
        Command::Set(setting) => menu::set(tx, &reply, &person, setting),
        Command::AskHelp => menu::ask_help(tx, &reply, &person),
        Command::Stale => odd::stale(&reply),
        Command::Unknown | Command::Text | Command::Thing => odd::not_understood(tx, &reply, &person),
        Command::Membership(_) | Command::Silence => Ok(()),
    }
}

/// Notes that a person was here, and who they are now; that makes them one of the bot's people.
fn meet(tx: &Tx<'_>, arrived: &Arrived<'_>) -> Result<Option<Person>, StoreError> {
    let Some(author) = &arrived.input.author else { return Ok(None) };
    let name = short_name(&author.first_name);
    let (telegram_id, username) = (author.id, author.username.as_deref());
    sql::see(tx, &sql::Seen { telegram_id, name: &name, username, at: arrived.received_at })?;
    find_person(tx, telegram_id)
}

/// The language to speak to who has not chosen one: that of their application, if it is one of ours.
fn guess(author: Option<&Author>) -> Option<Lang> {
    let tag = author?.lang.as_deref()?;
    Lang::parse(&tag.split('-').next()?.to_ascii_lowercase())
}

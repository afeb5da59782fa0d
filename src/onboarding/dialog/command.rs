//! What a person wants, as the bot understands it: commands that are typed, and the data of buttons.
//!
//! The data are a language of their own, ASCII and at most 64 bytes: `l:ru`, `f:video`, `bind:77`, `m:partners:2`,
//! `h:done:502:1`, `s:digest:0`. A leading `+` asks for a message of its own: without it the answer takes the place of the
//! message that the button is on. Whatever is no sentence of this language is of another version, or of nobody.

use crate::chat::{Input, Membership, Place, What};
use crate::onboarding::content::Lang;

/// The last page that a button may name. No list is that long that somebody would leaf to its end.
const LAST_PAGE: i64 = 9_999;

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `/start`, with the code of a leader's link.
    Start(Option<String>),
    /// `/language`
    Language,
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
    /// A page of the menu; `/menu`, `/settings` and `/help` too.
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

/// What is wanted, and where the answer goes.
pub(crate) fn command_of(input: &Input) -> (Command, Where) {
    if input.place != Place::Private || input.chat_id <= 0 {
        // Groups have no conversation with this bot; the one of the leads is no affair of ours.
        return (Command::Silence, Where::New);
    }
    if let What::Membership(membership) = input.what {
        return (Command::Membership(membership), Where::New);
    }
    // A private chat is its person's: nobody else presses a button in it, and programs are not talked to.
    let is_theirs = input.author.as_ref().is_some_and(|author| !author.is_bot && author.id == input.chat_id);
    match &input.what {
        _ if !is_theirs => (Command::Silence, Where::New),
        What::Text { text, .. } => (read_text(text), Where::New),
        What::Thing { .. } => (Command::Thing, Where::New),
        What::Tap { data, message_id } => read_tap(data.as_deref().unwrap_or_default(), *message_id),
        What::Edited | What::Nothing | What::Membership(_) => (Command::Silence, Where::New),
    }
}

fn read_tap(data: &str, message_id: Option<i64>) -> (Command, Where) {
    let (data, is_own) = data.strip_prefix('+').map_or((data, false), |rest| (rest, true));
    let to = message_id.filter(|id| *id > 0 && !is_own).map_or(Where::New, Where::Edit);
    match read_data(data) {
        // What stands there is nobody's to change any more.
        None => (Command::Stale, Where::New),
        Some(command) => (command, to),
    }
}

/// A command that was typed. Its name is followed by nothing or by white space, and may name the bot.
fn read_text(text: &str) -> Command {
    let text = text.trim();
    if !text.starts_with('/') {
        return Command::Text;
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = word.split('@').next().unwrap_or(word).to_ascii_lowercase();
    match name.as_str() {
        "/start" => Command::Start(Some(rest.trim()).filter(|code| !code.is_empty()).map(str::to_owned)),
        "/menu" => Command::Show(Page::Menu),
        "/settings" => Command::Show(Page::Settings),
        "/help" => Command::Show(Page::Help),
        "/language" => Command::Language,
        "/stop" => Command::Stop,
        _ => Command::Unknown,
    }
}

/// What a button without its `+` asks for; `None` if it is none of this version's.
fn read_data(data: &str) -> Option<Command> {
    let parts: Vec<&str> = data.split(':').collect();
    Some(match parts[..] {
        ["l", lang] => Command::Choose(Lang::parse(lang)?),
        ["f", "intro"] => Command::Step(Step::Intro),
        ["f", "video"] => Command::Step(Step::Video),
        ["f", "watched"] => Command::Step(Step::Watched),
        ["f", "site"] => Command::Step(Step::Site),
        ["bind", uid] => Command::Bind(number(uid)?),
        ["nobind", uid] => Command::NoBind(number(uid)?),
        ["m", "menu"] => Command::Show(Page::Menu),
        ["m", "path"] => Command::Show(Page::Path),
        ["m", "partners"] => Command::Show(Page::Partners(1)),
        ["m", "partners", page] => Command::Show(Page::Partners(page_number(page)?)),
        ["m", "hot"] => Command::Show(Page::Hot(1)),
        ["m", "hot", page] => Command::Show(Page::Hot(page_number(page)?)),
        ["m", "cabinet"] => Command::Show(Page::Cabinet),
        ["m", "console"] => Command::Show(Page::Console),
        ["m", "settings"] => Command::Show(Page::Settings),
        ["m", "help"] => Command::Show(Page::Help),
        ["m", "help_ask"] => Command::AskHelp,
        ["h", "done", lead, page] => Command::Handled { lead: number(lead)?, page: page_number(page)? },
        ["s", "lang", lang] => Command::Set(Setting::Lang(Lang::parse(lang)?)),
        ["s", "urgent", value] => Command::Set(Setting::Urgent(switch(value)?)),
        ["s", "digest", value] => Command::Set(Setting::Digest(switch(value)?)),
        ["s", "broadcast", value] => Command::Set(Setting::Broadcast(switch(value)?)),
        _ => return None,
    })
}

/// A positive number, written in the one way that we write it.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| *number > 0 && number.to_string() == text)
}

fn page_number(text: &str) -> Option<i64> {
    number(text).filter(|page| *page <= LAST_PAGE)
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;

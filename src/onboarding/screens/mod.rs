//! Screens as data: a text and rows of buttons, drawn for a person with the values of one moment.
//!
//! A screen asks nothing and changes nothing: who shows it has looked everything up and hands it over as a [`View`].

#[cfg(test)]
mod check;
mod draw;
pub(crate) mod menu;
pub(crate) mod steps;

use std::collections::{BTreeMap, BTreeSet};

use super::content::Values;
pub(crate) use draw::{Drawn, draw};

/// Every screen, by who shows it; all of them are checked (`check.rs`).
#[cfg(test)]
const SCREENS: &[&[Screen]] = &[menu::SCREENS, steps::SCREENS];

/// A screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// What it is called, in checks.
    #[cfg_attr(not(test), expect(dead_code, reason = "a check that fails says which screen it is"))]
    pub(crate) name: &'static str,
    /// The block of its text, which is given `items` (the lines of the view's items) besides the view's values.
    pub(crate) text: &'static str,
    /// Its buttons. A row of which no button is shown is left out.
    pub(crate) rows: &'static [Row],
}

/// Buttons side by side, or one below the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row {
    /// These.
    Of(&'static [Btn]),
    /// A row of this one for each item of the view.
    Each(&'static Btn),
    /// The page before and the page after, with these data and the page's number; only if there is more than one.
    Pages(&'static str),
}

/// A button of a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Btn {
    /// The block of what it says, whose name ends in `_button`; in [`Row::Each`] it is given the item's values.
    pub(crate) label: &'static str,
    /// What it does.
    pub(crate) act: Act,
    /// Whether it is there.
    pub(crate) when: When,
}

/// What pressing a button does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Sends these data.
    Data(&'static str),
    /// Sends these data with `:`, the item's id, `:` and the page's number behind them.
    Item(&'static str),
    /// Sends these data with `:` and the item's id behind them.
    Id(&'static str),
    /// Opens this address.
    Open(Address),
}

/// An address that a button may open; the view says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    /// `bot.video_url`.
    Video,
    /// `bot.site_url` with a connect link's token.
    Site,
    /// `bot.console_url`.
    Console,
    /// The bot itself with the member's own link; only if `bot.username` is set.
    Invite,
}

/// Whether a button is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// It is.
    Always,
    /// If the view has this address.
    Has(Address),
    /// If this is so, of the item in [`Row::Each`], else of the view.
    Is(Flag),
    /// If this is not so.
    Not(Flag),
}

/// Something that is so, or is not, of a person or of one of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flag {
    /// A request for help is open.
    Asking,
    /// Messages about events and reminders are wanted.
    OptinUrgent,
    /// Digests are wanted.
    OptinDigest,
    /// Broadcasts are wanted.
    OptinBroadcast,
}

/// What is so.
pub(crate) type Flags = BTreeSet<Flag>;

/// What a screen is drawn with.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Of its text and its buttons.
    pub(crate) values: Values,
    /// Of its list.
    pub(crate) items: Vec<Item>,
    /// The number of the page, from one, and how many there are.
    pub(crate) page: Option<(i64, i64)>,
    /// Where its buttons lead.
    pub(crate) addresses: BTreeMap<Address, String>,
    /// What is so.
    pub(crate) flags: Flags,
}

/// One of a list.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// What its button names.
    pub(crate) id: i64,
    /// Its line in the text, written already.
    pub(crate) line: String,
    /// What its button's block may name.
    pub(crate) values: Values,
    /// What is so of it.
    pub(crate) flags: Flags,
}

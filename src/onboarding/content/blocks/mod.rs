//! What there is to know of each block besides its text: how it is shown and which values it may name, so that a text is
//! checked with them before anybody is sent it.

mod bulk;
mod dialog;
mod events;
mod menu;

/// One block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Its name, the same in every language.
    pub(crate) key: &'static str,
    /// How it is shown.
    pub(crate) shape: Shape,
    /// What it may name.
    pub(crate) values: &'static [Value],
}

/// How a block is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A message, in Telegram's HTML.
    Html,
    /// As it stands, of at most so many characters.
    Plain(usize),
    /// As a button says it: one line of at most 64 characters.
    Button,
}

/// A value that a block may name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// A text, with samples of what it may be besides the worst of all.
    Text {
        /// Its name.
        name: &'static str,
        /// What it may be.
        samples: &'static [&'static str],
    },
    /// On or off.
    Switch {
        /// Its name.
        name: &'static str,
    },
}

impl Value {
    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Text { name, .. } | Self::Switch { name } => name,
        }
    }
}

/// Every block, by the part of the bot that shows it.
pub(crate) const BLOCKS: [&[Block]; 4] = [events::BLOCKS, dialog::BLOCKS, menu::BLOCKS, bulk::BLOCKS];

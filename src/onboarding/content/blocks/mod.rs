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
    /// A message or a part of one, in Telegram's HTML.
    Html,
    /// As it stands, of at most so many characters.
    Plain(usize),
    /// As a button says it: one line of at most 64 characters.
    Button,
}

impl Shape {
    /// The shape in a word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Plain(_) => "plain",
            Self::Button => "button",
        }
    }
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
    /// `items`: the lines of a list, each written already with a block of its own.
    Items,
}

impl Value {
    /// What a block calls it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Text { name, .. } | Self::Switch { name } => name,
            Self::Items => "items",
        }
    }
}

/// Every block, by the part of the bot that shows it.
pub(crate) const BLOCKS: [&[Block]; 4] = [events::BLOCKS, dialog::BLOCKS, menu::BLOCKS, bulk::BLOCKS];

/// The block of that key.
pub(crate) fn find(key: &str) -> Option<Block> {
    BLOCKS.into_iter().flatten().find(|block| block.key == key).copied()
}

/// A message, or a part of one.
const fn html(key: &'static str, values: &'static [Value]) -> Block {
    Block { key, shape: Shape::Html, values }
}

/// What a button says.
const fn button(key: &'static str) -> Block {
    Block { key, shape: Shape::Button, values: &[] }
}

/// A text, with samples of what it may be.
const fn text(name: &'static str, samples: &'static [&'static str]) -> Value {
    Value::Text { name, samples }
}

/// A whole number.
const fn number(name: &'static str) -> Value {
    Value::Text { name, samples: &["0", "1", "4711", "10000+"] }
}

//! Blocks of reminders, digests and broadcasts (`bulk.toml`).

use super::{Block, Shape, Value};

/// A number, small or large.
const fn number(name: &'static str) -> Value {
    Value::Text { name, samples: &["0", "1000000"] }
}

const fn reminder(key: &'static str) -> Block {
    Block { key, shape: Shape::Html, values: &[] }
}

const DIGEST: &[Value] = &[number("in_bot"), number("watched"), number("registered"), number("nft")];

pub(super) const BLOCKS: &[Block] = &[
    reminder("stage_1"),
    reminder("stage_2"),
    reminder("stage_3"),
    reminder("stage_4"),
    reminder("stage_5"),
    reminder("stage_6"),
    reminder("stage_7"),
    reminder("stage_8"),
    Block { key: "reminder_button", shape: Shape::Button, values: &[] },
    Block { key: "digest", shape: Shape::Html, values: DIGEST },
    Block { key: "digest_button", shape: Shape::Button, values: &[] },
];

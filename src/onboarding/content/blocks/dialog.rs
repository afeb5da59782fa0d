//! Blocks of the conversation (`dialog.toml`).

use super::Block;

pub(super) const BLOCKS: &[Block] = &[];

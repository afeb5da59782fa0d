//! Blocks of the menu (`menu.toml`).

use super::Block;

pub(super) const BLOCKS: &[Block] = &[];

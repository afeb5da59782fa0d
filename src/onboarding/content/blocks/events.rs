//! Blocks of events, of both kinds (`events.toml`).

use super::Block;

pub(super) const BLOCKS: &[Block] = &[];

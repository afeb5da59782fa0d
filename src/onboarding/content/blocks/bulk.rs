//! Blocks of reminders, digests and broadcasts (`bulk.toml`).

use super::Block;

pub(super) const BLOCKS: &[Block] = &[];

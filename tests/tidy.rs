//! Holds the tree to what `docs/architecture.md` claims of it.

fn main() {}

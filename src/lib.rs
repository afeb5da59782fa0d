//! Pillarbox: one binary with one SQLite file.

#[cfg_attr(not(test), expect(dead_code, reason = "mounted by the CLI verbs `dev` and `fake`"))]
pub(crate) mod dev;
pub mod kernel;

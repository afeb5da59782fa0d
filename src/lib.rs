//! Pillarbox: one binary with one SQLite file.

#[expect(dead_code, unused_imports, reason = "app.rs is to use it")]
pub(crate) mod chat;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "app.rs is to use it"))]
pub(crate) mod edge;
pub mod kernel;

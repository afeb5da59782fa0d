//! Pillarbox: one binary with one SQLite file.

pub(crate) mod backend;
pub mod kernel;

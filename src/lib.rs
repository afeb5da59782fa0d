//! Pillarbox: one binary with one SQLite file.

pub mod config;
pub(crate) mod edge;
pub mod kernel;

//! Pillarbox: one binary with one SQLite file.

pub(crate) mod backend;
pub mod config;
pub(crate) mod edge;
pub mod kernel;

//! Pillarbox: one binary with one SQLite file.

pub mod kernel;

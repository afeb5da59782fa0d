//! Pillarbox: one binary with one SQLite file.

pub(crate) mod app;
pub(crate) mod backend;
pub(crate) mod chat;
pub mod config;
pub(crate) mod dev;
pub(crate) mod edge;
pub mod kernel;
pub(crate) mod onboarding;
pub(crate) mod outbox;

/// The program: runs the verb that `args` (the program's name first) ask for, and answers how it ended.
pub fn run(args: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    edge::cli::run(args)
}

//! The command line: its verbs, and what they share, so that every verb ends and prints in the same way.

mod args;
mod beside;
mod broadcast;
pub(crate) mod config;
mod confirm;
mod content;
pub(crate) mod dev;
mod events;
pub(crate) mod fake;
pub(crate) mod init;
mod input;
mod jobs;
mod keys;
mod leads;
mod members;
mod messages;
mod migrate;
mod moment;
mod outbox;
mod print;
mod run;
pub(crate) mod serve;
mod sql;
mod statement;
mod tenants;
mod updates;
mod version;
mod webhooks;
mod whose;

pub(crate) use run::run;

use std::process::ExitCode;

use crate::config::ConfigErrors;

/// How a verb ended. Scripts and service managers rely on the numbers: a unit that ended with 2 or 3 is not worth a
/// restart, because only an edit can help it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// The verb failed; the message says why.
    Failure = 1,
    /// The command line does not fit (clap ends the process with this number itself).
    Usage = 2,
    /// The configuration is invalid.
    ConfigInvalid = 3,
}

impl Exit {
    /// The exit of a verb that ended with `error`: 3 if the configuration was refused, else 1.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<ConfigErrors>() { Self::ConfigInvalid } else { Self::Failure }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What a listing verb prints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// Columns for a reader at a terminal.
    Table,
    /// One JSON object a line, for programs.
    Json,
}

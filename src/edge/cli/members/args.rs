//! The command line of `members` as clap reads it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::edge::cli::args::{Overrides, Printed};

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum MembersVerb {
    /// Store the members of a CSV or NDJSON file, and tell of what each reaches, as PUT /v1/members does
    #[command(
        after_help = "CSV has a header: `uid` and names of a PUT's fields; an empty cell changes nothing, \\N clears. \
        NDJSON has an object a line: a PUT's body with `uid`.\n\
        A line that is not right is told by its number, and the rest goes on; exit 1 if there were any.\n\
        An import that was cut off goes on where it was when the same file is imported again.\n\
        Example: pillarbox members import members.csv --errors bad-lines.txt"
    )]
    Import(ImportArgs),
    /// Show a member by id, or by the chat that is bound
    #[command(after_help = "Exit 1 if there is none. Example: pillarbox members show --telegram 123456")]
    Show(ShowArgs),
}

impl MembersVerb {
    pub(super) fn set(&self) -> &[String] {
        match self {
            Self::Import(args) => &args.overrides.set,
            Self::Show(args) => &args.overrides.set,
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ImportArgs {
    /// The file
    pub(super) file: PathBuf,
    /// What it is; by the end of its name if nothing is said
    #[arg(long, value_enum)]
    pub(super) format: Option<FileFormat>,
    /// Import a file anew that was imported whole, or from its beginning one that was cut off
    #[arg(long)]
    pub(super) again: bool,
    /// Add what is wrong with which line to this file, and not to stderr
    #[arg(long, value_name = "FILE")]
    pub(super) errors: Option<PathBuf>,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

/// What a file of members is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FileFormat {
    /// A header, and a member a line
    Csv,
    /// A JSON object a line
    Ndjson,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ShowArgs {
    /// The member's id
    #[arg(value_parser = clap::value_parser!(i64).range(1..), required_unless_present = "telegram")]
    pub(super) uid: Option<i64>,
    /// The chat that is bound to the member
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(1..), conflicts_with = "uid")]
    pub(super) telegram: Option<i64>,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

//! The verbs of `pillarbox leads` as clap reads them, and what they say of themselves.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use crate::edge::cli::args::{Overrides, Printed};
use crate::edge::cli::moment::instant;
use crate::kernel::clock::UnixMs;
use crate::leads::{CrmStatus, NotificationStatus, RetryReason};

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum LeadsVerb {
    /// List leads, the newest first; a name and a city are in it, phones and texts are not
    #[command(after_help = "Example: pillarbox leads list --status failed --from 2026-11-01")]
    List(ListArgs),
    /// Show one lead whole, with what happened to it
    #[command(after_help = "Example: pillarbox leads show IP-20261130-A1B2C3")]
    Show(OneArgs),
    /// Print the text that the broker's chat is sent of a lead
    #[command(after_help = "Example: pillarbox leads summary IP-20261130-A1B2C3")]
    Summary(OneArgs),
    /// Count leads by status, priority, source and day, and say what needs looking after
    Stats {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Write leads with all their columns, the oldest first, as CSV or NDJSON
    #[command(
        after_help = "CSV begins with a byte order mark, and a text that a spreadsheet would take for a formula has an \
        apostrophe before it (also +7…). NDJSON has every value as it is. Examples:\n  \
        pillarbox leads export --output leads.csv --delimiter ';' --from 2026-11-01 --to 2026-12-01\n  \
        pillarbox leads export --format ndjson | gzip > leads.ndjson.gz"
    )]
    Export(ExportArgs),
    /// Have failed notifications sent again, once more each
    #[command(
        after_help = "Exit 1 if any of them was not. A message whose fate was unknown may arrive twice, with the \
        same ID.\nExamples:\n  pillarbox leads retry IP-20261130-A1B2C3 --reason telegram_config_fixed\n  \
        pillarbox leads retry --all-failed --reason telegram_config_fixed"
    )]
    Retry(RetryArgs),
    /// Have every lead notified that came while nobody was to be told
    #[command(after_help = "Example: pillarbox leads enqueue-disabled --reason telegram_config_fixed")]
    EnqueueDisabled(EnqueueArgs),
    /// Delete leads and what happened to them, for good
    #[command(
        after_help = "Asks on a terminal, elsewhere it needs --yes. Copies in backups/, exports, and messages in \
        Telegram stay.\nExample: pillarbox leads delete IP-20261130-A1B2C3 --yes"
    )]
    Delete(DeleteArgs),
    /// Check everything that a notification needs, and send one test message to the chat of leads
    #[command(after_help = "Run it as the user that serves: `serve` and /readyz warn until it has passed for the \
        chat.\nExample: sudo -u pillarbox pillarbox leads smoke --config /var/lib/pillarbox/pillarbox.toml")]
    Smoke {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

impl LeadsVerb {
    /// The settings of the command line.
    pub(super) fn set(&self) -> &[String] {
        let overrides = match self {
            Self::List(args) => &args.overrides,
            Self::Show(args) | Self::Summary(args) => &args.overrides,
            Self::Stats { overrides, .. } | Self::Smoke { overrides, .. } => overrides,
            Self::Export(args) => &args.overrides,
            Self::Retry(args) => &args.overrides,
            Self::EnqueueDisabled(args) => &args.overrides,
            Self::Delete(args) => &args.overrides,
        };
        &overrides.set
    }
}

/// Which leads a list or an export is of.
#[derive(Debug, Args)]
pub(in crate::edge::cli) struct Which {
    /// Only leads whose notification stands there
    #[arg(long, value_parser = names(NotificationStatus::ALL.map(NotificationStatus::as_str)))]
    pub(super) status: Option<String>,
    /// Only leads that the people who work on them have there
    #[arg(long, value_parser = names(CrmStatus::ALL))]
    pub(super) crm_status: Option<String>,
    /// Only leads that came then or later: 2026-11-30 (UTC), or with a time as in RFC 3339
    #[arg(long, value_name = "WHEN", value_parser = instant)]
    pub(super) from: Option<UnixMs>,
    /// Only leads that came before
    #[arg(long, value_name = "WHEN", value_parser = instant)]
    pub(super) to: Option<UnixMs>,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    #[command(flatten)]
    pub(super) which: Which,
    /// Only what comes after this lead in the list
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<String>,
    /// How many at most, up to 500
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=500))]
    pub(super) limit: i64,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct OneArgs {
    /// The lead's id, or the id that its form gave it
    pub(super) id: String,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ExportArgs {
    /// What is written
    #[arg(long, value_enum, default_value_t = FileFormat::Csv)]
    pub(super) format: FileFormat,
    /// Write to this file, for its owner only and in one step, instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// What stands between the cells of CSV; a spreadsheet in Russian expects ';'
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = names([",", ";"]))]
    pub(super) delimiter: String,
    #[command(flatten)]
    pub(super) which: Which,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::edge::cli) enum FileFormat {
    /// A table for spreadsheets
    Csv,
    /// One JSON object a line, for programs
    Ndjson,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct RetryArgs {
    /// The leads' ids, or those that their forms gave them
    #[arg(required_unless_present = "all_failed", value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Every lead whose notification has failed by now
    #[arg(long, conflicts_with = "ids")]
    pub(super) all_failed: bool,
    /// Why; it is recorded
    #[arg(long, value_name = "CODE", value_parser = names(RetryReason::ALL.map(RetryReason::as_str)))]
    pub(super) reason: String,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct EnqueueArgs {
    /// Why; it is recorded
    #[arg(long, value_name = "CODE", value_parser = names(RetryReason::ALL.map(RetryReason::as_str)))]
    pub(super) reason: String,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct DeleteArgs {
    /// The leads' ids, or those that their forms gave them
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

fn names<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

//! The verbs of `pillarbox events` as clap reads them, and what they say of themselves.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::edge::cli::args::Printed;
use crate::edge::cli::moment::instant;
use crate::edge::cli::whose::{TextPage, Whose};
use crate::kernel::clock::UnixMs;
use crate::outbox::inspect::EventStatus;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum EventsVerb {
    /// List events: the newest first, or those that wait by when they are due, unless very many do
    #[command(after_help = "Example: pillarbox events list --status failed --type order.paid")]
    List(ListArgs),
    /// Show one event whole, with who has accepted it
    Show {
        /// The event's id
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Have events that were given up, or that wait, handed over now
    #[command(after_help = "Only consumers that have not accepted it get it again. Exit 1 if any was not retried.\n\
        Examples:\n  pillarbox events retry 01970000-…\n  pillarbox events retry --all-failed --type order.paid")]
    Retry(RetryArgs),
    /// Post an event, as POST /v1/events does
    #[command(after_help = "Prints the event's id, alone. The data are kept as they are, byte for byte. Examples:\n  \
        pillarbox events emit order.paid --about order:17 --data '{\"amount\":\"9.90\"}'\n  \
        pillarbox events emit order.paid --about order:17 --data-file order.json --tenant acme")]
    Emit(EmitArgs),
    /// Print what Pillarbox itself publishes: every type with its fields
    #[command(after_help = "--markdown is docs/events.md. Example: pillarbox events catalogue --json")]
    Catalogue {
        /// Print the document
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        #[command(flatten)]
        printed: Printed,
    },
    /// List the types that a tenant has registered
    #[command(
        after_help = "They count while events.strict_types is on: then others are refused where they are posted."
    )]
    Types {
        #[command(flatten)]
        page: TextPage,
        #[command(flatten)]
        whose: Whose,
    },
    /// Register types that a tenant may post while events.strict_types is on
    #[command(after_help = "Example: pillarbox events register order.paid order.refunded --tenant acme")]
    Register(NamesArgs),
    /// Forget registered types; events of theirs stay
    Unregister(NamesArgs),
}

impl EventsVerb {
    /// Whose events it is about; the catalogue is everybody's.
    pub(super) fn whose(&self) -> Option<&Whose> {
        match self {
            Self::List(args) => Some(&args.whose),
            Self::Show { whose, .. } | Self::Types { whose, .. } => Some(whose),
            Self::Retry(args) => Some(&args.whose),
            Self::Emit(args) => Some(&args.whose),
            Self::Register(args) | Self::Unregister(args) => Some(&args.whose),
            Self::Catalogue { .. } => None,
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    /// Only events that stand there
    #[arg(long, value_parser = PossibleValuesParser::new(EventStatus::ALL.map(EventStatus::as_str)))]
    pub(super) status: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) event_type: Option<String>,
    #[command(flatten)]
    pub(super) page: TextPage,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct RetryArgs {
    /// The events' ids
    #[arg(required_unless_present = "all_failed", value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Every event of the tenant that was given up
    #[arg(long, conflicts_with = "ids")]
    pub(super) all_failed: bool,
    /// With --all-failed: only those of this type
    #[arg(long = "type", value_name = "TYPE", requires = "all_failed")]
    pub(super) event_type: Option<String>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct EmitArgs {
    /// The dotted type, such as order.paid
    #[arg(value_name = "TYPE")]
    pub(super) event_type: String,
    /// What it is about: kind and id
    #[arg(long, value_name = "KIND:ID", value_parser = aggregate)]
    pub(super) about: (String, String),
    /// The data: a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", conflicts_with = "data_file")]
    pub(super) data: String,
    /// A file that holds the data; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(super) data_file: Option<PathBuf>,
    /// The version of the data's fields
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) version: i64,
    /// Its id, a UUID: the same event again, under the same id, is stored once
    #[arg(long, value_name = "UUID")]
    pub(super) event_id: Option<String>,
    /// When it happened: a day (UTC), or an instant as in RFC 3339; now, unless it is given
    #[arg(long, value_name = "WHEN", value_parser = instant)]
    pub(super) occurred_at: Option<UnixMs>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct NamesArgs {
    /// Dotted types, such as order.paid
    #[arg(required = true, value_name = "TYPE")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

fn aggregate(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').filter(|(kind, id)| !kind.is_empty() && !id.is_empty());
    let owned = parts.map(|(kind, id)| (kind.to_owned(), id.to_owned()));
    owned.ok_or_else(|| "write what kind of thing it is about and which, such as order:17".to_owned())
}

//! The verbs of `pillarbox updates` as clap reads them, and what they say of themselves.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::chat::inbox::State;
use crate::edge::cli::args::{Overrides, Page, Printed};

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum UpdatesVerb {
    /// List updates, the oldest first; never what people wrote
    #[command(after_help = "Example: pillarbox updates list --state dead")]
    List(ListArgs),
    /// Show one update, with its text if it is asked for and still kept
    #[command(
        after_help = "The text is kept until an update is handled, and of dead ones. It is what a person wrote.\n\
        Example: pillarbox updates show 12 --raw"
    )]
    Show(ShowArgs),
    /// Have dead updates handled again, each at its old place in its chat
    #[command(after_help = "Exit 1 if any of them was not dead. Examples:\n  pillarbox updates replay 12 15\n  \
        pillarbox updates replay --all-dead --yes")]
    Replay(ReplayArgs),
    /// Count what waits and what is dead
    Stats {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

impl UpdatesVerb {
    /// The settings of the command line.
    pub(super) fn set(&self) -> &[String] {
        match self {
            Self::List(args) => &args.overrides.set,
            Self::Show(args) => &args.overrides.set,
            Self::Replay(args) => &args.overrides.set,
            Self::Stats { overrides, .. } => &overrides.set,
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    /// Only updates in this state
    #[arg(long, value_parser = PossibleValuesParser::new(State::ALL.map(State::as_str)))]
    pub(super) state: Option<String>,
    /// Only updates of this chat
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(super) chat: Option<i64>,
    #[command(flatten)]
    pub(super) page: Page,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ShowArgs {
    /// The update's id in the list
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) id: i64,
    /// Print what came, as it came
    #[arg(long)]
    pub(super) raw: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ReplayArgs {
    /// The updates' ids in the list
    #[arg(required_unless_present = "all_dead", conflicts_with = "all_dead", value_name = "ID")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) ids: Vec<i64>,
    /// Every dead one
    #[arg(long, requires = "yes")]
    pub(super) all_dead: bool,
    /// Yes, all of them
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

//! The verbs of `pillarbox webhooks endpoints` as clap reads them, and what they say of themselves.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::edge::cli::moment::length;
use crate::edge::cli::whose::Whose;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum EndpointsVerb {
    /// List a tenant's endpoints, the oldest first; an address without what stands behind its `?`
    List(ListArgs),
    /// Show one endpoint whole
    Show(OneArgs),
    /// Make an endpoint, and print its signing secret, this once
    #[command(after_help = "Examples:\n  \
        pillarbox webhooks endpoints create https://example.org/hooks --event-types lead.received,order.*\n  \
        pillarbox webhooks endpoints create https://example.org/hooks --json | jq -r .secret")]
    Create(CreateArgs),
    /// Change an endpoint's address, description, types or rate
    Update(UpdateArgs),
    /// Let deliveries wait until the endpoint is activated
    Pause(ManyArgs),
    /// Deliver again: what waited goes out, and a disabled endpoint begins anew
    #[command(after_help = "What was skipped while it was disabled comes back with `webhooks replay-skipped`.")]
    Activate(ManyArgs),
    /// Deliver nothing until the endpoint is activated; events are noted as skipped
    Disable(ManyArgs),
    /// Delete endpoints with their deliveries, for good
    #[command(after_help = "Asks on a terminal, elsewhere it needs --yes.")]
    Delete {
        #[command(flatten)]
        many: ManyArgs,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Replace the signing secret and print the new one, this once; the old one signs too for a while
    #[command(after_help = "The receiver takes either during --overlap. Example:\n  \
        pillarbox webhooks endpoints rotate-secret ep_0190… --overlap 3d")]
    RotateSecret(RotateArgs),
}

impl EndpointsVerb {
    pub(super) fn whose(&self) -> &Whose {
        match self {
            Self::List(args) => &args.whose,
            Self::Show(args) => &args.whose,
            Self::Create(args) => &args.whose,
            Self::Update(args) => &args.whose,
            Self::Pause(args) | Self::Activate(args) | Self::Disable(args) => &args.whose,
            Self::Delete { many, .. } => &many.whose,
            Self::RotateSecret(args) => &args.whose,
        }
    }

    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Show(_))
    }
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    #[command(flatten)]
    pub(super) page: RowPage,
    #[command(flatten)]
    pub(super) whose: Whose,
}

/// Which part of a list is printed; its places are numbers.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::edge::cli) struct RowPage {
    /// Only what comes after this place, which the page before names
    #[arg(long, value_name = "PLACE", value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) after: Option<i64>,
    /// How many at most, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub(super) limit: u64,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct OneArgs {
    /// The endpoint's id
    #[arg(value_name = "ENDPOINT")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ManyArgs {
    /// The endpoints' ids
    #[arg(required = true, value_name = "ENDPOINT")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct CreateArgs {
    /// Where deliveries go: an https address
    #[arg(value_name = "URL")]
    pub(super) url: String,
    /// What it is for; up to 500 characters
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Only these types, or all that begin so: order.paid,lead.*
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    pub(super) event_types: Option<Vec<String>>,
    /// How many deliveries a second at most; 1 to 1000
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<i64>,
    #[command(flatten)]
    pub(super) own: OwnSecret,
    #[command(flatten)]
    pub(super) whose: Whose,
}

/// A secret that is brought along. Only from a file: an argument is seen by every user of the machine.
#[derive(Debug, Args)]
pub(in crate::edge::cli) struct OwnSecret {
    /// A file that holds your own secret, whsec_… of 24 to 64 bytes; `-` is stdin. One is made, unless it is given
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct UpdateArgs {
    /// The endpoint's id
    #[arg(value_name = "ENDPOINT")]
    pub(super) id: String,
    /// Where deliveries go
    #[arg(long)]
    pub(super) url: Option<String>,
    /// What it is for; empty removes it
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Only these types, or all that begin so: order.paid,lead.*
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', conflicts_with = "all_types")]
    pub(super) event_types: Option<Vec<String>>,
    /// Every type
    #[arg(long)]
    pub(super) all_types: bool,
    /// How many deliveries a second at most; 1 to 1000
    #[arg(long, value_name = "N", conflicts_with = "no_rate")]
    pub(super) rate: Option<i64>,
    /// As many as there are
    #[arg(long)]
    pub(super) no_rate: bool,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct RotateArgs {
    /// The endpoint's id
    #[arg(value_name = "ENDPOINT")]
    pub(super) id: String,
    /// How long the old one signs too, up to 7d; 0 if it has leaked
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = length)]
    pub(super) overlap: Duration,
    #[command(flatten)]
    pub(super) own: OwnSecret,
    #[command(flatten)]
    pub(super) whose: Whose,
}

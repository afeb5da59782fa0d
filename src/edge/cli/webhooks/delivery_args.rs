//! The verbs of deliveries as clap reads them: `webhooks deliveries`, `attempts`, `resend`, `recover`, `replay-skipped`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::endpoint_args::RowPage;
use crate::edge::cli::moment::{Moment, moment};
use crate::edge::cli::whose::Whose;
use crate::webhooks::delivery::DeliveryStatus;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum DeliveriesVerb {
    /// List deliveries, the newest first
    #[command(after_help = "Example: pillarbox webhooks deliveries list --status failed --since 2h --type order.paid")]
    List(ListArgs),
    /// Show one delivery whole, with its attempts
    Show(IdArgs),
}

impl DeliveriesVerb {
    pub(super) fn whose(&self) -> &Whose {
        match self {
            Self::List(args) => &args.whose,
            Self::Show(args) => &args.whose,
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    /// Only deliveries that stand there
    #[arg(long, value_parser = PossibleValuesParser::new(DeliveryStatus::ALL.map(DeliveryStatus::as_str)))]
    pub(super) status: Option<String>,
    /// Only deliveries to this endpoint
    #[arg(long, value_name = "ENDPOINT")]
    pub(super) endpoint: Option<String>,
    /// Only deliveries of events of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) event_type: Option<String>,
    /// Only deliveries that were made then or later: 2h ago is `2h`, a day, or an instant as in RFC 3339
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(super) since: Option<Moment>,
    /// Only deliveries that were made before
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(super) until: Option<Moment>,
    #[command(flatten)]
    pub(super) page: RowPage,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct IdArgs {
    /// The delivery's id
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct AttemptsArgs {
    /// A delivery's id; or an endpoint's, for the attempts of its test button
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) page: RowPage,
    #[command(flatten)]
    pub(super) whose: Whose,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ResendArgs {
    /// The deliveries' ids
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

/// Which deliveries of an endpoint are queued again.
#[derive(Debug, Args)]
pub(in crate::edge::cli) struct WindowArgs {
    /// The endpoint's id
    #[arg(value_name = "ENDPOINT")]
    pub(super) id: String,
    /// Those that were made then or later: 2h ago is `2h`, a day, or an instant as in RFC 3339
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(super) since: Moment,
    /// Those that were made before; now, unless it is given
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(super) until: Option<Moment>,
    #[command(flatten)]
    pub(super) whose: Whose,
}

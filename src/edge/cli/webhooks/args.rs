//! The verbs of `pillarbox webhooks` as clap reads them, and what they say of themselves.

use clap::Subcommand;

use super::delivery_args::{AttemptsArgs, DeliveriesVerb, ResendArgs, WindowArgs};
use super::endpoint_args::EndpointsVerb;
use super::listen::ListenArgs;
use super::new_key::NewKeyArgs;
use super::probe::TestArgs;
use super::sign::SignArgs;
use super::verify::VerifyArgs;
use crate::edge::cli::whose::Whose;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum WebhooksVerb {
    #[command(flatten)]
    AtDesk(DeskVerb),
    #[command(flatten)]
    ByHand(HandVerb),
    /// Beside a running dev: show deliveries as they arrive, and hand them on to a program that is being written
    #[command(after_help = "It makes an endpoint for itself and deletes it at the end. Examples:\n  \
        pillarbox webhooks listen --forward-to http://localhost:3000/hooks --event-types order.*\n  \
        pillarbox webhooks listen --print-body --data-dir DIR")]
    Listen(ListenArgs),
    /// Make a new webhooks.key after the old one was lost for good, while nobody serves
    #[command(
        after_help = "Every endpoint then needs a new secret (`webhooks endpoints rotate-secret ID`), and its receiver \
        that secret.\nUntil then its deliveries wait. A key that is there is never replaced."
    )]
    NewKey(NewKeyArgs),
}

/// The verbs that read or change the file.
#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum DeskVerb {
    /// Look after endpoints: list, show, create, update, pause, activate, disable, delete, rotate
    #[command(subcommand)]
    Endpoints(EndpointsVerb),
    /// Look at deliveries: list, show
    #[command(subcommand)]
    Deliveries(DeliveriesVerb),
    /// Show the attempts of a delivery: when, how long, and what was answered
    Attempts(AttemptsArgs),
    /// Send one webhook.test to an endpoint now, and show what was said on both sides; exit 1 if it was not taken
    #[command(
        after_help = "As POST /v1/endpoints/{id}/test does, whatever the endpoint's status. `webhooks attempts ENDPOINT` \
        lists them.\nExample: pillarbox webhooks test ep_0190…"
    )]
    Test(TestArgs),
    /// Send deliveries once more, whatever became of them; their schedules stay
    #[command(after_help = "Exit 1 if any of them was not queued. Example: pillarbox webhooks resend dlv_0190…")]
    Resend(ResendArgs),
    /// Have an endpoint's failed and cancelled deliveries tried again, with the whole schedule before them
    #[command(
        after_help = "It may be interrupted and called again. Example: pillarbox webhooks recover ep_0190… --since 2d"
    )]
    Recover(WindowArgs),
    /// Have delivered what was skipped while an endpoint was disabled
    #[command(after_help = "Example: pillarbox webhooks replay-skipped ep_0190… --since 2026-11-30")]
    ReplaySkipped(WindowArgs),
}

impl DeskVerb {
    /// Whose webhooks it is about.
    pub(super) fn whose(&self) -> &Whose {
        match self {
            Self::Endpoints(verb) => verb.whose(),
            Self::Deliveries(verb) => verb.whose(),
            Self::Attempts(args) => &args.whose,
            Self::Test(args) => &args.whose,
            Self::Resend(args) => &args.whose,
            Self::Recover(args) | Self::ReplaySkipped(args) => &args.whose,
        }
    }

    /// Whether it changes nothing.
    pub(super) fn only_looks(&self) -> bool {
        match self {
            Self::Endpoints(verb) => verb.only_looks(),
            Self::Deliveries(_) | Self::Attempts(_) => true,
            Self::Test(_) | Self::Resend(_) | Self::Recover(_) | Self::ReplaySkipped(_) => false,
        }
    }
}

/// The verbs of signatures, which need no installation.
#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum HandVerb {
    /// Print the three headers of a webhook that is sent by hand
    #[command(after_help = "The secret is read from WEBHOOK_SECRET or a file: arguments are seen by every user \
        of the\nmachine, and the shell keeps them. Example:\n  \
        pillarbox webhooks sign --secret-file secret --id msg_1 body.json > headers\n  \
        curl -H @headers -H 'Content-Type: application/json' --data-binary @body.json http://localhost:3000/hook")]
    Sign(SignArgs),
    /// Say whether a kept webhook is signed by a secret, and if not, why; exit 1 then
    #[command(after_help = "The secret is read from WEBHOOK_SECRET or a file: arguments are seen by every user \
        of the\nmachine, and the shell keeps them. Examples:\n  \
        pillarbox webhooks verify --secret-file secret request.txt        # headers and body, as they came\n  \
        pillarbox webhooks verify --id msg_1 --timestamp 1700000000 --signature v1,… body.json --tolerance 30d")]
    Verify(VerifyArgs),
}

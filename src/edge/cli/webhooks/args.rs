//! The verbs of `pillarbox webhooks` as clap reads them, and what they say of themselves.

use clap::Subcommand;

use super::endpoint_args::EndpointsVerb;
use super::sign::SignArgs;
use super::verify::VerifyArgs;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum WebhooksVerb {
    /// Look after endpoints: list, show, create, update, pause, activate, disable, delete, rotate
    #[command(subcommand)]
    Endpoints(EndpointsVerb),
    /// Print the three headers of a webhook that is sent by hand
    #[command(
        after_help = "The secret is read from PILLARBOX_WEBHOOK_SECRET or a file: arguments are seen by every user \
        of the\nmachine, and the shell keeps them. Example:\n  \
        pillarbox webhooks sign --secret-file secret --id msg_1 body.json > headers\n  \
        curl -H @headers -H 'Content-Type: application/json' --data-binary @body.json http://localhost:3000/hook"
    )]
    Sign(SignArgs),
    /// Say whether a kept webhook is signed by a secret, and if not, why; exit 1 then
    #[command(
        after_help = "The secret is read from PILLARBOX_WEBHOOK_SECRET or a file: arguments are seen by every user \
        of the\nmachine, and the shell keeps them. Examples:\n  \
        pillarbox webhooks verify --secret-file secret request.txt        # headers and body, as they came\n  \
        pillarbox webhooks verify --id msg_1 --timestamp 1700000000 --signature v1,… body.json --tolerance 30d"
    )]
    Verify(VerifyArgs),
}

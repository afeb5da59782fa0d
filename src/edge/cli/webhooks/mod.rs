//! `pillarbox webhooks`: endpoints and their deliveries for the one who looks after them, and signatures for whoever writes
//! a receiver.

mod args;
mod message;
mod secret;
mod sign;
mod verify;

pub(super) use args::WebhooksVerb;

use super::Exit;
use super::args::Location;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or the output's.
pub(super) async fn run(_location: &Location, verb: WebhooksVerb) -> anyhow::Result<Exit> {
    match verb {
        WebhooksVerb::Sign(args) => sign::run(args),
        WebhooksVerb::Verify(args) => verify::run(args),
    }
}

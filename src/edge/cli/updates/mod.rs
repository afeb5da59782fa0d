//! `pillarbox updates`: what came from Telegram, for the one who looks after it, beside a running server.

mod args;
mod look;
mod replay;

pub(super) use args::UpdatesVerb;

use super::args::Location;
use super::{Exit, beside};
use crate::config::Config;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: UpdatesVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(verb.set()))?;
    let db = match &verb {
        UpdatesVerb::Replay(_) => beside::open(&config)?,
        _ => beside::open_to_read(&config)?,
    };
    let done = match verb {
        UpdatesVerb::List(args) => look::list(&db, args).await,
        UpdatesVerb::Show(args) => look::show(&db, args).await,
        UpdatesVerb::Replay(args) => replay::replay(&db, args).await,
        UpdatesVerb::Stats { printed, .. } => look::stats(&db, printed).await,
    };
    db.close().await;
    done
}

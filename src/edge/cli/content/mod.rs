//! `pillarbox content`: the bot's texts, beside a running server. A change holds from its commit on; no restart.
//!
//! Verbs that only look open the file to read only.

mod args;
mod change;
mod look;

pub(super) use args::ContentVerb;

use super::args::Location;
use super::{Exit, beside};
use crate::config::Config;
use crate::onboarding::content::{Content, Lang};

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or the output's.
pub(super) async fn run(location: &Location, verb: ContentVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(verb.set()))?;
    let db = match &verb {
        ContentVerb::Set(_) | ContentVerb::Reset(_) => beside::open(&config)?,
        ContentVerb::List(_) | ContentVerb::Show(_) | ContentVerb::Check { .. } => beside::open_to_read(&config)?,
    };
    let content = Content::shipped(Lang::Ru)?;
    let done = match verb {
        ContentVerb::List(args) => look::list(&db, &content, args).await,
        ContentVerb::Show(args) => look::show(&db, &content, args).await,
        ContentVerb::Check { printed, .. } => look::check(&db, printed).await,
        ContentVerb::Set(args) => change::set(&db, args).await,
        ContentVerb::Reset(args) => change::reset(&db, &content, args).await,
    };
    db.close().await;
    done
}

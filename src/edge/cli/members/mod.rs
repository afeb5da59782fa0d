//! `pillarbox members`: bringing members in from a file, and looking at one, beside a running server or without one.

mod args;
mod import;
mod lines;
mod progress;
mod show;

pub(super) use args::MembersVerb;

use super::args::Location;
use super::{Exit, beside};
use crate::config::Config;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, the file's, or the output's.
pub(super) async fn run(location: &Location, verb: MembersVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(verb.set()))?;
    let db = match &verb {
        MembersVerb::Import(_) => beside::open(&config)?,
        MembersVerb::Show(_) => beside::open_to_read(&config)?,
    };
    let done = match verb {
        MembersVerb::Import(args) => import::import(&db, args).await,
        MembersVerb::Show(args) => show::show(&db, args).await,
    };
    db.close().await;
    done
}

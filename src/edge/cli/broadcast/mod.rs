//! `pillarbox broadcast`: one message to many people, for the one who sends it, beside a running server.
//!
//! Every verb changes or reads the file; the server's sweep does the sending. So all of them also work while no server
//! runs, and what they asked for begins when one does.

mod args;
mod change;
mod create;
mod look;
mod report;
mod watch;

pub(super) use args::BroadcastVerb;

use super::args::Location;
use super::{Exit, beside};
use crate::config::{self, Config};
use crate::onboarding::broadcast::Change;
use crate::onboarding::content::Lang;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the broadcast's, the store's, or the output's.
pub(super) async fn run(location: &Location, verb: BroadcastVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(verb.set()))?;
    let db = if verb.only_looks() { beside::open_to_read(&config)? } else { beside::open(&config)? };
    let default_lang = default_lang(&config);
    let done = match verb {
        BroadcastVerb::Create(args) => create::create(&db, &config, *args).await,
        BroadcastVerb::List { page, printed, .. } => look::list(&db, page, printed).await,
        BroadcastVerb::Preview(args) => look::preview(&db, args, default_lang).await,
        BroadcastVerb::Test(args) => change::test(&db, args, default_lang).await,
        BroadcastVerb::Start(args) => change::start(&db, args, default_lang).await,
        BroadcastVerb::Pause(args) => change::change(&db, args, Change::Pause).await,
        BroadcastVerb::Resume(args) => change::change(&db, args, Change::Resume).await,
        BroadcastVerb::Cancel { one, yes } => change::cancel(&db, one, yes).await,
        BroadcastVerb::Status { one, watch: true } => watch::watch(&db, one).await,
        BroadcastVerb::Status { one, watch: false } => look::status(&db, one).await,
        BroadcastVerb::Report { one, out } => report::report(&db, one.id, out.as_deref()).await,
    };
    db.close().await;
    done
}

/// Of people who have not chosen one.
fn default_lang(config: &Config) -> Lang {
    match config.bot.default_lang {
        config::Lang::Ru => Lang::Ru,
        config::Lang::En => Lang::En,
    }
}

//! `pillarbox events`: domain events for the one who looks after them, beside a running server. (`pillarbox outbox` is the
//! bot's.)

mod args;
mod catalogue;
mod emit;
mod look;
mod names;
mod retry;

pub(super) use args::EventsVerb;

use super::args::Location;
use super::{Exit, beside};
use crate::config::Config;
use crate::kernel::store::Db;
use crate::outbox::Error;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or the output's.
pub(super) async fn run(location: &Location, verb: EventsVerb) -> anyhow::Result<Exit> {
    if let EventsVerb::Catalogue { markdown, printed } = verb {
        return catalogue::print(markdown, printed);
    }
    let set = verb.whose().map_or(&[][..], |whose| &whose.overrides.set);
    let config = Config::load(location.sources(set))?;
    let db = match &verb {
        EventsVerb::List(_) | EventsVerb::Show { .. } | EventsVerb::Types { .. } => beside::open_to_read(&config)?,
        _ => beside::open(&config)?,
    };
    let done = on(&db, &config, verb).await;
    db.close().await;
    done
}

async fn on(db: &Db, config: &Config, verb: EventsVerb) -> anyhow::Result<Exit> {
    if let Some(whose) = verb.whose() {
        whose.must_exist(db).await?;
    }
    match verb {
        EventsVerb::List(args) => look::list(db, args).await,
        EventsVerb::Show { id, whose } => look::show(db, id, whose).await,
        EventsVerb::Retry(args) => retry::retry(db, args).await,
        EventsVerb::Emit(args) => emit::emit(db, config.events.strict_types, args).await,
        EventsVerb::Types { page, whose } => names::list(db, page, whose).await,
        EventsVerb::Register(args) => names::register(db, args).await,
        EventsVerb::Unregister(args) => names::unregister(db, args).await,
        EventsVerb::Catalogue { .. } => Ok(Exit::Ok),
    }
}

/// The error, with what to do about it where that is not in it already.
fn advised(error: Error, tenant: &str) -> anyhow::Error {
    match error {
        Error::UnregisteredType { ref event_type, .. } => anyhow::anyhow!(
            "{error}, and events.strict_types is on; `pillarbox events register {event_type} --tenant {tenant}`"
        ),
        Error::Invalid { field: "after", .. } => {
            anyhow::anyhow!("--after is not from this list: take it from the page before, with the same filters")
        }
        other => other.into(),
    }
}

//! `pillarbox leads`: the broker's leads for the one who looks after them, beside a running server.
//!
//! A lead is named by its id or by the id that its form gave it, whichever is at hand. Verbs that only look open the
//! file to read only.

mod args;
mod csv;
mod export;
mod look;
pub(super) mod output;
mod remove;
mod repair;
mod smoke;
mod stats;

pub(super) use args::LeadsVerb;

use super::args::Location;
use super::print::note;
use super::{Exit, beside};
use crate::config::{Config, Delivery};
use crate::kernel::store::{Db, StoreError};
use crate::leads::inspect::{self, Whole};

/// Leads that one transaction changes: others may write in between.
const BATCH: usize = 200;

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or the output's.
pub(super) async fn run(location: &Location, verb: LeadsVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(verb.set()))?;
    let db = match &verb {
        LeadsVerb::Retry(_) | LeadsVerb::EnqueueDisabled(_) | LeadsVerb::Delete(_) => beside::open(&config)?,
        _ => beside::open_to_read(&config)?,
    };
    let delivery = (!beside::is_in_dev_time(&config.store.data_dir)).then_some(config.leads.delivery);
    let done = match verb {
        LeadsVerb::List(args) => look::list(&db, args).await,
        LeadsVerb::Show(args) => look::show(&db, args).await,
        LeadsVerb::Summary(args) => look::summary(&db, args).await,
        LeadsVerb::Stats { printed, .. } => stats::stats(&db, printed).await,
        LeadsVerb::Export(args) => export::export(&db, args).await,
        LeadsVerb::Retry(args) => repair::retry(&db, delivery, args).await,
        LeadsVerb::EnqueueDisabled(args) => repair::enqueue_disabled(&db, delivery, args).await,
        LeadsVerb::Delete(args) => remove::delete(&db, args).await,
        LeadsVerb::Smoke { printed, .. } => smoke::smoke(&db, &config, printed).await,
    };
    db.close().await;
    done
}

/// The lead of that id or request id.
async fn find(db: &Db, id: String) -> Result<Option<Whole>, StoreError> {
    db.read(move |tx| inspect::find(tx, &id)).await
}

/// The text of a column, if it has one.
fn text_of(lead: &Whole, column: &str) -> Option<String> {
    lead.lead.value(column)?.as_str().map(str::to_owned)
}

fn note_missing(id: &str) {
    note(&format!("there is no lead {id}; `pillarbox leads list` shows which there are"));
}

/// Says what becomes of leads that wait now, if that is not that they are sent.
/// `None` beside `dev`, whose settings are its own.
fn note_delivery(delivery: Option<Delivery>) {
    match delivery {
        Some(Delivery::Worker) | None => {}
        Some(Delivery::Rpc) => note("leads.delivery is `rpc`: they wait until somebody claims them over /rest/v1/rpc"),
        Some(Delivery::Off) => note("leads.delivery is `off`: they wait until it is `worker` or `rpc`"),
    }
}

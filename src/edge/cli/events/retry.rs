//! `events retry`: what was given up, or waits for its next attempt, is handed over now.

use std::collections::BTreeSet;

use serde::Serialize;

use super::advised;
use super::args::RetryArgs;
use crate::edge::cli::Exit;
use crate::edge::cli::print::Printer;
use crate::kernel::store::Db;
use crate::outbox::{self, Error, FailedOnes, Retried};

/// Events that one transaction opens again: others may write in between.
const BATCH: i64 = 200;

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    event_id: String,
    retried: bool,
    what: &'static str,
}

pub(super) async fn retry(db: &Db, args: RetryArgs) -> anyhow::Result<Exit> {
    if args.all_failed {
        return retry_all(db, args).await;
    }
    let mut printer = Printer::stdout(args.whose.printed);
    let (mut seen, mut is_refused) = (BTreeSet::new(), false);
    for id in args.ids.into_iter().filter(|id| seen.insert(id.clone())) {
        let (tenant, event) = (args.whose.tenant.clone(), id.clone());
        let (retried, what) = match db.write(move |tx| outbox::retry(tx, &tenant, &event)).await {
            Ok(Retried::Reopened) => (true, "is handed over again"),
            Ok(Retried::Hastened) => (true, "waited, and is handed over now"),
            Err(Error::NotFound) => (false, "no such event"),
            Err(Error::AlreadyPublished) => (false, "is published: every consumer has accepted it, nothing changed"),
            Err(error) => return Err(error.into()),
        };
        is_refused |= !retried;
        let text = format!("{id} {what}");
        printer.one(&Answer { event_id: id, retried, what }, &text)?;
    }
    Ok(if is_refused { Exit::Failure } else { Exit::Ok })
}

/// How many are handed over again.
#[derive(Serialize)]
struct All {
    retried: usize,
}

async fn retry_all(db: &Db, args: RetryArgs) -> anyhow::Result<Exit> {
    let (mut retried, mut after) = (0, None);
    loop {
        let tenant = args.whose.tenant.clone();
        let which = FailedOnes { event_type: args.event_type.clone(), after, limit: BATCH };
        let batch = db.write(move |tx| outbox::retry_failed(tx, &tenant, &which)).await;
        let batch = batch.map_err(|error| advised(error, args.whose.tenant.as_str()))?;
        retried += batch.retried;
        after = batch.next;
        if after.is_none() {
            break;
        }
    }
    let text = match retried {
        0 => "there are no failed events".to_owned(),
        1 => "1 event is handed over again".to_owned(),
        many => format!("{many} events are handed over again"),
    };
    Printer::stdout(args.whose.printed).one(&All { retried }, &text)?;
    Ok(Exit::Ok)
}

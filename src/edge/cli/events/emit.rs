//! `events emit`: an event by hand, through the same door as those that come over HTTP.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::advised;
use super::args::EmitArgs;
use crate::edge::cli::print::Printer;
use crate::edge::cli::{Exit, input};
use crate::kernel::store::Db;
use crate::outbox::{self, NewEvent, Posted};

/// The event for programs.
#[derive(Serialize)]
struct Emitted<'a> {
    event_id: &'a str,
}

pub(super) async fn emit(db: &Db, strict: bool, args: EmitArgs) -> anyhow::Result<Exit> {
    let payload = match &args.data_file {
        Some(path) => text(path)?,
        None => args.data,
    };
    let (aggregate_type, aggregate_id) = args.about;
    let event = NewEvent {
        event_id: args.event_id,
        event_type: args.event_type,
        version: args.version,
        aggregate_type,
        aggregate_id,
        occurred_at: args.occurred_at,
        payload,
    };
    let posted = Posted { tenant: args.whose.tenant.clone(), key: None, events: vec![event], strict };
    let ids = db.write(move |tx| outbox::post(tx, &posted)).await;
    let ids = ids.map_err(|error| advised(error, args.whose.tenant.as_str()))?;
    let mut printer = Printer::stdout(args.whose.printed);
    for event_id in &ids {
        if args.whose.printed.json {
            printer.one(&Emitted { event_id }, "")?;
        } else {
            // The id itself, also into a pipe or a variable.
            printer.lines(event_id)?;
        }
    }
    Ok(Exit::Ok)
}

/// A file's text, without the line break that editors put at its end: the data are what is between the brackets.
fn text(path: &Path) -> anyhow::Result<String> {
    let text = String::from_utf8(input::read(path)?).context("the data are not UTF-8")?;
    Ok(text.trim().to_owned())
}

//! The verbs that only look: a list, and one event whole.

use anyhow::Context;

use super::advised;
use super::args::ListArgs;
use crate::edge::cli::print::{Printer, Row, note, or_dash};
use crate::edge::cli::whose::{Whose, note_more};
use crate::edge::cli::{Exit, Form};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::outbox::inspect::{self, Cursor, EventFilter, EventRow, EventStatus};

pub(super) async fn list(db: &Db, args: ListArgs) -> anyhow::Result<Exit> {
    let status = args.status.as_deref().and_then(EventStatus::parse);
    let filter = EventFilter { status, event_type: args.event_type };
    let parse = |text: &str| Cursor::parse(text).context("--after is no place in a list; take it from the page before");
    let mut after = args.page.after.as_deref().map(parse).transpose()?;
    let wanted = usize::try_from(args.page.limit).unwrap_or(1);
    let mut events: Vec<EventRow> = Vec::new();
    // A page that looked at much and found little goes on behind it.
    loop {
        let left = i64::try_from(wanted - events.len()).unwrap_or(1);
        let (tenant, filter, place) = (args.whose.tenant.clone(), filter.clone(), after.clone());
        let page = db.read(move |tx| inspect::events(tx, &tenant, &filter, place.as_ref(), left)).await;
        let page = page.map_err(|error| advised(error, args.whose.tenant.as_str()))?;
        events.extend(page.items);
        after = page.next;
        if after.is_none() || events.len() >= wanted {
            break;
        }
    }
    Printer::stdout(args.whose.printed).list(&events, "no such events")?;
    note_more(after.map(|next| next.to_string()).as_deref());
    Ok(Exit::Ok)
}

impl Row for EventRow {
    const HEADER: &'static [&'static str] =
        &["ID", "TYPE", "STATUS", "ABOUT", "OCCURRED", "REFUSALS", "NEXT ATTEMPT", "LAST ERROR"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.event_id.clone(),
            self.event_type.clone(),
            self.status.as_str().to_owned(),
            format!("{}:{}", self.aggregate.aggregate_type, self.aggregate.id),
            rfc3339(self.occurred_at),
            self.attempts.to_string(),
            or_dash(self.next_attempt_at.map(rfc3339).as_deref()),
            or_dash(self.last_error.as_deref()),
        ]
    }
}

pub(super) async fn show(db: &Db, id: String, whose: Whose) -> anyhow::Result<Exit> {
    let (tenant, wanted) = (whose.tenant.clone(), id.clone());
    let Some(whole) = db.read(move |tx| inspect::find(tx, &tenant, &wanted)).await? else {
        note(&format!("tenant {} has no event {id}; see `pillarbox events list`", whose.tenant));
        return Ok(Exit::Failure);
    };
    let event = &whole.event;
    let time = |at: Option<i64>| at.map(rfc3339);
    let fields = [
        ("id", Some(event.event_id.clone())),
        ("type", Some(event.event_type.clone())),
        ("version", Some(event.version.to_string())),
        ("about", Some(format!("{}:{}", event.aggregate.aggregate_type, event.aggregate.id))),
        ("occurred", time(Some(event.occurred_at))),
        ("stored", time(Some(event.created_at))),
        ("status", Some(event.status.as_str().to_owned())),
        ("refusals", Some(event.attempts.to_string())),
        ("next attempt", time(event.next_attempt_at)),
        ("last error", event.last_error.clone()),
        ("published", time(event.published_at)),
        ("given up", time(event.failed_at)),
        ("data", Some(whole.data.get().to_owned())),
    ];
    let mut printer = Printer::stdout(whose.printed);
    printer.fields(&whole, &fields)?;
    if printer.form() == Form::Table && !event.acceptances.is_empty() {
        let accepted = event.acceptances.iter().map(|(name, at)| vec![name.clone(), rfc3339(*at)]);
        printer.table(&["ACCEPTED BY", "AT"], accepted)?;
        printer.flush()?;
    }
    Ok(Exit::Ok)
}

//! The types that a tenant has registered, for `events.strict_types`.

use serde::Serialize;

use super::advised;
use super::args::NamesArgs;
use crate::edge::cli::Exit;
use crate::edge::cli::print::{Printer, Row};
use crate::edge::cli::whose::{TextPage, Whose, note_more};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::outbox::{self, Error, RegisteredType};

impl Row for RegisteredType {
    const HEADER: &'static [&'static str] = &["TYPE", "REGISTERED"];

    fn cells(&self) -> Vec<String> {
        vec![self.event_type.clone(), rfc3339(self.registered_at)]
    }
}

pub(super) async fn list(db: &Db, page: TextPage, whose: Whose) -> anyhow::Result<Exit> {
    let (tenant, limit) = (whose.tenant.clone(), page.limit);
    let types = db.read(move |tx| outbox::types(tx, &tenant, page.after.as_deref(), limit)).await?;
    Printer::stdout(whose.printed).list(&types, "no registered types; `pillarbox events register TYPE` adds one")?;
    let is_full = i64::try_from(types.len()).is_ok_and(|rows| rows >= limit);
    note_more(types.last().filter(|_| is_full).map(|last| last.event_type.as_str()));
    Ok(Exit::Ok)
}

/// What became of one type.
#[derive(Serialize)]
struct Answer {
    #[serde(rename = "type")]
    event_type: String,
    changed: bool,
    what: &'static str,
}

/// Types are few, and each is a transaction of its own: one that is refused takes none of the others back.
pub(super) async fn register(db: &Db, args: NamesArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.whose.printed);
    for event_type in args.names {
        let (tenant, name) = (args.whose.tenant.clone(), event_type.clone());
        let is_new = db.write(move |tx| outbox::register_type(tx, &tenant, &name)).await;
        let changed = is_new.map_err(|error| advised(error, args.whose.tenant.as_str()))?;
        let what = if changed { "registered" } else { "was registered already" };
        let text = format!("{event_type} {what}");
        printer.one(&Answer { event_type, changed, what }, &text)?;
    }
    Ok(Exit::Ok)
}

pub(super) async fn unregister(db: &Db, args: NamesArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.whose.printed);
    let mut is_missing = false;
    for event_type in args.names {
        let (tenant, name) = (args.whose.tenant.clone(), event_type.clone());
        let (changed, what) = match db.write(move |tx| outbox::unregister_type(tx, &tenant, &name)).await {
            Ok(()) => (true, "is forgotten"),
            Err(Error::NotFound) => (false, "is not registered"),
            Err(error) => return Err(error.into()),
        };
        is_missing |= !changed;
        let text = format!("{event_type} {what}");
        printer.one(&Answer { event_type, changed, what }, &text)?;
    }
    Ok(if is_missing { Exit::Failure } else { Exit::Ok })
}

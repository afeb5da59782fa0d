//! The verbs that only look: a list, one lead whole, the text of its notification.

use serde::Serialize;
use serde_json::Value;

use super::args::{ListArgs, OneArgs, Which};
use super::{find, note_missing, text_of};
use crate::edge::cli::print::{Printer, Row, note, or_dash};
use crate::edge::cli::{Exit, Form};
use crate::kernel::store::{Db, Tx};
use crate::leads::inspect::{self, EventRow, Filter, Listed, Whole};
use crate::leads::{self, CrmStatus, NotificationStatus, SummaryError};

impl Which {
    /// The filter of these arguments, from the beginning.
    pub(super) fn filter(&self, limit: i64) -> Result<Filter, leads::Error> {
        Ok(Filter {
            notification: self.status.as_deref().map(NotificationStatus::parse).transpose()?,
            status: self.crm_status.as_deref().map(CrmStatus::parse).transpose()?,
            from: self.from,
            to: self.to,
            after: None,
            limit,
        })
    }
}

pub(super) async fn list(db: &Db, args: ListArgs) -> anyhow::Result<Exit> {
    let mut filter = args.which.filter(args.limit)?;
    if let Some(id) = args.after {
        let Some(last) = find(db, id.clone()).await? else {
            note_missing(&id);
            return Ok(Exit::Failure);
        };
        filter.after = Some(last.lead.position);
    }
    let listed = db.read(move |tx| inspect::list(tx, &filter)).await?;
    Printer::stdout(args.printed).list(&listed, "no such leads")?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|rows| rows >= args.limit);
    if let Some(last) = listed.last().filter(|_| is_full) {
        note(&format!("cut at {}; go on with --after {}", args.limit, last.id));
    }
    Ok(Exit::Ok)
}

impl Row for Listed {
    const HEADER: &'static [&'static str] =
        &["ID", "REQUEST", "CAME", "NOTIFICATION", "ATTEMPTS", "ERROR", "CRM", "NAME", "CITY", "PRIORITY"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            or_dash(self.request_id.as_deref()),
            self.created_at.clone(),
            self.notification_status.clone(),
            self.notification_attempt_count.to_string(),
            or_dash(self.notification_last_error.as_deref()),
            self.status.clone(),
            or_dash(self.client_name.as_deref()),
            or_dash(self.city.as_deref()),
            or_dash(self.technical_priority.as_deref()),
        ]
    }
}

pub(super) async fn show(db: &Db, args: OneArgs) -> anyhow::Result<Exit> {
    let Some(whole) = find(db, args.id.clone()).await? else {
        note_missing(&args.id);
        return Ok(Exit::Failure);
    };
    let mut printer = Printer::stdout(args.printed);
    match printer.form() {
        Form::Json => printer.one(&whole, "")?,
        Form::Table => {
            let fields: Vec<(&str, Option<String>)> =
                inspect::COLUMNS.iter().zip(&whole.lead.values).map(|(name, value)| (*name, shown(value))).collect();
            printer.fields(&whole, &fields)?;
            printer.table(&["HAPPENED", "WHAT", "WITH"], whole.events.iter().map(event_cells))?;
            printer.flush()?;
        }
    }
    Ok(Exit::Ok)
}

/// A value for a reader; what says nothing is left out.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Object(map) if map.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        other => Some(other.to_string()),
    }
}

fn event_cells(event: &EventRow) -> Vec<String> {
    vec![event.created_at.clone(), event.event_type.clone(), shown(&event.payload).unwrap_or_else(|| "-".to_owned())]
}

/// The text of a notification as it is printed for programs.
#[derive(Serialize)]
struct SummaryBody {
    id: String,
    request_id: Option<String>,
    summary: String,
}

pub(super) async fn summary(db: &Db, args: OneArgs) -> anyhow::Result<Exit> {
    let asked = args.id.clone();
    let read = move |tx: &Tx<'_>| -> Result<Option<(Whole, String)>, SummaryError> {
        let Some(whole) = inspect::find(tx, &asked)? else { return Ok(None) };
        let text = leads::summary(tx, &whole.lead.position.id)?;
        Ok(Some((whole, text)))
    };
    let (whole, text) = match db.read(read).await {
        Ok(Some(found)) => found,
        Ok(None) | Err(SummaryError::NotFound) => {
            note_missing(&args.id);
            return Ok(Exit::Failure);
        }
        Err(SummaryError::Store(error)) => return Err(error.into()),
        Err(error) => return Err(error.into()),
    };
    if args.printed.json {
        let (id, request_id) = (whole.lead.position.id.clone(), text_of(&whole, "request_id"));
        Printer::stdout(args.printed).one(&SummaryBody { id, request_id, summary: text }, "")?;
    } else {
        // The text itself, line by line, also into a pipe: it holds no control character.
        Printer::stdout(args.printed).lines(&text)?;
    }
    Ok(Exit::Ok)
}

//! `leads delete`: what a person left is removed because they ask for it, or because nobody needs it any more.
//!
//! It is final, so it is said before what will go, and done only after a typed word or with `--yes`.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::args::DeleteArgs;
use super::{find, note_missing, text_of};
use crate::edge::cli::print::{Printer, note};
use crate::edge::cli::{Exit, confirm};
use crate::kernel::store::{Db, StoreError, Tx};
use crate::leads::inspect::Whole;
use crate::leads::keep::{self, Deleted};

/// What has to be typed.
const WORD: &str = "delete";

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: String,
    deleted: bool,
    what: String,
}

pub(super) async fn delete(db: &Db, args: DeleteArgs) -> anyhow::Result<Exit> {
    let (mut found, mut is_missing, mut seen) = (Vec::new(), false, BTreeSet::new());
    for id in args.ids {
        match find(db, id.clone()).await? {
            // The same lead may be named by both its ids.
            Some(lead) if seen.insert(lead.lead.position.id.clone()) => found.push((id, lead)),
            Some(_) => {}
            None => {
                note_missing(&id);
                is_missing = true;
            }
        }
    }
    if found.is_empty() {
        return Ok(Exit::Failure);
    }
    if !args.yes && !is_confirmed(&found)? {
        note("nothing was deleted");
        return Ok(confirm::refused());
    }
    let mut printer = Printer::stdout(args.printed);
    let mut is_refused = is_missing;
    for (id, lead) in found {
        let lead_id = lead.lead.position.id.clone();
        let deleted = db.write::<_, StoreError>(move |tx: &Tx<'_>| keep::delete(tx, &lead_id)).await?;
        let answer = answer(id, &lead, &deleted);
        is_refused |= !answer.deleted;
        printer.one(&answer, &format!("{} {}", answer.id, answer.what))?;
    }
    Ok(if is_refused { Exit::Failure } else { Exit::Ok })
}

fn answer(id: String, lead: &Whole, deleted: &Deleted) -> Answer {
    let (deleted, what) = match deleted {
        Deleted::Gone(status) => {
            let (status, events) = (status.as_str(), events_of(lead));
            (true, format!("deleted with {events}; its notification was {status}"))
        }
        Deleted::Sending => (false, "is being sent right now: nothing changed; try again in 15 minutes".to_owned()),
        Deleted::Missing => (false, "was deleted by somebody else meanwhile".to_owned()),
    };
    Answer { id, deleted, what }
}

/// Says what would go, and asks.
fn is_confirmed(found: &[(String, Whole)]) -> io::Result<bool> {
    for (_, lead) in found {
        note(&described(lead));
    }
    confirm::is_meant(WORD, &format!("{WORD} {}", counted(found.len(), "lead")))
}

fn described(lead: &Whole) -> String {
    let text = |column| text_of(lead, column).unwrap_or_else(|| "-".to_owned());
    format!(
        "lead {} ({}), {}, came {}, notification {}, CRM {}, {}",
        lead.lead.position.id,
        text("request_id"),
        text("client_name"),
        text("created_at"),
        text("notification_status"),
        text("status"),
        events_of(lead),
    )
}

fn events_of(lead: &Whole) -> String {
    counted(lead.events.len(), "event")
}

fn counted(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

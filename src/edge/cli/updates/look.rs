//! Looking at updates: a page, one of them, counts.

use serde::Serialize;

use super::args::{ListArgs, ShowArgs};
use crate::chat::inbox::{self, Filter, Listed, State};
use crate::edge::cli::Exit;
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::{Printer, Row, note, note_next, or_dash};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;

/// Lists a page.
///
/// # Errors
/// The store's, or stdout's.
pub(super) async fn list(db: &Db, args: ListArgs) -> anyhow::Result<Exit> {
    let filter = Filter {
        state: args.state.as_deref().and_then(State::find),
        chat_id: args.chat,
        after: args.page.after,
        limit: args.page.limit,
    };
    let updates = db.read(move |tx| inbox::list(tx, &filter)).await?;
    let bodies: Vec<UpdateBody> = updates.into_iter().map(UpdateBody::from).collect();
    Printer::stdout(args.printed).list(&bodies, "no such updates")?;
    note_next(bodies.len(), args.page.limit, bodies.last().map(|body| body.id));
    Ok(Exit::Ok)
}

/// Shows one.
///
/// # Errors
/// The store's, or stdout's.
pub(super) async fn show(db: &Db, args: ShowArgs) -> anyhow::Result<Exit> {
    let id = args.id;
    let Some((listed, raw)) = db.read(move |tx| inbox::find(tx, id)).await? else {
        note(&format!("there is no update {id}; `pillarbox updates list` shows which there are"));
        return Ok(Exit::Failure);
    };
    let mut printer = Printer::stdout(args.printed);
    if !args.raw {
        printer.list(&[UpdateBody::from(listed)], "")?;
        return Ok(Exit::Ok);
    }
    let Some(raw) = raw else {
        note("what it said is not kept: it was handled");
        return Ok(Exit::Failure);
    };
    printer.one(&RawBody { id, raw: &raw }, &raw)?;
    Ok(Exit::Ok)
}

/// Counts.
///
/// # Errors
/// The store's, or stdout's.
pub(super) async fn stats(db: &Db, printed: Printed) -> anyhow::Result<Exit> {
    let stats = db.read(inbox::stats).await?;
    let body = StatsBody {
        pending: stats.pending,
        waiting_chats: stats.waiting_chats,
        dead: stats.dead,
        oldest_age_ms: stats.oldest_age_ms,
    };
    let age = stats.oldest_age_ms.map_or("-".to_owned(), |age| format!("{} s", age / 1000));
    let told = format!(
        "pending        {}\nwaiting chats  {}\ndead           {}\noldest waits   {age}",
        body.pending, body.waiting_chats, body.dead
    );
    Printer::stdout(printed).one(&body, &told)?;
    Ok(Exit::Ok)
}

/// Counts as they are printed; each stops at 10000.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatsBody {
    pending: i64,
    waiting_chats: i64,
    dead: i64,
    oldest_age_ms: Option<i64>,
}

/// What came.
#[derive(Serialize)]
struct RawBody<'a> {
    id: i64,
    raw: &'a str,
}

/// An update as it is printed; never its text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateBody {
    id: i64,
    update_id: i64,
    /// A string, as Telegram's ids are in the contract's JSON.
    chat_id: String,
    kind: String,
    state: String,
    attempts: i64,
    failures: i64,
    replays: i64,
    due_at: String,
    error_code: Option<String>,
    received_at: String,
    finished_at: Option<String>,
}

impl From<Listed> for UpdateBody {
    fn from(update: Listed) -> Self {
        Self {
            id: update.id,
            update_id: update.update_id,
            chat_id: update.chat_id.to_string(),
            kind: update.kind,
            state: update.state,
            attempts: update.attempts,
            failures: update.failures,
            replays: update.replays,
            due_at: rfc3339(update.due_at),
            error_code: update.error_code,
            received_at: rfc3339(update.received_at),
            finished_at: update.finished_at.map(rfc3339),
        }
    }
}

impl Row for UpdateBody {
    const HEADER: &'static [&'static str] =
        &["ID", "UPDATE", "CHAT", "KIND", "STATE", "ATTEMPTS", "DUE", "ERROR", "RECEIVED"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.update_id.to_string(),
            self.chat_id.clone(),
            self.kind.clone(),
            self.state.clone(),
            self.attempts.to_string(),
            self.due_at.clone(),
            or_dash(self.error_code.as_deref()),
            self.received_at.clone(),
        ]
    }
}

//! `pillarbox messages`: the Telegram send queue for the one who looks after it.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::Exit;
use super::args::{Location, MessagesVerb, Overrides, Page, Printed};
use super::beside;
use super::print::{Printer, Row, note_next, or_dash};
use crate::chat::{self, Filter, Kind, Listed, Status};
use crate::config::Config;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only messages in this status
    #[arg(long, value_parser = names(Status::ALL.map(Status::as_str)))]
    status: Option<String>,
    /// Only messages to this chat
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    chat: Option<i64>,
    /// Only messages of this kind
    #[arg(long, value_parser = names(Kind::ALL.map(Kind::as_str)))]
    kind: Option<String>,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    printed: Printed,
    #[command(flatten)]
    overrides: Overrides,
}

fn names<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: MessagesVerb) -> anyhow::Result<Exit> {
    let set = match &verb {
        MessagesVerb::List(args) => &args.overrides.set,
        MessagesVerb::Retry { overrides, .. } => &overrides.set,
    };
    let config = Config::load(location.sources(set))?;
    let db = match &verb {
        MessagesVerb::List(_) => beside::open_to_read(&config)?,
        MessagesVerb::Retry { .. } => beside::open(&config)?,
    };
    let done = match verb {
        MessagesVerb::List(args) => list(&db, args).await,
        MessagesVerb::Retry { ids, printed, .. } => retry(&db, ids, printed).await,
    };
    db.close().await;
    done
}

async fn list(db: &Db, args: ListArgs) -> anyhow::Result<Exit> {
    let filter = Filter {
        status: args.status.as_deref().map(Status::parse).transpose()?,
        chat_id: args.chat,
        kind: args.kind.as_deref().map(Kind::parse).transpose()?,
        after: args.page.after,
        limit: args.page.limit,
    };
    let messages = db.read(move |tx| chat::list(tx, &filter)).await?;
    let bodies: Vec<MessageBody> = messages.into_iter().map(MessageBody::from).collect();
    Printer::stdout(args.printed).list(&bodies, "no such messages")?;
    note_next(bodies.len(), args.page.limit, bodies.last().map(|body| body.id));
    Ok(Exit::Ok)
}

/// A message as it is printed; never its text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageBody {
    id: i64,
    /// A string, as Telegram's ids are in the contract's JSON.
    chat_id: String,
    kind: String,
    status: String,
    attempts: i64,
    unknown_count: i64,
    retried_by_hand: i64,
    due_at: String,
    error_code: Option<String>,
    dedup_key: String,
    created_at: String,
    finished_at: Option<String>,
}

impl From<Listed> for MessageBody {
    fn from(message: Listed) -> Self {
        Self {
            id: message.id,
            chat_id: message.chat_id.to_string(),
            kind: message.kind,
            status: message.status,
            attempts: message.attempts,
            unknown_count: message.unknown_count,
            retried_by_hand: message.retried_by_hand,
            due_at: rfc3339(message.due_at),
            error_code: message.error_code,
            dedup_key: message.dedup_key,
            created_at: rfc3339(message.created_at),
            finished_at: message.finished_at.map(rfc3339),
        }
    }
}

impl Row for MessageBody {
    const HEADER: &'static [&'static str] =
        &["ID", "CHAT", "KIND", "STATUS", "ATTEMPTS", "DOUBTFUL", "DUE", "ERROR", "KEY"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.chat_id.clone(),
            self.kind.clone(),
            self.status.clone(),
            self.attempts.to_string(),
            self.unknown_count.to_string(),
            self.due_at.clone(),
            or_dash(self.error_code.as_deref()),
            self.dedup_key.clone(),
        ]
    }
}

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: i64,
    reopened: bool,
    what: &'static str,
}

async fn retry(db: &Db, mut ids: Vec<i64>, printed: Printed) -> anyhow::Result<Exit> {
    ids.sort_unstable();
    ids.dedup();
    let asked = ids.clone();
    let retried = db.write(move |tx| chat::retry(tx, &ids)).await?;
    let mut printer = Printer::stdout(printed);
    for id in asked {
        let reopened = retried.reopened.contains(&id);
        let what = match (reopened, retried.missing.contains(&id)) {
            (true, _) => "queued again",
            (false, true) => "no such message",
            (false, false) => "waiting, being sent, or sent already: nothing changed",
        };
        printer.one(&Answer { id, reopened, what }, &format!("{id} {what}"))?;
    }
    let all = retried.unchanged.is_empty() && retried.missing.is_empty();
    Ok(if all { Exit::Ok } else { Exit::Failure })
}

//! `pillarbox outbox`: the bot's events for the one who looks after them.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::args::{Location, OutboxVerb, Overrides, Page, Printed};
use super::print::{Printer, Row, note, note_next, or_dash};
use super::{Exit, Form, beside};
use crate::backend::inspect::{self, COUNT_CAP, EventRow, Filter, Shown, Stats, Waiting};
use crate::backend::requeue::{Reopened, reopen};
use crate::config::Config;
use crate::kernel::store::{Db, StoreError};

/// Events that one transaction opens again.
const BATCH: usize = 500;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only events in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events of this subject, such as uid:7 or tg:123456
    #[arg(long)]
    subject: Option<String>,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    printed: Printed,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Open,
    Processed,
    Abandoned,
    Dead,
}

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// The events' ids
    #[arg(required_unless_present = "all_dead", value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    ids: Vec<i64>,
    /// Open every dead event again; needs --yes
    #[arg(long, conflicts_with = "ids", requires = "yes")]
    all_dead: bool,
    /// Confirm --all-dead
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    printed: Printed,
    #[command(flatten)]
    overrides: Overrides,
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: OutboxVerb) -> anyhow::Result<Exit> {
    let set = match &verb {
        OutboxVerb::List(args) => &args.overrides.set,
        OutboxVerb::Retry(args) => &args.overrides.set,
        OutboxVerb::Show { overrides, .. } | OutboxVerb::Stats { overrides, .. } => &overrides.set,
    };
    let config = Config::load(location.sources(set))?;
    let db = match &verb {
        OutboxVerb::Retry(_) => beside::open(&config)?,
        OutboxVerb::List(_) | OutboxVerb::Show { .. } | OutboxVerb::Stats { .. } => beside::open_to_read(&config)?,
    };
    let done = match verb {
        OutboxVerb::List(args) => list(&db, args).await,
        OutboxVerb::Show { id, printed, .. } => show(&db, id, printed).await,
        OutboxVerb::Retry(args) => retry(&db, args).await,
        OutboxVerb::Stats { printed, .. } => stats(&db, printed).await,
    };
    db.close().await;
    done
}

async fn list(db: &Db, args: ListArgs) -> anyhow::Result<Exit> {
    let shown = match args.state {
        None => Shown::All,
        Some(State::Open) => Shown::Open,
        Some(State::Processed) => Shown::Processed,
        Some(State::Abandoned) => Shown::Abandoned,
        Some(State::Dead) => Shown::Dead,
    };
    let Page { after, limit } = args.page;
    let filter = Filter { shown, event_type: args.event_type, subject: args.subject, after, limit };
    let events = db.read(move |tx| inspect::list(tx, &filter)).await?;
    Printer::stdout(args.printed).list(&events, "no such events")?;
    note_next(events.len(), limit, events.last().map(|event| event.id));
    Ok(Exit::Ok)
}

impl Row for EventRow {
    const HEADER: &'static [&'static str] =
        &["ID", "TYPE", "STATE", "SUBJECT", "ATTEMPTS", "CREATED", "NEXT RETRY", "LAST ERROR"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.event_type.clone(),
            self.state.clone(),
            or_dash(self.subject.as_deref()),
            self.attempts.to_string(),
            self.created_at.clone(),
            or_dash(self.next_retry_at.as_deref()),
            or_dash(self.last_error.as_deref()),
        ]
    }
}

async fn show(db: &Db, id: i64, printed: Printed) -> anyhow::Result<Exit> {
    let Some(event) = db.read(move |tx| inspect::find(tx, id)).await? else {
        note(&format!("there is no event {id}; `pillarbox outbox list` shows which there are"));
        return Ok(Exit::Failure);
    };
    let fields = [
        ("id", Some(event.id.to_string())),
        ("type", Some(event.event_type.clone())),
        ("state", Some(event.state.clone())),
        ("subject", event.subject.clone()),
        ("telegram id", event.telegram_id.clone()),
        ("member", event.magnet_uid.map(|uid| uid.to_string())),
        ("payload", event.payload.as_ref().map(ToString::to_string)),
        ("dedup key", event.dedup_key.clone()),
        ("created", Some(event.created_at.clone())),
        ("attempts", Some(event.attempts.to_string())),
        ("last attempt", event.last_attempt_at.clone()),
        ("last error", event.last_error.clone()),
        ("next retry", event.next_retry_at.clone()),
        ("leased until", event.locked_until.clone()),
        ("processed", event.processed_at.clone()),
        ("dead since", event.dead_lettered_at.clone()),
    ];
    Printer::stdout(printed).fields(&event, &fields)?;
    Ok(Exit::Ok)
}

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: i64,
    reopened: bool,
    what: &'static str,
}

async fn retry(db: &Db, args: RetryArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.printed);
    let mut refused = 0_usize;
    let mut show = |answers: Vec<(i64, Reopened)>| {
        answers.into_iter().try_for_each(|(id, reopened)| {
            let is_open = reopened == Reopened::Opened;
            refused += usize::from(!is_open);
            let answer = Answer { id, reopened: is_open, what: reopened.as_str() };
            printer.one(&answer, &format!("{id} {}", answer.what))
        })
    };
    if args.all_dead {
        let mut after = 0;
        loop {
            let dead = dead_after(db, after).await?;
            let Some(last) = dead.last() else { break };
            after = *last;
            show(open_again(db, dead).await?)?;
        }
        if after == 0 {
            note("there are no dead events");
        }
    } else {
        let mut seen = BTreeSet::new();
        let ids: Vec<i64> = args.ids.into_iter().filter(|id| seen.insert(*id)).collect();
        for part in ids.chunks(BATCH) {
            show(open_again(db, part.to_vec()).await?)?;
        }
    }
    Ok(if refused == 0 { Exit::Ok } else { Exit::Failure })
}

async fn dead_after(db: &Db, after: i64) -> Result<Vec<i64>, StoreError> {
    let limit = i64::try_from(BATCH).unwrap_or(1);
    let filter = Filter { shown: Shown::Dead, event_type: None, subject: None, after, limit };
    let events = db.read(move |tx| inspect::list(tx, &filter)).await?;
    Ok(events.into_iter().map(|event| event.id).collect())
}

async fn open_again(db: &Db, ids: Vec<i64>) -> Result<Vec<(i64, Reopened)>, StoreError> {
    db.write(move |tx| ids.into_iter().map(|id| Ok((id, reopen(tx, id)?))).collect()).await
}

async fn stats(db: &Db, printed: Printed) -> anyhow::Result<Exit> {
    let stats = db.read(inspect::stats).await?;
    let mut printer = Printer::stdout(printed);
    match printer.form() {
        Form::Json => printer.json(&stats)?,
        Form::Table => {
            printer.table(&["EVENTS", "COUNT"], numbers(&stats).into_iter())?;
            if !stats.waiting.is_empty() {
                printer.table(Waiting::HEADER, stats.waiting.iter().map(Row::cells))?;
            }
        }
    }
    printer.flush()?;
    Ok(Exit::Ok)
}

fn numbers(stats: &Stats) -> Vec<Vec<String>> {
    let count = |n: i64| if n >= COUNT_CAP { format!("{n} or more") } else { n.to_string() };
    let age = stats.oldest_open_age_ms.map_or_else(|| "-".to_owned(), |ms| format!("{} s", ms / 1000));
    [
        ("open", count(stats.open)),
        ("oldest open, age", age),
        ("subjects waiting for a retry", count(stats.waiting_subjects)),
        ("abandoned", count(stats.abandoned)),
        ("dead", count(stats.dead)),
    ]
    .map(|(name, value)| vec![name.to_owned(), value])
    .to_vec()
}

impl Row for Waiting {
    const HEADER: &'static [&'static str] = &["WAITING", "HEAD", "TYPE", "ATTEMPTS", "NEXT RETRY", "LAST ERROR"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.subject.clone(),
            self.head_id.to_string(),
            self.event_type.clone(),
            self.attempts.to_string(),
            self.next_retry_at.clone(),
            or_dash(self.last_error.as_deref()),
        ]
    }
}

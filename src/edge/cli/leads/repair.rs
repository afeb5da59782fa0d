//! The verbs by which a person has leads notified that would not be by themselves. The reason is recorded.

use std::collections::BTreeSet;

use serde::Serialize;

use super::args::{EnqueueArgs, RetryArgs};
use super::{BATCH, note_delivery};
use crate::config::Delivery;
use crate::edge::cli::Exit;
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::Printer;
use crate::kernel::store::{Db, StoreError, Tx};
use crate::leads::{self, Retry, RetryReason, inspect};

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: String,
    retry_requested: bool,
    current_status: &'static str,
    retry_count: i64,
}

impl Answer {
    fn new(id: String, retry: Retry) -> Self {
        let Retry { retry_requested, current_status, retry_count } = retry;
        Self { id, retry_requested, current_status, retry_count }
    }

    fn text(&self) -> String {
        match (self.retry_requested, self.current_status) {
            (true, _) => format!("{} waits to be sent again", self.id),
            (false, "missing") => format!("{} no such lead", self.id),
            (false, "disabled") => format!("{} disabled: nothing changed; see `leads enqueue-disabled`", self.id),
            (false, status) => format!("{} {status}: nothing changed; only a failed one is sent again", self.id),
        }
    }
}

pub(super) async fn retry(db: &Db, delivery: Option<Delivery>, args: RetryArgs) -> anyhow::Result<Exit> {
    let reason = RetryReason::parse(&args.reason)?;
    if args.all_failed {
        return retry_all(db, delivery, reason, args.printed).await;
    }
    let mut seen = BTreeSet::new();
    let ids: Vec<String> = args.ids.into_iter().filter(|id| seen.insert(id.clone())).collect();
    let mut printer = Printer::stdout(args.printed);
    let (mut requested, mut refused) = (0_usize, 0_usize);
    for part in ids.chunks(BATCH) {
        let part = part.to_vec();
        let retry = move |tx: &Tx<'_>| part.into_iter().map(|id| retry_one(tx, id, reason)).collect();
        let answers: Result<Vec<Answer>, StoreError> = db.write(retry).await;
        for answer in answers? {
            *if answer.retry_requested { &mut requested } else { &mut refused } += 1;
            printer.one(&answer, &answer.text())?;
        }
    }
    if requested > 0 {
        note_delivery(delivery);
    }
    Ok(if refused == 0 { Exit::Ok } else { Exit::Failure })
}

/// How many wait again.
#[derive(Serialize)]
struct Retried {
    retried: usize,
}

async fn retry_all(db: &Db, delivery: Option<Delivery>, reason: RetryReason, printed: Printed) -> anyhow::Result<Exit> {
    let begun = db.clock().now();
    let batch = move |tx: &Tx<'_>, limit| leads::retry_failed(tx, reason, begun, limit);
    let retried = in_batches(db, batch).await?;
    let text = match retried {
        0 => "there are no failed notifications".to_owned(),
        1 => "1 lead waits to be sent again".to_owned(),
        many => format!("{many} leads wait to be sent again"),
    };
    Printer::stdout(printed).one(&Retried { retried }, &text)?;
    if retried > 0 {
        note_delivery(delivery);
    }
    Ok(Exit::Ok)
}

/// Repeats `change`, which changes up to so many leads and says how many it did, until fewer are left than a batch.
async fn in_batches<F>(db: &Db, change: F) -> Result<usize, StoreError>
where
    F: Fn(&Tx<'_>, i64) -> Result<usize, StoreError> + Clone + Send + 'static,
{
    let limit = i64::try_from(BATCH).unwrap_or(1);
    let mut changed = 0;
    loop {
        let change = change.clone();
        let batch = db.write(move |tx| change(tx, limit)).await?;
        changed += batch;
        if batch < BATCH {
            return Ok(changed);
        }
    }
}

/// The answer bears the id that was asked for.
fn retry_one(tx: &Tx<'_>, id: String, reason: RetryReason) -> Result<Answer, StoreError> {
    let Some(found) = inspect::find(tx, &id)? else {
        let missing = Retry { retry_requested: false, current_status: "missing", retry_count: 0 };
        return Ok(Answer::new(id, missing));
    };
    Ok(Answer::new(id, leads::retry_by_hand(tx, &found.lead.position.id, reason)?))
}

/// How many wait now.
#[derive(Serialize)]
struct Enqueued {
    enqueued: usize,
}

pub(super) async fn enqueue_disabled(db: &Db, delivery: Option<Delivery>, args: EnqueueArgs) -> anyhow::Result<Exit> {
    let reason = RetryReason::parse(&args.reason)?;
    let enqueued = in_batches(db, move |tx, limit| leads::enqueue_disabled(tx, reason, limit)).await?;
    let text = match enqueued {
        0 => "there are no disabled leads".to_owned(),
        1 => "1 lead waits to be sent".to_owned(),
        many => format!("{many} leads wait to be sent"),
    };
    Printer::stdout(args.printed).one(&Enqueued { enqueued }, &text)?;
    if enqueued > 0 {
        note_delivery(delivery);
    }
    Ok(Exit::Ok)
}

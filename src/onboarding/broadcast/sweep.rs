//! The sweep: starts what is due, freezes, feeds, takes back what may not go, and ends what is over.
//!
//! Every step is one short write. Broadcasts take turns, a step each, so that the freezing of a large one does not let
//! the queue of another run dry.

use tokio_util::sync::CancellationToken;

use super::feed::{feed_some, take_back};
use super::finish::finish_if_over;
use super::freeze::freeze_some;
use super::sql::{self, Broadcast};
use super::state::State;
use super::{Change, Error, change};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, Tx};
use crate::onboarding::content::Lang;

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    /// Broadcasts that were due.
    pub(crate) started: u64,
    /// Recipients written down.
    pub(crate) frozen: u64,
    /// Messages handed to the send queue.
    pub(crate) queued: u64,
    /// Messages taken back from it.
    #[serde(rename = "takenBack")]
    pub(crate) taken_back: u64,
    /// Broadcasts of which nobody was left.
    pub(crate) finished: u64,
    /// When the next sweep is wanted, besides the schedule and the wakes.
    #[serde(skip)]
    pub(crate) next: Option<UnixMs>,
}

/// What one step of one broadcast did.
#[derive(Debug, Default)]
struct Step {
    did: Report,
    /// Whether another step may do more.
    more: bool,
}

/// One sweep. People without a language are sent the text in `default_lang`.
///
/// # Errors
/// The store's; what was done before stays done.
pub(crate) async fn run_once(db: &Db, default_lang: Lang, stop: &CancellationToken) -> Result<Report, Error> {
    let mut open = db.read(sql::open).await?;
    let mut report = Report::default();
    while !open.is_empty() && !stop.is_cancelled() {
        let mut more = Vec::new();
        for id in open {
            let step = db.write(move |tx| step(tx, id, default_lang)).await?;
            report.add(&step.did);
            if step.more {
                more.push(id);
            }
        }
        open = more;
    }
    Ok(report)
}

impl Report {
    fn add(&mut self, did: &Self) {
        self.started += did.started;
        self.frozen += did.frozen;
        self.queued += did.queued;
        self.taken_back += did.taken_back;
        self.finished += did.finished;
        self.next = [self.next, did.next].into_iter().flatten().min();
    }
}

fn step(tx: &Tx<'_>, id: i64, default_lang: Lang) -> Result<Step, Error> {
    let Some(broadcast) = sql::find(tx, id)? else { return Ok(Step::default()) };
    match broadcast.state {
        State::Scheduled => start_if_due(tx, &broadcast),
        State::Running if broadcast.frozen_at.is_none() => {
            let frozen = freeze_some(tx, &broadcast, default_lang)?;
            Ok(Step { did: Report { frozen, ..Report::default() }, more: true })
        }
        State::Running => run(tx, &broadcast),
        State::Paused | State::Cancelled => empty(tx, &broadcast, None),
        State::Draft | State::Done => Ok(Step::default()),
    }
}

fn start_if_due(tx: &Tx<'_>, broadcast: &Broadcast) -> Result<Step, Error> {
    if broadcast.scheduled_at.is_some_and(|at| at > tx.now()) {
        return Ok(Step { did: Report { next: broadcast.scheduled_at, ..Report::default() }, more: false });
    }
    change(tx, broadcast.id, Change::Start)?;
    Ok(Step { did: Report { started: 1, ..Report::default() }, more: true })
}

fn run(tx: &Tx<'_>, broadcast: &Broadcast) -> Result<Step, Error> {
    if let Some(end) = broadcast.quiet.and_then(|quiet| quiet.ends_after(tx.now())) {
        return empty(tx, broadcast, Some(end));
    }
    if finish_if_over(tx, broadcast.id)? {
        return Ok(Step { did: Report { finished: 1, ..Report::default() }, more: false });
    }
    let fed = feed_some(tx, broadcast)?;
    let did = Report { queued: fed.queued.unsigned_abs(), next: fed.quiet_until, ..Report::default() };
    Ok(Step { did, more: fed.more })
}

/// Takes back what may not go; what is being sent just now is left to its end.
fn empty(tx: &Tx<'_>, broadcast: &Broadcast, next: Option<UnixMs>) -> Result<Step, Error> {
    let taken_back = if broadcast.counts.queued > 0 { take_back(tx, broadcast.id)? } else { 0 };
    let is_over = taken_back > 0 && finish_if_over(tx, broadcast.id)?;
    Ok(Step { did: Report { taken_back, finished: u64::from(is_over), next, ..Report::default() }, more: false })
}

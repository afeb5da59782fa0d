//! One pass: its pages, its transactions, and what it has to tell.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::candidate::Candidate;
use super::outside::Answers;
use super::settle::{self, Fate, Settled};
use super::walk::{Lane, Size, Walk};
use super::{BUSY_MS, Relay, Report, STUCK_MS};
use crate::kernel::store::{StoreError, Tx};
use crate::outbox::consumer::Consumer;
use crate::outbox::sql;

/// A transaction settles events for so long. Everybody else who writes waits meanwhile, and one flush is shared by as many
/// events as fit in it.
const TRANSACTION: Duration = Duration::from_millis(5);
/// What one transaction reads; somewhat more than it can settle.
const SETTLED: Size = Size { rows: 128, bytes: 1 << 20 };
/// What outside consumers are asked for at once: one flush of theirs for as many, held in memory meanwhile.
const ASKED: Size = Size { rows: 500, bytes: 4 << 20 };

/// How long the inside consumers wait for the outside ones, in real time: a healthy one takes milliseconds, and with its
/// answer the page is one write. Whoever takes longer holds up nobody's fan-out.
const BREATH: Duration = Duration::from_millis(50);

/// What one transaction did; nothing of it counts before its commit.
#[derive(Debug, Default)]
struct Turn {
    /// How many of the events at hand were dealt with.
    handled: usize,
    is_last: bool,
    walk: Option<Walk>,
    settled: Vec<(i64, Settled)>,
    stuck: Vec<(i64, String)>,
}

/// A pass under way.
pub(super) struct Pass<'r> {
    relay: &'r Relay,
    stop: &'r CancellationToken,
    walk: Walk,
    aside: Arc<HashSet<i64>>,
    report: Report,
    /// How often which consumer refused with which code, and one of the rows.
    refusals: BTreeMap<(&'static str, &'static str), (u64, i64)>,
    /// One of the events of which nothing could be written, and why.
    stuck: Option<(i64, String)>,
}

impl<'r> Pass<'r> {
    pub(super) fn begin(relay: &'r Relay, stop: &'r CancellationToken) -> Self {
        let aside = relay.left_alone();
        let (report, refusals) = Default::default();
        Self { relay, stop, walk: Walk::begin(), aside, report, refusals, stuck: None }
    }

    /// Hands over the next page; whether it was the last.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn page(&mut self) -> Result<bool, StoreError> {
        if self.relay.has_outside() { self.ask_and_settle().await } else { self.settle_due().await }
    }

    /// Without anybody to ask outside, a page is read by the transaction that settles it.
    async fn settle_due(&mut self) -> Result<bool, StoreError> {
        let (consumers, aside, walk) = (Arc::clone(&self.relay.consumers), Arc::clone(&self.aside), self.walk.clone());
        let settle = move |tx: &Tx<'_>| {
            let mut walk = walk.clone();
            let page = walk.page(tx, &aside, SETTLED)?;
            let mut turn = Turn::default();
            let begun = Instant::now();
            for (lane, candidate) in &page.candidates {
                if turn.handled > 0 && begun.elapsed() >= TRANSACTION {
                    break;
                }
                turn.settle(tx, &consumers, candidate, None)?;
                walk.pass(*lane, candidate);
            }
            turn.is_last = page.is_last && turn.handled == page.candidates.len();
            turn.walk = Some(walk);
            Ok::<_, StoreError>(turn)
        };
        let mut turn = self.relay.db.settle(settle).await?;
        if let Some(walk) = turn.walk.take() {
            self.walk = walk;
        }
        let is_last = turn.is_last;
        self.count(turn);
        Ok(is_last)
    }

    /// Reads a page, asks the outside consumers for all of it, and settles it by as many transactions as that takes.
    async fn ask_and_settle(&mut self) -> Result<bool, StoreError> {
        let (aside, walk) = (Arc::clone(&self.aside), self.walk.clone());
        let page = self.relay.db.read(move |tx: &Tx<'_>| walk.page(tx, &aside, ASKED)).await?;
        let candidates: Vec<&Candidate> = page.candidates.iter().map(|(_, candidate)| candidate).collect();
        let rows: Arc<Vec<i64>> = Arc::new(candidates.iter().map(|candidate| candidate.row).collect());
        let asked = self.relay.patience.ask_all(&self.relay.consumers, &candidates);
        tokio::pin!(asked);
        let at_once = tokio::select! {
            answers = &mut asked => Some(answers),
            () = tokio::time::sleep(BREATH) => None,
            () = self.stop.cancelled() => return Ok(true),
        };
        let answers = match at_once {
            Some(answers) => answers,
            None => {
                let inside = self.settle_inside(&rows).await?;
                // Whoever is not waited for is asked again after the next start.
                let Some(mut answers) = self.stop.run_until_cancelled(asked).await else { return Ok(true) };
                inside.into_iter().for_each(|(row, answered)| answers.entry(row).or_default().extend(answered));
                answers
            }
        };
        let (answers, mut from) = (Arc::new(answers), 0);
        // An answer is written down also after `stop`: else the consumer would be asked for it again.
        while from < rows.len() {
            let turn = self.settle_asked(Arc::clone(&rows), Arc::clone(&answers), from).await?;
            from += turn.handled;
            self.count(turn);
        }
        page.candidates.iter().for_each(|(lane, candidate): &(Lane, Candidate)| self.walk.pass(*lane, candidate));
        Ok(page.is_last)
    }

    /// Has the inside consumers do their work on the page, by as many transactions as that takes; what those of them
    /// answered that have not accepted. Of a row that cannot be changed nothing is answered: it is met again.
    async fn settle_inside(&self, rows: &Arc<Vec<i64>>) -> Result<Answers, StoreError> {
        let (mut all, mut from) = (Answers::new(), 0);
        while from < rows.len() {
            let (consumers, rows) = (Arc::clone(&self.relay.consumers), Arc::clone(rows));
            let settle = move |tx: &Tx<'_>| settle_inside(tx, &consumers, &rows[from..]);
            let (answers, handled) = self.relay.db.settle(settle).await?;
            all.extend(answers);
            from += handled;
        }
        Ok(all)
    }

    async fn settle_asked(&self, rows: Arc<Vec<i64>>, answers: Arc<Answers>, from: usize) -> Result<Turn, StoreError> {
        let consumers = Arc::clone(&self.relay.consumers);
        let settle = move |tx: &Tx<'_>| {
            let mut turn = Turn::default();
            let begun = Instant::now();
            for row in &rows[from..] {
                if turn.handled > 0 && begun.elapsed() >= TRANSACTION {
                    break;
                }
                // Read again: a person may have changed it while others were asked.
                match sql::relay::find_unpublished(tx, *row)? {
                    Some(candidate) => turn.settle(tx, &consumers, &candidate, Some(&answers))?,
                    None => turn.handled += 1,
                }
            }
            Ok::<_, StoreError>(turn)
        };
        self.relay.db.settle(settle).await
    }

    /// Takes note of what a transaction did that is committed.
    fn count(&mut self, turn: Turn) {
        for (row, settled) in turn.settled {
            for refusal in settled.refusals {
                self.refusals.entry(refusal).or_insert((0, row)).0 += 1;
            }
            match settled.fate {
                Fate::Published => self.report.published += 1,
                Fate::PutOff => self.report.retried += 1,
                Fate::Failed => self.report.failed += 1,
                Fate::Waits => self.relay.leave_alone(row, BUSY_MS),
            }
        }
        for (row, error) in turn.stuck {
            self.report.stuck += 1;
            self.stuck.get_or_insert((row, error));
            self.relay.leave_alone(row, STUCK_MS);
        }
    }

    /// Says what the pass did, in the log and in numbers.
    pub(super) fn tell(self) -> Report {
        let report = self.report;
        let outcomes = [("published", report.published), ("retried", report.retried), ("failed", report.failed)];
        for (outcome, count) in outcomes.into_iter().filter(|(_, count)| *count > 0) {
            metrics::counter!("pillarbox_events_relayed_total", "outcome" => outcome).increment(count);
        }
        for ((consumer, code), (count, row)) in self.refusals {
            metrics::counter!("pillarbox_events_refused_total", "consumer" => consumer).increment(count);
            tracing::warn!(
                consumer,
                code,
                count,
                event.row = row,
                "a consumer refused events; those that are not given up are handed over again"
            );
        }
        if let Some((row, error)) = self.stuck {
            let count = report.stuck;
            tracing::error!(
                count,
                event.row = row,
                error,
                "nothing could be written of some events; they are left alone for 5 minutes"
            );
        }
        if report.failed > 0 {
            let count = report.failed;
            tracing::error!(count, "events were given up; `pillarbox events list --status failed` shows them");
        }
        report
    }
}

/// What fits in one transaction of the inside consumers' work, and how many of the rows that was.
fn settle_inside(tx: &Tx<'_>, consumers: &[Box<dyn Consumer>], rows: &[i64]) -> Result<(Answers, usize), StoreError> {
    let (mut answers, mut handled) = (Answers::new(), 0);
    let begun = Instant::now();
    for row in rows {
        if handled > 0 && begun.elapsed() >= TRANSACTION {
            break;
        }
        if let Some(candidate) = sql::relay::find_unpublished(tx, *row)? {
            answers.insert(*row, settle::settle_inside(tx, consumers, &candidate)?.unwrap_or_default());
        }
        handled += 1;
    }
    Ok((answers, handled))
}

impl Turn {
    fn settle(
        &mut self,
        tx: &Tx<'_>,
        consumers: &[Box<dyn Consumer>],
        candidate: &Candidate,
        answers: Option<&Answers>,
    ) -> Result<(), StoreError> {
        let answered = answers.and_then(|answers| answers.get(&candidate.row)).map_or(&[][..], Vec::as_slice);
        match settle::settle(tx, consumers, candidate, answered)? {
            Ok(settled) => self.settled.push((candidate.row, settled)),
            Err(stuck) => self.stuck.push((candidate.row, stuck.to_string())),
        }
        self.handled += 1;
        Ok(())
    }
}

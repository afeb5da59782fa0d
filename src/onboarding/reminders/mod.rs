//! Reminders: who has been silent at a stage for its threshold is reminded of it once.
//!
//! # What
//! A sweep goes through the stages, the one nearest to the goal first, and queues a message for whoever has been silent
//! longer than the stage is given (`reminders.stage_1` … `stage_8`), until it has queued `reminders.per_sweep`.
//!
//! # States
//! A person has been reminded of a stage, which is a row of `bot_reminders_sent`, or not.
//!
//! # Guarantees
//! - The row and the queued message are one transaction, so a person is reminded of a stage at most once:
//!   `tests/it/reminders.rs::two_sweeps_at_the_same_minute_remind_once`.
//! - Who does not want it, or cannot be written to, is passed over and may be reminded later:
//!   `tests/it/reminders.rs::the_opted_out_and_the_unreachable_are_passed_over`.
//! - A sweep costs what is due, not who is there: `src/onboarding/plan_tests.rs::every_repeated_statement_uses_the_index_made_for_it`.
//!
//! # Windows
//! None: whatever was committed was queued, and what was not is found by the next sweep
//! (`tests/it/crash_bulk.rs::reminders_and_digests_are_queued_once_through_every_kill`).
//!
//! # Not here
//! No second reminder of a stage. What a cap leaves over is not remembered: the next sweep finds it again.

pub(crate) mod sql;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::sql::Candidate;
use super::Error;
use super::content::{Content, Values};
use super::dialog::steps::next_data;
use crate::chat::{self, Action, Button, Format, Keyboard, Kind, NewMessage};
use crate::config::RemindersConfig;
use crate::kernel::store::{Db, StoreError, Tx};

/// People of one write: few enough that whoever writes beside it does not notice.
const BATCH: u32 = 50;
/// How many more people than it may remind a sweep looks at, so that those whose reminder fails do not hold up the others.
const LOOKS_PER_REMINDER: u32 = 10;
/// The stages that lead anywhere: whoever is at the last one has arrived.
const STAGES: [i64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    /// Reminders queued.
    pub(crate) queued: u32,
    /// People whose reminder failed; they are looked at again by the next sweep.
    pub(crate) failed: u32,
    /// Whether more may be due than a sweep may queue.
    #[serde(rename = "isCapped")]
    pub(crate) is_capped: bool,
}

/// What one write did.
#[derive(Debug, Default)]
struct Batch {
    looked: u32,
    queued: u32,
    failed: u32,
    last: Option<Candidate>,
}

/// One sweep.
///
/// # Errors
/// The store's; what was queued before stays queued.
pub(crate) async fn run_once(
    db: &Db,
    content: &Arc<Content>,
    config: &RemindersConfig,
    stop: &CancellationToken,
) -> Result<Report, StoreError> {
    let mut sweep = Sweep { report: Report::default(), looked: 0, per_sweep: config.per_sweep };
    for (stage, silence) in STAGES.into_iter().zip(config.after).rev() {
        let Some(silence) = silence else { continue };
        if !content.has(&key(stage)) {
            tracing::warn!(stage, "a reminder has no text; whoever waits for it is not reminded");
            continue;
        }
        sweep.stage(db, content, Stage { number: stage, silence }, stop).await?;
    }
    Ok(sweep.report)
}

/// A stage and how long somebody may be silent at it.
#[derive(Clone, Copy)]
struct Stage {
    number: i64,
    silence: Duration,
}

struct Sweep {
    report: Report,
    looked: u32,
    per_sweep: u32,
}

impl Sweep {
    async fn stage(
        &mut self,
        db: &Db,
        content: &Arc<Content>,
        stage: Stage,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let mut after = None;
        while !stop.is_cancelled() {
            let limit = self.room().min(BATCH);
            if limit == 0 {
                self.report.is_capped = true;
                return Ok(());
            }
            let content = Arc::clone(content);
            let batch = db.write(move |tx| remind_some(tx, &content, stage, after, limit)).await?;
            metrics::counter!("pillarbox_reminders_total", "stage" => stage.number.to_string())
                .increment(u64::from(batch.queued));
            self.looked += batch.looked;
            self.report.queued += batch.queued;
            self.report.failed += batch.failed;
            after = batch.last;
            if batch.looked < limit {
                break;
            }
        }
        Ok(())
    }

    /// How many more people may be looked at.
    fn room(&self) -> u32 {
        let looks = self.per_sweep.saturating_mul(LOOKS_PER_REMINDER).saturating_sub(self.looked);
        self.per_sweep.saturating_sub(self.report.queued).min(looks)
    }
}

/// Reminds the next people who are silent at a stage.
fn remind_some(
    tx: &Tx<'_>,
    content: &Content,
    stage: Stage,
    after: Option<Candidate>,
    limit: u32,
) -> Result<Batch, StoreError> {
    let silent_since = tx.now().saturating_sub(i64::try_from(stage.silence.as_millis()).unwrap_or(i64::MAX));
    let mut batch = Batch::default();
    for candidate in sql::silent(tx, stage.number, silent_since, after, limit)? {
        batch.looked += 1;
        batch.last = Some(candidate);
        let reminding = || remind(tx, content, stage.number, &candidate);
        match tx.attempt(|| Error::Panicked, reminding)? {
            Ok(true) => batch.queued += 1,
            Ok(false) => {}
            Err(error) => {
                batch.failed += 1;
                tracing::warn!(stage = stage.number, %error, "somebody could not be reminded");
            }
        }
    }
    Ok(batch)
}

/// Reminds one person; whether they had not been.
fn remind(tx: &Tx<'_>, content: &Content, stage: i64, candidate: &Candidate) -> Result<bool, Error> {
    let key = key(stage);
    if !sql::insert_once(tx, candidate.telegram_id, &key)? {
        // Somebody who was deleted and came again: the promise outlives their row.
        sql::mark_reminded(tx, candidate.telegram_id, stage)?;
        return Ok(false);
    }
    let text = content.render(tx, &key, candidate.lang, &Values::none())?;
    let label = content.render(tx, "reminder_button", candidate.lang, &Values::none())?;
    let button = Button { text: label, action: Action::Data(next_data(stage).to_owned()) };
    chat::enqueue(
        tx,
        &NewMessage {
            chat_id: candidate.telegram_id,
            kind: Kind::Reminder,
            text,
            format: Format::Html,
            keyboard: Keyboard(vec![vec![button]]),
            edit: None,
            dedup_key: format!("reminder:{}:{key}", candidate.telegram_id),
            due_at: None,
            fallback: None,
        },
    )?;
    Ok(true)
}

/// The contract's name of a stage's reminder, and the block of its text.
fn key(stage: i64) -> String {
    format!("stage_{stage}")
}

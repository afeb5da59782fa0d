//! The notifications' worker: it announces what other programs stored, and tells the broker's chat of each lead once.
//!
//! **What.** [`Worker::run_once`] is a pass. For each lead that may go it takes a slot of the limiter, then claims the
//! lead and reads its summary in one transaction, sends it outside any, and completes it, fenced by the attempt's number.
//!
//! **States.** `pending → sending → sent | failed`; the claims are `leads/claim.rs`'s.
//!
//! **Guarantees.**
//! - Nothing is claimed before it has its slot: `src/leads/notify/tests/pass.rs::nothing_is_claimed_without_a_slot`.
//! - What certainly did not arrive is tried again within its attempt, and only for so long:
//!   `src/leads/notify/tests/attempts.rs::a_wait_that_is_too_long_ends_the_attempt`.
//! - What may have arrived is never repeated by the attempt itself:
//!   `src/leads/notify/tests/attempts.rs::every_outcome_has_its_code`.
//! - A worker whose claim was taken over changes nothing: `src/leads/notify/tests/pass.rs::a_claim_that_was_taken_over_is_left_alone`.
//! - With another delivery than `worker` nothing is claimed: `src/leads/notify/tests/pass.rs::other_deliveries_claim_nothing`.
//! - A refused token costs no lead but the one that found out:
//!   `src/leads/notify/tests/attempts.rs::a_refused_token_is_known_to_everybody_and_holds_the_next_lead`.
//! - A row that cannot be changed is put aside, and keeps no other from being told (the list of those is a lock of its own,
//!   held for no call): `src/leads/notify/tests/pass.rs::a_row_that_cannot_be_changed_is_put_aside_and_the_others_are_told`.
//!
//! **Windows.** Between the slot and the claim: the slot dies with the process. Between the claim and its completion: the
//! lead stays `sending`, and is claimed again once it has been so for 15 minutes; if Telegram had it, the broker sees it
//! twice, with the same ID (`tests/it/leads_notify.rs::a_kill_between_send_and_completion_costs_one_more_message_after_15_minutes`).
//!
//! **Alerts.** What needs a person is told in the log when it begins and when it is over (`watch.rs`).
//!
//! **Not here.** Who may claim what (`leads/claim.rs`), the text (`leads/summary.rs`), the Bot API (`edge/telegram`). The
//! chat's id is in the configuration and in a file of its own (`recipient.rs`), and never in the database.

mod attempt;
mod code;
mod recipient;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::counter;
use tokio_util::sync::CancellationToken;

pub(crate) use self::recipient::Recipient;
use self::watch::Watch;
use super::claim::{STALE_AFTER_MS, complete_attempt};
use super::health::health;
use super::{Candidate, Completed, Ending, Hands, Hold, Taken, announce, next_for_worker, take};
use crate::chat::{Access, Lane, Limiter, Messenger, Slot, UNAUTHORIZED_WAIT, millis};
use crate::config::Delivery;
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::{Db, StoreError, Tx};

/// So many leads are handled by one pass, or for so long (real time, as calls are); then it lets others look at its
/// report and begins anew.
const MOST_IN_A_PASS: u64 = 50;
const LONGEST_PASS: Duration = Duration::from_secs(5);
/// How many rows of other programs are announced by one transaction.
const ANNOUNCED_AT_ONCE: i64 = 100;
/// When to ask again for a slot that somebody has: its owner wakes nobody here.
const HELD_MS: i64 = 1_000;

/// Whoever brings notifications to the broker's chat.
pub(crate) struct Post {
    pub(crate) messenger: Arc<dyn Messenger>,
    pub(crate) recipient: Arc<Recipient>,
    /// The budget that everybody who sends to Telegram shares.
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) access: Arc<Access>,
    pub(crate) clock: Clock,
}

/// The one worker of a process.
pub(crate) struct Worker {
    db: Db,
    delivery: Delivery,
    hands: Hands,
    /// None unless this process is to send.
    post: Option<Post>,
    watch: Watch,
    /// Leads that could not be claimed or completed, each until when it is left alone.
    aside: Mutex<Vec<(UnixMs, Hold)>>,
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Rows of other programs that got their events.
    pub(crate) announced: u64,
    /// Leads that the broker's chat was told of.
    pub(crate) sent: u64,
    /// Leads whose attempt failed.
    pub(crate) failed: u64,
    /// Leads that were closed without another attempt.
    pub(crate) given_up: u64,
    /// Attempts that ended after somebody else had taken the lead over.
    pub(crate) overtaken: u64,
    /// More may go at once.
    pub(crate) more: bool,
    /// When the next one may go, if one waits for that.
    pub(crate) next: Option<UnixMs>,
}

impl Report {
    fn handled(&self) -> u64 {
        self.sent + self.failed + self.given_up + self.overtaken
    }
}

impl Worker {
    /// A worker that sends by `post`; without one, or with another delivery than `worker`, it claims nothing.
    pub(crate) fn new(db: Db, delivery: Delivery, hands: Hands, post: Option<Post>) -> Self {
        let post = post.filter(|_| delivery == Delivery::Worker);
        Self { db, delivery, hands, post, watch: Watch::default(), aside: Mutex::default() }
    }

    pub(crate) fn hands(&self) -> &Hands {
        &self.hands
    }

    /// The chat that is told, if this process tells it.
    pub(crate) fn recipient(&self) -> Option<&Arc<Recipient>> {
        self.post.as_ref().map(|post| &post.recipient)
    }

    /// Announces, and tells the broker's chat of what may go now. A lead that was claimed is brought to its end also
    /// after `stop`.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let mut report = Report::default();
        let deadline = Instant::now() + LONGEST_PASS;
        self.announce(stop, deadline, &mut report).await?;
        let now = self.db.clock().now();
        // A clock that is set back does not make it longer.
        self.aside().retain(|(until, _)| (1..=STALE_AFTER_MS).contains(&until.saturating_sub(now)));
        if let Some(post) = &self.post {
            post.refresh().await;
            while !stop.is_cancelled() && report.next.is_none() {
                if report.handled() >= MOST_IN_A_PASS || Instant::now() >= deadline {
                    report.more = true;
                    break;
                }
                if !self.notify_next(post, &mut report).await? {
                    break;
                }
            }
        }
        self.look_after(&report).await;
        Ok(report)
    }

    /// Tells what needs a person. Nothing that is wrong here may keep leads from being told.
    async fn look_after(&self, report: &Report) {
        let now = self.db.clock().now();
        if report.failed + report.given_up + report.overtaken == 0 && !self.watch.is_due(now) {
            return;
        }
        match self.db.read(|tx: &Tx<'_>| health(tx)).await {
            Ok(health) => self.watch.tell(now, &health),
            Err(error) => tracing::warn!(%error, "how the leads' notifications are could not be read"),
        }
    }

    async fn announce(&self, stop: &CancellationToken, end: Instant, report: &mut Report) -> Result<(), StoreError> {
        let delivery = self.delivery;
        while !stop.is_cancelled() {
            let announce = move |tx: &Tx<'_>| announce(tx, delivery, ANNOUNCED_AT_ONCE);
            let announced = self.db.settle(announce).await?;
            report.announced += announced as u64;
            if announced < usize::try_from(ANNOUNCED_AT_ONCE).unwrap_or(usize::MAX) {
                break;
            }
            if Instant::now() >= end {
                report.more = true;
                break;
            }
        }
        Ok(())
    }

    /// Takes the lead that is next and tells the broker's chat of it. Whether to go on.
    async fn notify_next(&self, post: &Post, report: &mut Report) -> Result<bool, StoreError> {
        let hands = self.hands.clone();
        let next = self.db.read(move |tx: &Tx<'_>| next_for_worker(tx, &hands)).await?;
        let Some(candidate) = next else { return Ok(false) };
        let slot = match post.limiter.take(post.recipient.chat_id(), Lane::Transactional) {
            Ok(slot) => slot,
            Err(no_slot) => {
                let soon = post.clock.now().saturating_add(HELD_MS);
                report.next = Some(no_slot.again_at().unwrap_or(soon));
                return Ok(false);
            }
        };
        if !post.access.is_granted() {
            return Ok(self.is_let_in(post, slot, report).await);
        }
        // Held before it is claimed and until its end is recorded, so that nobody in this process takes it meanwhile.
        let hold = self.hands.hold(&candidate.lead_id);
        let taken = match self.take(candidate).await {
            Err(error) if !error.is_store_fault() => {
                self.put_aside(hold, &error);
                report.failed += 1;
                return Ok(true);
            }
            taken => taken?,
        };
        match taken {
            Taken::Claimed { lead_id, request_id, attempt, summary } => {
                let ending = match summary {
                    Ok(text) => post.attempt(text, slot).await.map_or_else(Ending::Failed, |()| Ending::Sent),
                    Err(code) => Ending::Failed(code),
                };
                let attempted = Attempted { lead_id, request_id, attempt, ending };
                match self.complete(attempted, report).await {
                    Err(error) if !error.is_store_fault() => {
                        self.put_aside(hold, &error);
                        report.failed += 1;
                    }
                    completed => completed?,
                }
            }
            Taken::GivenUp => {
                count("given_up");
                report.given_up += 1;
            }
            // Somebody else was faster; should it come again at once, it does not keep this pass busy.
            Taken::Nothing => report.next = Some(post.clock.now().saturating_add(HELD_MS)),
        }
        Ok(true)
    }

    /// While the token is refused a lead that is claimed would only fail, and a person would have to ask for each again:
    /// they wait, and the token is tried with a question that is nobody's message.
    async fn is_let_in(&self, post: &Post, mut slot: Slot, report: &mut Report) -> bool {
        slot.start();
        let answer = post.messenger.introduce().await;
        post.access.learn(&answer);
        if !post.access.is_granted() {
            report.next = Some(post.clock.now().saturating_add(millis(UNAUTHORIZED_WAIT)));
        }
        post.access.is_granted()
    }

    /// Leaves a lead alone for a while whose row cannot be changed, as another program's trigger may have it: it must not
    /// keep the others from being told.
    fn put_aside(&self, hold: Hold, error: &StoreError) {
        count("refused");
        tracing::error!(lead.id = hold.lead_id(), %error, "a lead's row could not be changed; it is left alone for 15 minutes");
        let until = self.db.clock().now().saturating_add(STALE_AFTER_MS);
        self.aside().push((until, hold));
    }

    fn aside(&self) -> MutexGuard<'_, Vec<(UnixMs, Hold)>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, candidate: Candidate) -> Result<Taken, StoreError> {
        // Telling of what is stored is finishing: it goes on when the disk is low.
        self.db.settle(move |tx: &Tx<'_>| take(tx, &candidate)).await
    }

    async fn complete(&self, attempted: Attempted, report: &mut Report) -> Result<(), StoreError> {
        let Attempted { lead_id, request_id, attempt, ending } = attempted;
        let request_id = request_id.as_deref();
        let (lead, end) = (lead_id.clone(), ending.clone());
        let complete = move |tx: &Tx<'_>| complete_attempt(tx, &lead, &end, attempt);
        match (self.db.settle(complete).await?, ending) {
            (Completed::Unchanged, _) => {
                count("overtaken");
                report.overtaken += 1;
                tracing::warn!(
                    lead.id = lead_id,
                    lead.request_id = request_id,
                    attempt,
                    "a lead was dealt with by somebody else before its answer came"
                );
            }
            (_, Ending::Sent) => {
                count("sent");
                report.sent += 1;
                tracing::info!(
                    lead.id = lead_id,
                    lead.request_id = request_id,
                    attempt,
                    "the broker was told of a lead"
                );
            }
            (_, Ending::Failed(code)) => {
                count("failed");
                report.failed += 1;
                let code = code.as_str();
                tracing::warn!(
                    lead.id = lead_id,
                    lead.request_id = request_id,
                    attempt,
                    code,
                    "the broker was not told of a lead"
                );
            }
        }
        Ok(())
    }
}

/// An attempt that is over.
struct Attempted {
    lead_id: String,
    request_id: Option<String>,
    attempt: i64,
    ending: Ending,
}

impl Post {
    /// Learns what another process has written of the chat.
    async fn refresh(&self) {
        let recipient = Arc::clone(&self.recipient);
        // Nothing depends on it: the chat moves on within the attempt, too.
        let _ = tokio::task::spawn_blocking(move || recipient.refresh()).await;
    }
}

fn count(outcome: &'static str) {
    counter!("pillarbox_lead_notifications_total", "outcome" => outcome).increment(1);
}

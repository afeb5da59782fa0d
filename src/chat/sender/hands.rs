//! What a pass and its sends share: looking for what may go, claiming it, sending it, and recording how it ended.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use metrics::{counter, gauge};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Report, SenderParts};
use crate::chat::kind::{Kind, Lane};
use crate::chat::limiter::{Limiter, NoSlot, Pause, Slot, millis};
use crate::chat::outcome::{Class, FailureCode, Outcome};
use crate::chat::queue::{self, Claim, Claimed, Ended};
use crate::chat::sql::{self, claim::Head};
use crate::chat::verdict::{UNAUTHORIZED_WAIT, Verdict};
use crate::chat::{Error, listing};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::Tx;

/// So many calls without a usable answer are told once: one or two happen on any network.
const NOTICED: u32 = 3;

/// Added to the longest time a call may take: what the two commits around it may cost on a slow disk.
const LEASE_SLACK: Duration = Duration::from_secs(30);

/// How many heads of a lane are read at once. More than can be blocked by their chat's interval at default rates, so
/// that one page nearly always finds what may go.
const PAGE: usize = 64;

/// What the tasks share.
pub(super) struct Hands {
    pub(super) parts: SenderParts,
    /// Messages (id and attempt) that a task of this process has.
    in_hand: Mutex<HashSet<(i64, i64)>>,
    pub(super) put_down: Notify,
    tally: Mutex<Report>,
    /// Calls in a row that had no answer that can be used.
    unanswered: AtomicU32,
}

/// What one look at the queue led to.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Something was claimed or closed: a look after it may find more.
    pub(super) moved: bool,
    pub(super) view: View,
}

/// What stands in the way of what did not go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    /// The next instant at which something may go.
    pub(super) next: Option<UnixMs>,
    /// Something may go once a slot is given back, be it by another user of the limiter.
    pub(super) held: bool,
}

/// What may go, and what stands in the way of the rest.
struct Found {
    slots: Vec<(Head, Slot)>,
    view: View,
}

impl Found {
    /// Takes a slot for the head. `Break` if no other head of this lane could get one now.
    fn ask_for(&mut self, limiter: &Arc<Limiter>, head: Head, lane: Lane) -> ControlFlow<()> {
        match limiter.take(head.chat_id, lane) {
            Ok(slot) => self.slots.push((head, slot)),
            Err(NoSlot::Chat(at)) => self.view.wait_for(at),
            Err(NoSlot::Lane(at)) => {
                self.view.wait_for(at);
                return ControlFlow::Break(());
            }
            Err(NoSlot::All(at)) => {
                // Whatever else becomes due before, it does not go before this.
                self.view = View { next: at, held: at.is_none() };
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl View {
    fn wait_for(&mut self, at: Option<UnixMs>) {
        self.next = earlier(self.next, at);
        self.held |= at.is_none();
    }
}

impl Hands {
    pub(super) fn new(parts: SenderParts) -> Self {
        Self {
            parts,
            in_hand: Mutex::default(),
            put_down: Notify::new(),
            tally: Mutex::default(),
            unanswered: AtomicU32::new(0),
        }
    }

    /// The pauses that were stored hold again.
    pub(super) async fn restore_pauses(&self) -> Result<(), Error> {
        let pauses = self.parts.db.read(|tx: &Tx<'_>| Ok::<_, Error>(sql::settle::pauses(tx)?)).await?;
        self.parts.limiter.restore(pauses);
        Ok(())
    }

    pub(super) fn clock(&self) -> &Clock {
        self.parts.db.clock()
    }

    /// Asks for slots, claims what got one, and starts the sends.
    pub(super) async fn fill(self: &Arc<Self>, stop: &CancellationToken) -> Result<Filled, Error> {
        let Found { slots, view } = self.find_slots().await?;
        if slots.is_empty() || stop.is_cancelled() {
            return Ok(Filled { moved: false, view });
        }
        let ids: Vec<i64> = slots.iter().map(|(head, _)| head.id).collect();
        let addressee = Arc::clone(&self.parts.addressee);
        let lease = millis(self.parts.settings.timeout + LEASE_SLACK);
        let claim_all = move |tx: &Tx<'_>| {
            let lease = tx.now().saturating_add(lease);
            ids.iter().map(|&id| queue::claim(tx, addressee.as_ref(), id, lease)).collect::<Result<Vec<_>, Error>>()
        };
        // Sending what is queued is finishing: it goes on when the disk is low.
        let claims = self.parts.db.settle(claim_all).await?;
        let mut moved = false;
        for (claimed, (_, slot)) in claims.into_iter().zip(slots) {
            match claimed {
                Claimed::Message(claim) => {
                    self.in_hand().insert((claim.id, claim.attempt.attempts));
                    tokio::spawn(Arc::clone(self).send(*claim, slot));
                }
                Claimed::Skipped { kind, code } => self.note_skipped(kind, code),
                // Its slot goes back, and it is due later now.
                Claimed::PutOff => {}
                // Somebody closed or moved it since it was read; its slot goes back.
                Claimed::Nothing => continue,
            }
            moved = true;
        }
        Ok(Filled { moved, view })
    }

    /// The messages that may go now, each with its slot.
    async fn find_slots(&self) -> Result<Found, Error> {
        let mut found = Found { slots: Vec::new(), view: View { next: self.look_ahead().await?, held: false } };
        for lane in Lane::ALL {
            if self.look_into(lane, &mut found).await?.is_break() {
                break;
            }
        }
        Ok(found)
    }

    /// Asks for a slot for each head of a lane that is due. `Break` if the lanes after it need not ask: the only lane
    /// with a limit of its own is the last.
    async fn look_into(&self, lane: Lane, found: &mut Found) -> Result<ControlFlow<()>, Error> {
        let mut after = None;
        loop {
            let page = move |tx: &Tx<'_>| Ok::<_, Error>(sql::claim::due_heads(tx, lane, after, PAGE)?);
            let heads = self.parts.db.read(page).await?;
            if heads.iter().any(|head| found.ask_for(&self.parts.limiter, *head, lane).is_break()) {
                return Ok(ControlFlow::Break(()));
            }
            if heads.len() < PAGE {
                return Ok(ControlFlow::Continue(()));
            }
            after = heads.last().copied();
        }
    }

    /// When the next message becomes due that is not due yet. Shows the lanes' ages on the way.
    async fn look_ahead(&self) -> Result<Option<UnixMs>, Error> {
        let look = |tx: &Tx<'_>| {
            let mut next = None;
            for lane in Lane::ALL {
                next = earlier(next, sql::claim::next_due(tx, lane)?);
                let age = Duration::from_millis(listing::age_ms(tx, lane)?.unsigned_abs());
                gauge!("pillarbox_telegram_queue_age_seconds", "lane" => lane.as_str()).set(age.as_secs_f64());
            }
            Ok::<_, Error>(next)
        };
        self.parts.db.read(look).await
    }

    /// Makes one attempt and records how it ended. The slot and the hand are let go after that is committed.
    async fn send(self: Arc<Self>, claim: Claim, slot: Slot) {
        let _in_hand = InHand { hands: Arc::clone(&self), key: (claim.id, claim.attempt.attempts) };
        let mut slot = slot;
        slot.start();
        let call = async { self.parts.messenger.send(&claim.message).await };
        let outcome = AssertUnwindSafe(call).catch_unwind().await;
        let outcome = outcome.unwrap_or(Outcome::Unknown { code: FailureCode::Crashed });
        let pauses = self.react(&claim, &outcome);
        let (id, kind) = (claim.id, claim.attempt.kind);
        let ended = Ended { claim, outcome, pauses, give_up_after: self.parts.settings.give_up_after };
        let addressee = Arc::clone(&self.parts.addressee);
        match self.parts.db.settle(move |tx: &Tx<'_>| queue::settle(tx, addressee.as_ref(), &ended)).await {
            Ok(Some(verdict)) => self.note(kind, &verdict, id),
            Ok(None) => {
                tracing::warn!(message.id = id, "a message was settled by somebody else before its answer came")
            }
            Err(error) => tracing::error!(message.id = id, %error, "the outcome of a message could not be recorded"),
        }
    }

    /// Draws the consequences of an outcome for everybody else. Returns the pauses, to be stored with the outcome.
    fn react(&self, claim: &Claim, outcome: &Outcome) -> Vec<Pause> {
        self.parts.access.learn(outcome);
        let pauses = match outcome {
            Outcome::Refused { class: Class::RateLimited { retry_after }, .. } => {
                self.parts.limiter.rate_limited(claim.message.chat_id, *retry_after)
            }
            Outcome::Refused { class: Class::Unauthorized, .. } => {
                vec![self.parts.limiter.hold_all(UNAUTHORIZED_WAIT)]
            }
            Outcome::Refused { class: Class::Later, code } | Outcome::Unknown { code } => {
                if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 == NOTICED {
                    tracing::warn!(%code, "Telegram has not answered {NOTICED} times in a row; messages wait for it");
                }
                Vec::new()
            }
            Outcome::Delivered { .. } | Outcome::Refused { .. } => {
                if self.unanswered.swap(0, Ordering::Relaxed) >= NOTICED {
                    tracing::info!("Telegram answers again");
                }
                Vec::new()
            }
        };
        let now = self.clock().now();
        for pause in &pauses {
            let wait = Duration::from_millis(pause.until.saturating_sub(now).unsigned_abs());
            counter!("pillarbox_telegram_pause_seconds_total").increment(wait.as_secs());
        }
        pauses
    }

    pub(super) async fn recover(&self) -> Result<(), Error> {
        let in_hand = self.in_hand().clone();
        let addressee = Arc::clone(&self.parts.addressee);
        let found = self.parts.db.read(|tx: &Tx<'_>| Ok::<_, Error>(!sql::claim::void_sends(tx)?.is_empty())).await?;
        if !found {
            return Ok(());
        }
        let treat = move |tx: &Tx<'_>| queue::recover(tx, addressee.as_ref(), &in_hand);
        for (id, kind, verdict) in self.parts.db.settle(treat).await? {
            self.note(kind, &verdict, id);
        }
        Ok(())
    }

    fn note(&self, kind: Kind, verdict: &Verdict, id: i64) {
        counter!("pillarbox_telegram_sends_total", "kind" => kind.as_str(), "outcome" => verdict.as_str()).increment(1);
        self.tally().count(verdict);
        match verdict {
            Verdict::Sent { .. } => tracing::debug!(message.id = id, "a message was sent"),
            Verdict::Again { code, .. } => tracing::info!(message.id = id, %code, "a message is tried again"),
            Verdict::Undeliverable { code, .. } => tracing::info!(message.id = id, %code, "a message is undeliverable"),
            Verdict::Unknown { code } => tracing::warn!(message.id = id, %code, "whether a message arrived is unknown"),
        }
    }

    fn note_skipped(&self, kind: Kind, code: FailureCode) {
        counter!("pillarbox_telegram_sends_total", "kind" => kind.as_str(), "outcome" => "skipped").increment(1);
        tracing::debug!(kind = kind.as_str(), %code, "a message was not sent");
        self.tally().skipped += 1;
    }

    pub(super) fn in_hand(&self) -> MutexGuard<'_, HashSet<(i64, i64)>> {
        self.in_hand.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Report> {
        self.tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Puts the message down when its task ends, however it ends.
struct InHand {
    hands: Arc<Hands>,
    key: (i64, i64),
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.hands.in_hand().remove(&self.key);
        self.hands.put_down.notify_waiters();
    }
}

pub(super) fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    [one, other].into_iter().flatten().min()
}

//! The sender: one pass sends what may go now, many chats at a time and each chat one by one.
//!
//! A send runs as a task of its own, so that a call that hangs holds up neither the pass nor another chat. The pass
//! only asks for slots, claims and starts; each task records its own outcome.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use metrics::{counter, gauge};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::kind::{Kind, Lane};
use super::limiter::{Limiter, NoSlot, Pause, Slot, millis};
use super::outcome::{Class, FailureCode, Messenger, Outcome};
use super::queue::{self, Claim, Claimed, Ended};
use super::sql::Head;
use super::verdict::{UNAUTHORIZED_WAIT, Verdict};
use super::{Addressee, Error, QUEUED, listing, sql};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::{Db, Tx};

/// How long a pass waits for its calls before it reports and leaves the slow ones to themselves. Real time, as the
/// calls are; longer than a healthy call, shorter than one that times out.
const PATIENCE: Duration = Duration::from_secs(5);

/// Added to the longest time a call may take: what the two commits around it may cost on a slow disk.
const LEASE_SLACK: Duration = Duration::from_secs(30);

/// How many heads of a lane are read at once. More than can be blocked by their chat's interval at default rates, so
/// that one page nearly always finds what may go.
const PAGE: usize = 64;

/// How the sender behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderSettings {
    /// A message that was certainly refused is given up at this age.
    pub(crate) give_up_after: Duration,
    /// The longest that one call may take; the messenger's own time-out.
    pub(crate) timeout: Duration,
}

/// What a sender is made of.
pub(crate) struct SenderParts {
    /// The store.
    pub(crate) db: Db,
    /// Who delivers.
    pub(crate) messenger: Arc<dyn Messenger>,
    /// What is known of people.
    pub(crate) addressee: Arc<dyn Addressee>,
    /// The budget.
    pub(crate) limiter: Arc<Limiter>,
    /// How it behaves.
    pub(crate) settings: SenderSettings,
}

/// What a pass did; also counts sends that an earlier pass started and that ended since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Arrived.
    pub(crate) sent: u64,
    /// To be tried again.
    pub(crate) again: u64,
    /// Certainly not arrived, given up.
    pub(crate) undeliverable: u64,
    /// Perhaps arrived, given up.
    pub(crate) unknown: u64,
    /// Closed without an attempt.
    pub(crate) skipped: u64,
    /// When the next message may go, as far as is known; the wake [`QUEUED`] may come before.
    pub(crate) next: Option<UnixMs>,
}

/// The one sender of a process.
pub(crate) struct Sender {
    hands: Arc<Hands>,
    queued: Arc<Notify>,
    passing: tokio::sync::Mutex<()>,
}

/// What the tasks share.
struct Hands {
    parts: SenderParts,
    /// Messages (id and attempt) that a task of this process has.
    in_hand: Mutex<HashSet<(i64, i64)>>,
    put_down: Notify,
    tally: Mutex<Report>,
    authorized: AtomicBool,
}

/// What one look at the queue led to.
#[derive(Debug, Default)]
struct Filled {
    moved: bool,
    next: Option<UnixMs>,
}

impl Report {
    /// Whether nothing happened.
    pub(crate) fn is_empty(&self) -> bool {
        Self { next: None, ..self.clone() } == Self::default()
    }

    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Sent { .. } => self.sent += 1,
            Verdict::Again { .. } => self.again += 1,
            Verdict::Undeliverable { .. } => self.undeliverable += 1,
            Verdict::Unknown { .. } => self.unknown += 1,
        }
    }
}

impl Sender {
    /// A sender that knows the stored pauses, and has treated what was in flight when the process last ended as
    /// attempts of unknown outcome.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn open(parts: SenderParts) -> Result<Self, Error> {
        let pauses = parts.db.read(|tx: &Tx<'_>| Ok::<_, Error>(sql::pauses(tx)?)).await?;
        parts.limiter.restore(pauses);
        let queued = parts.db.subscribe(QUEUED);
        let hands = Arc::new(Hands {
            parts,
            in_hand: Mutex::default(),
            put_down: Notify::new(),
            tally: Mutex::default(),
            authorized: AtomicBool::new(true),
        });
        hands.recover().await?;
        Ok(Self { hands, queued, passing: tokio::sync::Mutex::new(()) })
    }

    /// Sends what may go now and what becomes free meanwhile, until nothing of that is left, `stop` is cancelled, or a
    /// few seconds have passed; calls that still hang then go on by themselves. A pass must be awaited to its end: one
    /// that is dropped may leave a claim without a sender, which a later pass closes as an unknown outcome.
    ///
    /// # Errors
    /// The store's. What was started before it ends by itself.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, Error> {
        let _single = self.passing.lock().await;
        self.hands.recover().await?;
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let mut next = None;
        while !stop.is_cancelled() {
            let (released, put_down) = (self.hands.parts.limiter.released(), self.hands.put_down.notified());
            tokio::pin!(released, put_down);
            // Listen before looking, so that a slot given back in between is not missed.
            released.as_mut().enable();
            put_down.as_mut().enable();
            let idle = self.hands.in_hand().is_empty();
            let filled = self.hands.fill(stop).await?;
            next = filled.next;
            if filled.moved {
                continue;
            }
            if idle {
                break;
            }
            tokio::select! {
                () = released => {}
                () = put_down => {}
                () = self.queued.notified() => {}
                () = reached(self.hands.clock(), next) => {}
                () = stop.cancelled() => {}
                () = &mut patience => break,
            }
        }
        Ok(Report { next, ..std::mem::take(&mut *self.hands.tally()) })
    }

    /// Waits until no call is under way, but no longer than one may take. For the shutdown, after the last pass: what
    /// is still under way then is found at the next start, with an unknown outcome.
    pub(crate) async fn drain(&self) {
        let patience = tokio::time::sleep(self.hands.parts.settings.timeout + Duration::from_secs(1));
        tokio::pin!(patience);
        loop {
            let put_down = self.hands.put_down.notified();
            tokio::pin!(put_down);
            put_down.as_mut().enable();
            if self.hands.in_hand().is_empty() {
                return;
            }
            tokio::select! {
                () = put_down => {}
                () = &mut patience => break,
            }
        }
        let left = self.hands.in_hand().len();
        tracing::warn!(messages = left, "messages were still being sent at the end; their outcome is unknown");
    }

    /// Whether Telegram accepts the token, as far as is known.
    pub(crate) fn is_authorized(&self) -> bool {
        self.hands.authorized.load(Ordering::Relaxed)
    }
}

impl Hands {
    fn clock(&self) -> &Clock {
        self.parts.db.clock()
    }

    /// Asks for slots, claims what got one, and starts the sends.
    async fn fill(self: &Arc<Self>, stop: &CancellationToken) -> Result<Filled, Error> {
        let (slots, next) = self.find_slots().await?;
        if slots.is_empty() || stop.is_cancelled() {
            return Ok(Filled { moved: false, next });
        }
        let ids: Vec<i64> = slots.iter().map(|(head, _)| head.id).collect();
        let addressee = Arc::clone(&self.parts.addressee);
        let lease = millis(self.parts.settings.timeout + LEASE_SLACK);
        let claim_all = move |tx: &Tx<'_>| {
            let lease = tx.now().saturating_add(lease);
            ids.iter().map(|&id| queue::claim(tx, addressee.as_ref(), id, lease)).collect::<Result<Vec<_>, Error>>()
        };
        let claims = self.parts.db.write(claim_all).await?;
        let mut moved = false;
        for (claimed, (_, slot)) in claims.into_iter().zip(slots) {
            match claimed {
                Claimed::Message(claim) => {
                    self.in_hand().insert((claim.id, claim.attempt.attempts));
                    tokio::spawn(Arc::clone(self).send(*claim, slot));
                }
                Claimed::Skipped { kind, code } => self.note_skipped(kind, code),
                // Somebody closed or moved it since it was read; its slot goes back.
                Claimed::Nothing => continue,
            }
            moved = true;
        }
        Ok(Filled { moved, next })
    }

    /// The messages that may go now, each with its slot, and the next instant at which another one may.
    async fn find_slots(&self) -> Result<(Vec<(Head, Slot)>, Option<UnixMs>), Error> {
        let mut slots = Vec::new();
        let mut next = self.look_ahead().await?;
        for lane in Lane::ALL {
            let mut after = None;
            loop {
                let page = move |tx: &Tx<'_>| Ok::<_, Error>(sql::due_heads(tx, lane, after, PAGE)?);
                let heads = self.parts.db.read(page).await?;
                let is_last = heads.len() < PAGE;
                after = heads.last().copied();
                for head in heads {
                    match self.parts.limiter.take(head.chat_id, lane) {
                        Ok(slot) => slots.push((head, slot)),
                        Err(NoSlot::Chat(at)) => next = earlier(next, at),
                        Err(NoSlot::Lane(at)) => return Ok((slots, earlier(next, at))),
                        // Whatever else becomes due before, it does not go before this.
                        Err(NoSlot::All(at)) => return Ok((slots, at)),
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok((slots, next))
    }

    /// When the next message becomes due that is not due yet. Shows the lanes' ages on the way.
    async fn look_ahead(&self) -> Result<Option<UnixMs>, Error> {
        let look = |tx: &Tx<'_>| {
            let mut next = None;
            for lane in Lane::ALL {
                next = earlier(next, sql::next_due(tx, lane)?);
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
        let pauses = match outcome {
            Outcome::Refused { class: Class::RateLimited { retry_after }, .. } => {
                self.parts.limiter.rate_limited(claim.message.chat_id, *retry_after)
            }
            Outcome::Refused { class: Class::Unauthorized, .. } => {
                if self.authorized.swap(false, Ordering::Relaxed) {
                    tracing::error!(
                        "Telegram does not accept the bot's token; sending waits, and is tried once a minute"
                    );
                }
                vec![self.parts.limiter.hold_all(UNAUTHORIZED_WAIT)]
            }
            Outcome::Refused { class: Class::Later, .. } | Outcome::Unknown { .. } => Vec::new(),
            Outcome::Delivered { .. } | Outcome::Refused { .. } => {
                self.authorized.store(true, Ordering::Relaxed);
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

    async fn recover(&self) -> Result<(), Error> {
        let in_hand = self.in_hand().clone();
        let addressee = Arc::clone(&self.parts.addressee);
        let found = self.parts.db.read(|tx: &Tx<'_>| Ok::<_, Error>(!sql::void_sends(tx)?.is_empty())).await?;
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

    fn in_hand(&self) -> MutexGuard<'_, HashSet<(i64, i64)>> {
        self.in_hand.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn tally(&self) -> MutexGuard<'_, Report> {
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

fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    [one, other].into_iter().flatten().min()
}

async fn reached(clock: &Clock, at: Option<UnixMs>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

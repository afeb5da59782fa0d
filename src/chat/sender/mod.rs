//! The sender: one pass sends what may go now, many chats at a time and each chat one by one.
//!
//! A send runs as a task of its own, so that a call that hangs holds up neither the pass nor another chat. The pass
//! only asks for slots, claims and starts; each task records its own outcome.

mod hands;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::hands::{Hands, View, earlier};
use super::limiter::Limiter;
use super::outcome::Messenger;
use super::verdict::Verdict;
use super::{Access, Addressee, Error, QUEUED};
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::Db;

/// How long a pass waits for its calls before it reports and leaves the slow ones to themselves. Real time, as the
/// calls are; longer than a healthy call, shorter than one that times out.
const PATIENCE: Duration = Duration::from_secs(5);

/// When to look again for what waits for a slot in use, should the slot's owner be somebody else and wake nobody.
const HELD_MS: i64 = 1_000;

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
    /// What is known of the token.
    pub(crate) access: Arc<Access>,
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

impl Report {
    /// Whether nothing happened.
    #[cfg(test)]
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
        let queued = parts.db.subscribe(QUEUED);
        let hands = Arc::new(Hands::new(parts));
        hands.restore_pauses().await?;
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
        let mut view = View::default();
        while !stop.is_cancelled() {
            let (released, put_down) = (self.hands.parts.limiter.released(), self.hands.put_down.notified());
            tokio::pin!(released, put_down);
            // Listen before looking, so that a slot given back in between is not missed.
            released.as_mut().enable();
            put_down.as_mut().enable();
            let idle = self.hands.in_hand().is_empty();
            let filled = self.hands.fill(stop).await?;
            view = filled.view;
            if filled.moved {
                continue;
            }
            if idle && !view.held {
                break;
            }
            tokio::select! {
                () = released => {}
                () = put_down => {}
                () = self.queued.notified() => {}
                () = reached(self.hands.clock(), view.next) => {}
                () = stop.cancelled() => {}
                () = &mut patience => break,
            }
        }
        let soon = view.held.then(|| self.hands.clock().now().saturating_add(HELD_MS));
        let next = earlier(view.next, soon);
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
}

async fn reached(clock: &Clock, at: Option<UnixMs>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

//! The worker of deliveries: one pass sends what may go now, to many endpoints at a time.
//!
//! **What.** [`Deliverer::run_once`] is a pass: it takes slots, claims for them in one transaction, and starts each attempt as
//! a task of its own, which signs, sends, and records its own result. An attempt that hangs holds up neither the pass nor
//! another endpoint.
//!
//! **States.** Of a delivery: `delivery/`. In memory: what is in hand, and the gate's slots and rates (`gate/`).
//!
//! **Guarantees.**
//! - An endpoint that hangs or fails delays no other: `src/webhooks/deliver/tests/isolation.rs::nine_endpoints_that_hang_do_not_delay_a_good_one`.
//! - However many hang, a quarter of the slots is for those that have answered:
//!   `src/webhooks/deliver/tests/isolation.rs::fifty_endpoints_that_hang_leave_slots_to_one_that_has_answered`.
//! - A result that cannot be written keeps no other from it:
//!   `src/webhooks/deliver/tests/faults.rs::a_result_that_cannot_be_written_keeps_no_other_from_it`.
//! - Nothing is claimed before it has its slot, and never more than an endpoint's share:
//!   `src/webhooks/deliver/tests/isolation.rs::an_endpoint_never_has_more_than_its_share_under_way`.
//! - The schedule: `src/webhooks/deliver/tests/schedule.rs::the_whole_schedule_is_kept_to_and_then_it_has_failed`.
//! - An endpoint that is paused, held, gone or over its rate gets nothing until it may:
//!   `src/webhooks/deliver/tests/restraint.rs::a_receiver_that_asks_for_a_pause_is_left_alone_for_it`,
//!   `src/webhooks/deliver/tests/restraint.rs::after_a_410_nothing_more_is_sent`.
//! - What is in hand is not taken up, whatever the clock says:
//!   `src/webhooks/deliver/tests/faults.rs::what_is_in_hand_is_not_taken_up_whatever_the_clock_says`.
//! - A row that cannot be taken up keeps no other from it:
//!   `src/webhooks/deliver/tests/faults.rs::a_row_that_cannot_be_taken_up_keeps_no_other_from_it_and_is_tried_again_later`.
//! - A panic in an attempt costs that attempt: `src/webhooks/deliver/tests/faults.rs::a_panic_in_one_attempt_costs_that_attempt_only`.
//! - An endpoint for which nothing can be signed waits, and loses no attempt:
//!   `src/webhooks/deliver/tests/faults.rs::an_endpoint_whose_secret_does_not_open_waits_and_holds_up_nobody`.
//!
//! **Windows.** Endpoints of one tenant, or of the only one, that have answered often and all begin to hang at once hold
//! what they had until it times out, and can do so again; what they cannot take is the others' quarter
//! (`src/webhooks/deliver/gate/tests.rs::a_tenant_leaves_a_quarter_to_the_others_if_there_are_any`). The process ends between claim and result: whether the receiver has the event is unknown. The attempt is
//! journaled as interrupted and made again
//! (`src/webhooks/deliver/tests/faults.rs::what_was_under_way_when_the_process_ended_is_sent_again`).
//!
//! **Not here.** What follows from a result (`delivery/`), what may be dialled (`egress/`), HTTP (`transport/`).

mod attempt;
mod gate;
mod hands;
pub(in crate::webhooks) mod ready;
mod recover;
mod results;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::gate::Turn;
use self::hands::Hands;
use super::DELIVERIES;
use super::delivery::{Policy, Settled};
use super::transport::Transport;
use super::vault::Vault;
use crate::kernel::clock::{Clock, UnixMs};
use crate::kernel::store::{Db, StoreError};

/// How long a pass goes on before it reports, leaving slow attempts to themselves. Real time, as the requests are;
/// longer than a healthy one, shorter than one that times out.
const PATIENCE: Duration = Duration::from_secs(5);

/// When to look again for what waits for a slot, should nobody say that there is one.
const HELD_MS: i64 = 1_000;

/// How the worker behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliverSettings {
    /// Attempts under way at the same time.
    pub(crate) max_in_flight: usize,
    /// Of those, to one endpoint.
    pub(crate) per_endpoint: usize,
    /// What follows from failures.
    pub(crate) policy: Policy,
}

/// What the worker is made of.
pub(crate) struct DelivererParts {
    /// The store.
    pub(crate) db: Db,
    /// Who sends.
    pub(crate) transport: Transport,
    /// Who opens the secrets.
    pub(crate) vault: Vault,
    /// How it behaves.
    pub(crate) settings: DeliverSettings,
}

/// What a pass did; also counts attempts that an earlier pass started and that ended since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The endpoint has it.
    pub(crate) delivered: u64,
    /// To be tried again.
    pub(crate) again: u64,
    /// Not tried again by itself.
    pub(crate) failed: u64,
    /// Attempts that a person asked for, which changed nothing.
    pub(crate) returned: u64,
    /// Attempts that were taken up by somebody else before they ended.
    pub(crate) overtaken: u64,
    /// Attempts of an earlier process that were taken up.
    pub(crate) interrupted: u64,
    /// When the next one may go, as far as is known; the wake [`DELIVERIES`] may come before.
    pub(crate) next: Option<UnixMs>,
}

/// The one worker of a process.
pub(crate) struct Deliverer {
    hands: Arc<Hands>,
    waiting: Arc<Notify>,
    passing: tokio::sync::Mutex<()>,
}

impl Report {
    /// Whether nothing happened.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        Self { next: None, ..self.clone() } == Self::default()
    }

    fn count(&mut self, settled: &Settled) {
        match settled {
            Settled::Delivered => self.delivered += 1,
            Settled::Again(_) => self.again += 1,
            Settled::Failed => self.failed += 1,
            Settled::Returned(_) => self.returned += 1,
            Settled::Fenced => self.overtaken += 1,
        }
    }
}

impl Deliverer {
    /// A worker made of these parts. What was under way when an earlier process ended is taken up by its first pass.
    pub(crate) fn open(parts: DelivererParts) -> Self {
        let waiting = parts.db.subscribe(DELIVERIES);
        Self { hands: Arc::new(Hands::new(parts)), waiting, passing: tokio::sync::Mutex::new(()) }
    }

    /// Sends what may go now and what becomes due meanwhile, until nothing of that is left, `stop` is cancelled, or a few
    /// seconds have passed; attempts that still hang then go on by themselves. A pass must be awaited to its end: one that
    /// is dropped may leave a claim that nobody sends until its lease is over.
    ///
    /// # Errors
    /// The store's. What was started before it ends by itself.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let _single = self.passing.lock().await;
        self.hands.is_starved.store(false, Ordering::Release);
        self.hands.recover().await?;
        let end = Instant::now() + PATIENCE;
        let mut turn = Turn::default();
        let (mut is_cut, mut seen) = (false, None);
        while !stop.is_cancelled() {
            let put_down = self.hands.put_down.notified();
            tokio::pin!(put_down);
            // Listen before looking, so that a slot given back in between is not missed.
            put_down.as_mut().enable();
            let idle = self.hands.in_hand().is_empty();
            let filled = self.hands.fill(seen.take(), stop).await?;
            (turn, seen) = (filled.turn, filled.seen);
            let is_over = Instant::now() >= end;
            if is_over || !filled.moved && idle && !turn.is_held {
                is_cut = filled.moved;
                break;
            }
            if filled.moved {
                if turn.is_full {
                    self.hands.room().await;
                }
                continue;
            }
            tokio::select! {
                () = put_down => {}
                () = self.waiting.notified() => {}
                () = reached(self.hands.clock(), turn.next) => {}
                () = stop.cancelled() => {}
                () = tokio::time::sleep_until(end.into()) => {}
            }
        }
        // From here on whoever gives a slot back says so.
        self.hands.is_starved.store(turn.is_held, Ordering::Release);
        let now = self.hands.clock().now();
        let soon = turn.is_held.then(|| now.saturating_add(HELD_MS));
        let at_once = is_cut.then_some(now);
        let next = [turn.next, soon, at_once].into_iter().flatten().min();
        Ok(Report { next, ..std::mem::take(&mut *self.hands.tally()) })
    }

    /// Waits until no attempt is under way, but no longer than one may take. For the shutdown, after the last pass: what
    /// is still under way then is taken up at the next start.
    pub(crate) async fn drain(&self) {
        let patience = tokio::time::sleep(self.hands.parts.transport.timeout() + Duration::from_secs(1));
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
        tracing::warn!(deliveries = left, "webhooks were still being sent at the end; they are sent again");
    }
}

async fn reached(clock: &Clock, at: Option<UnixMs>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

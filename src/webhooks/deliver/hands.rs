//! What a pass and its attempts share: looking for what may go, claiming it, and starting it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::gate::{Gate, Turn};
use super::ready::{Ready, Shelf};
use super::recover::Stuck;
use super::results::Results;
use super::{DelivererParts, Report};
use crate::kernel::clock::Clock;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::delivery::{Claim, Pick, Tenants, Waiting, claim, tenants, waiting};
use crate::webhooks::vault::VaultError;

/// How long an endpoint is left alone of which nothing could be claimed: a person has to mend the key's file, or the row.
pub(super) const ASIDE_MS: i64 = 60_000;

/// An answer is slow that takes this part of the time-out: three seconds with the usual one.
const SLOW_SHARE: u32 = 5;

/// The longest that a free slot or a result waits for others, in real time: little beside a request over a network.
const BREATH: Duration = Duration::from_millis(1);

/// How long what was seen to wait is gone by while there is more of it than slots, in real time. It saves the look, and
/// with it the claim is made while the results that gave the slots back are written: in the same commit.
const FRESH: Duration = Duration::from_millis(5);

/// Attempts whose result is not in the file yet hold no slot, so that the disk and the network work at the same time.
/// With so many per slot the disk is behind, and nothing more is begun.
const UNSETTLED_PER_SLOT: usize = 4;

/// What the tasks share.
pub(super) struct Hands {
    pub(super) parts: DelivererParts,
    lease_ms: i64,
    gate: Mutex<Gate>,
    shelf: Shelf,
    /// Deliveries (rows) that a task of this process has: whatever the clock says, nobody takes them up.
    in_hand: Mutex<HashSet<i64>>,
    /// Deliveries that could not be taken up.
    pub(super) stuck: Stuck,
    /// Attempts that have ended and are not written down yet.
    pub(super) results: Results,
    /// A slot was given back, or a delivery put down.
    pub(super) put_down: Notify,
    /// So many slots are free that a claim is worth its while.
    pub(super) roomy: Notify,
    /// Something waits for a slot, and no pass does.
    pub(super) is_starved: AtomicBool,
    tally: Mutex<Report>,
}

/// What one turn led to.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Something was claimed or put aside: a turn after it may find more.
    pub(super) moved: bool,
    /// What stands in the way of what did not go.
    pub(super) turn: Turn,
    /// What was seen, if there is more of it than there were slots.
    pub(super) seen: Option<Seen>,
}

/// What waits, as a look at the file found it. Claiming asks again, so what has changed since costs a turn at most.
#[derive(Debug)]
pub(super) struct Seen {
    waiting: Vec<Waiting>,
    tenants: Tenants,
    at: Instant,
}

/// A delivery and what sending it takes.
pub(super) type Taken = (Claim, Arc<Ready>);

/// Why nothing was claimed.
#[derive(Debug, thiserror::Error)]
enum NotClaimed {
    #[error("nothing can be signed for an endpoint")]
    NoKeys { endpoint: i64, endpoint_id: String, source: VaultError },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hands {
    pub(super) fn new(parts: DelivererParts) -> Self {
        let settings = &parts.settings;
        let slow_after = parts.transport.timeout() / SLOW_SHARE;
        let timeout_ms = i64::try_from(parts.transport.timeout().as_millis()).unwrap_or(i64::MAX);
        Self {
            // What is under way is in hand; the lease is for others, who know of no hand.
            lease_ms: timeout_ms.saturating_mul(2),
            gate: Mutex::new(Gate::new(settings.max_in_flight, settings.per_endpoint, slow_after)),
            parts,
            shelf: Shelf::default(),
            in_hand: Mutex::default(),
            stuck: Stuck::default(),
            results: Results::default(),
            put_down: Notify::new(),
            roomy: Notify::new(),
            is_starved: AtomicBool::new(false),
            tally: Mutex::default(),
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        self.parts.db.clock()
    }

    /// Takes slots, claims for them, and starts the attempts. What was seen in the turn before need not be looked for.
    pub(super) async fn fill(
        self: &Arc<Self>,
        seen: Option<Seen>,
        stop: &CancellationToken,
    ) -> Result<Filled, StoreError> {
        if self.in_hand().len() >= self.parts.settings.max_in_flight.saturating_mul(UNSETTLED_PER_SLOT) {
            return Ok(Filled { turn: Turn { is_held: true, ..Turn::default() }, ..Filled::default() });
        }
        let seen = match seen.filter(|seen| seen.at.elapsed() < FRESH) {
            Some(seen) => seen,
            None => {
                let look = |tx: &Tx<'_>| Ok::<_, StoreError>((waiting(tx)?, tenants(tx)?));
                let (waiting, tenants) = self.parts.db.read(look).await?;
                Seen { waiting, tenants, at: Instant::now() }
            }
        };
        let found = &seen.waiting;
        let now = self.clock().now();
        let mut turn = {
            let mut gate = self.gate();
            gate.tidy(now, ASIDE_MS);
            gate.turn(found, seen.tenants, now)
        };
        if turn.picks.is_empty() || stop.is_cancelled() {
            return Ok(Filled { turn, ..Filled::default() });
        }
        let (mut moved, wanted, mut started) = (false, turn.wanted(), 0);
        let mut groups = vec![std::mem::take(&mut turn.picks)];
        while let Some(group) = groups.pop() {
            match self.claim(&group).await {
                Ok(taken) => {
                    moved |= !taken.is_empty();
                    started += taken.len();
                    taken.into_iter().for_each(|taken| self.start(taken, found));
                }
                Err(NotClaimed::NoKeys { endpoint, endpoint_id, source }) => {
                    tracing::error!(endpoint.id = endpoint_id, error = %source, "an endpoint waits: nothing can be signed for it");
                    self.gate().put_aside(endpoint, self.clock().now().saturating_add(ASIDE_MS));
                    moved = true;
                }
                Err(NotClaimed::Store(error)) if error.is_store_fault() => return Err(error),
                Err(NotClaimed::Store(error)) => match group.as_slice() {
                    [only] => {
                        tracing::error!(%error, "a delivery could not be claimed; its endpoint waits");
                        self.gate().put_aside(only.endpoint, self.clock().now().saturating_add(ASIDE_MS));
                        moved = true;
                    }
                    // One row that cannot be changed keeps no other endpoint from its turn.
                    several => groups.extend(several.iter().map(|pick| vec![*pick])),
                },
            }
        }
        let seen = (turn.is_held && started == wanted).then_some(seen);
        Ok(Filled { moved, turn, seen })
    }

    /// Claims what was picked, if all of it can be sent.
    async fn claim(self: &Arc<Self>, picks: &[Pick]) -> Result<Vec<Taken>, NotClaimed> {
        let (hands, picks) = (Arc::clone(self), picks.to_vec());
        let claim_all = move |tx: &Tx<'_>| {
            let claims = claim(tx, &picks, hands.lease_ms)?;
            claims.into_iter().map(|claim| hands.ready(claim)).collect::<Result<Vec<_>, NotClaimed>>()
        };
        // Sending what is queued is finishing: it goes on when the disk is low.
        self.parts.db.settle(claim_all).await
    }

    fn ready(&self, claim: Claim) -> Result<Taken, NotClaimed> {
        let destination = &claim.destination;
        match self.shelf.find(destination, self.parts.transport.egress(), &self.parts.vault) {
            Ok(ready) => Ok((claim, ready)),
            Err(source) => {
                let endpoint_id = destination.endpoint_id.clone();
                Err(NotClaimed::NoKeys { endpoint: destination.endpoint, endpoint_id, source })
            }
        }
    }

    /// Waits for slots after a turn in which not everything got one, but not for long: a look and a claim cost nearly as
    /// much for one delivery as for many.
    pub(super) async fn room(&self) {
        let roomy = self.roomy.notified();
        tokio::pin!(roomy);
        roomy.as_mut().enable();
        if !self.gate().is_roomy() {
            // Whether the time is over or not is the same to us.
            let _ = tokio::time::timeout(BREATH, roomy).await;
        }
    }

    fn start(self: &Arc<Self>, taken: Taken, found: &[Waiting]) {
        let (delivery, endpoint) = (taken.0.delivery, taken.0.destination.endpoint);
        // The list is in the order of its endpoints, and what was claimed was picked from it.
        if let Ok(at) = found.binary_search_by_key(&endpoint, |waiting| waiting.endpoint) {
            self.gate().began(&found[at], 1, taken.0.started_at);
        }
        self.in_hand().insert(delivery);
        tokio::spawn(Arc::clone(self).attempt(taken));
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn in_hand(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Report> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn starves(&self) -> bool {
        self.is_starved.load(Ordering::Acquire)
    }
}

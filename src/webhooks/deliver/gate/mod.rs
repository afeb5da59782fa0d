//! How many attempts may be under way, in all and to each endpoint, and whose turn it is. In memory: a process that ends
//! has none under way. Pure, so that every rule has its test; the worker holds it behind a lock.

mod shares;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use self::shares::{Free, Pace};
use crate::kernel::clock::UnixMs;
use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::{Pick, Tenants, Waiting};

/// The time in which an endpoint with a rate is begun with at most so often.
const SECOND_MS: i64 = 1000;

/// Slots that an endpoint is given at a time. Looking an endpoint up and claiming one of its deliveries costs nearly as
/// much as claiming several.
const AT_A_TIME: usize = 4;

/// Endpoints without anything under way whose pace is remembered.
const REMEMBERED: usize = 4096;

/// Prompt answers in a row after which an endpoint is known to answer promptly.
const PROVEN: usize = 8;

/// The gate of a process.
#[derive(Debug)]
pub(super) struct Gate {
    most: usize,
    most_of_one: usize,
    /// An answer that takes so long is slow.
    slow_after: Duration,
    under_way: usize,
    lanes: HashMap<i64, Lane>,
    /// The endpoint that was served last: the next round begins after it.
    served: i64,
}

/// What the gate knows of an endpoint.
#[derive(Debug, Default)]
struct Lane {
    tenant: Option<TenantId>,
    /// The last answer was slow.
    is_slow: bool,
    /// Prompt answers in a row, the last ones; no more than [`PROVEN`] are counted.
    prompt: usize,
    under_way: usize,
    /// Answers that close it, and are being written down.
    closing: usize,
    /// Nothing is claimed of it until then: it could not be.
    aside_until: Option<UnixMs>,
    /// When the last attempts were begun, if its rate is limited; as many as its rate.
    begun: VecDeque<UnixMs>,
}

/// What may be claimed now, and what stands in the way of the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) picks: Vec<Pick>,
    /// The next instant at which something may go that may not now.
    pub(super) next: Option<UnixMs>,
    /// Something may go once an attempt has ended.
    pub(super) is_held: bool,
    /// There was no slot left for it.
    pub(super) is_full: bool,
}

impl Turn {
    /// How many may be claimed in all.
    pub(super) fn wanted(&self) -> usize {
        self.picks.iter().map(|pick| pick.most).sum()
    }

    fn wait_for(&mut self, at: UnixMs) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// What one endpoint may have in this turn.
struct Share<'a> {
    of: &'a Waiting,
    pace: Pace,
    left: usize,
    given: usize,
}

impl Gate {
    pub(super) fn new(most: usize, most_of_one: usize, slow_after: Duration) -> Self {
        Self { most, most_of_one, slow_after, under_way: 0, lanes: HashMap::new(), served: 0 }
    }

    /// Shares the free slots out: a few to each endpoint that is due, again and again, beginning after the one that was
    /// served last. So what an endpoint has waiting, and how long it takes, is nobody else's delay.
    pub(super) fn turn(&mut self, waiting: &[Waiting], tenants: Tenants, now: UnixMs) -> Turn {
        let mut turn = Turn::default();
        let mut shares: Vec<Share<'_>> = Vec::new();
        for of in waiting {
            let pace = self.pace(of);
            if let Some(left) = self.allowance(of, pace, now, &mut turn) {
                shares.push(Share { of, pace, left, given: 0 });
            }
        }
        shares.sort_unstable_by_key(|share| share.of.endpoint);
        let first = shares.partition_point(|share| share.of.endpoint <= self.served);
        shares.rotate_left(first);
        let mut free = self.free(tenants);
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for share in shares.iter_mut().filter(|share| share.left > 0) {
                let step = AT_A_TIME.min(share.left).min(free.of(share.pace, &share.of.tenant));
                if step == 0 {
                    turn.is_held = true;
                    turn.is_full |= free.is_none();
                    continue;
                }
                free.take(share.pace, &share.of.tenant, step);
                (share.left, share.given) = (share.left - step, share.given + step);
                self.served = share.of.endpoint;
                is_moving = true;
            }
        }
        let given = shares.iter().filter(|share| share.given > 0);
        turn.picks = given.map(|share| Pick { endpoint: share.of.endpoint, most: share.given }).collect();
        turn
    }

    fn free(&self, tenants: Tenants) -> Free {
        let mut free = Free::new(self.most, tenants);
        for lane in self.lanes.values().filter(|lane| lane.under_way > 0) {
            if let Some(tenant) = &lane.tenant {
                free.take(lane.pace(), tenant, lane.under_way);
            }
        }
        free
    }

    /// Of one that nothing is known of since the start, what the file says is believed.
    fn pace(&self, waiting: &Waiting) -> Pace {
        match self.lanes.get(&waiting.endpoint).filter(|lane| lane.is_known()) {
            Some(lane) => lane.pace(),
            None if waiting.is_failing => Pace::Slow,
            None => Pace::New { prompt: 0 },
        }
    }

    /// How many of an endpoint may be begun now, beside those under way; none, and what it waits for, if that is none.
    fn allowance(&mut self, waiting: &Waiting, pace: Pace, now: UnixMs, turn: &mut Turn) -> Option<usize> {
        let most = pace.slots(self.most_of_one);
        if waiting.due_at > now {
            turn.wait_for(waiting.due_at);
            return None;
        }
        let Some(lane) = self.lanes.get_mut(&waiting.endpoint) else {
            return Some(waiting.rate_per_second.map_or(most, |rate| most.min(rate_of(rate))));
        };
        if let Some(until) = lane.aside_until.filter(|until| *until > now) {
            turn.wait_for(until);
            return None;
        }
        if lane.closing > 0 || lane.under_way >= most {
            turn.is_held = true;
            return None;
        }
        let free = most - lane.under_way;
        match waiting.rate_per_second.map(|rate| lane.room(rate_of(rate), now)) {
            None => Some(free),
            Some(Ok(room)) => Some(free.min(room)),
            Some(Err(at)) => {
                turn.wait_for(at);
                None
            }
        }
    }

    /// So many attempts at an endpoint have been begun. `waiting` is the endpoint as it was looked at.
    pub(super) fn began(&mut self, waiting: &Waiting, attempts: usize, now: UnixMs) {
        let pace = self.pace(waiting);
        self.under_way += attempts;
        let lane = self.lanes.entry(waiting.endpoint).or_default();
        lane.tenant.get_or_insert_with(|| waiting.tenant.clone());
        lane.is_slow = pace == Pace::Slow;
        lane.under_way += attempts;
        let rate = waiting.rate_per_second.map_or(0, rate_of);
        lane.begun.extend(std::iter::repeat_n(now, attempts.min(rate)));
        while lane.begun.len() > rate {
            lane.begun.pop_front();
        }
    }

    /// Whether so many slots are free that a claim is worth its while.
    pub(super) fn is_roomy(&self) -> bool {
        self.most.saturating_sub(self.under_way) >= self.most.div_ceil(4)
    }

    /// An attempt has ended that took so long, in real time; none if it says nothing of the endpoint.
    pub(super) fn ended(&mut self, endpoint: i64, took: Option<Duration>) {
        let is_slow = took.map(|took| took >= self.slow_after);
        self.under_way = self.under_way.saturating_sub(1);
        self.change(endpoint, |lane| {
            lane.under_way = lane.under_way.saturating_sub(1);
            match is_slow {
                Some(true) => (lane.is_slow, lane.prompt) = (true, 0),
                Some(false) => (lane.is_slow, lane.prompt) = (false, PROVEN.min(lane.prompt + 1)),
                None => {}
            }
        });
    }

    /// Nothing is claimed of an endpoint until then.
    pub(super) fn put_aside(&mut self, endpoint: i64, until: UnixMs) {
        self.lanes.entry(endpoint).or_default().aside_until = Some(until);
    }

    /// An answer closes the endpoint, or has it left alone: nothing is claimed of it until that is in the file.
    pub(super) fn close(&mut self, endpoint: i64) {
        self.lanes.entry(endpoint).or_default().closing += 1;
    }

    /// It is in the file.
    pub(super) fn closed(&mut self, endpoint: i64) {
        self.change(endpoint, |lane| lane.closing = lane.closing.saturating_sub(1));
    }

    /// Forgets what has no bearing any more. `longest_ms` is the longest that an endpoint is put aside: one that would
    /// be for longer was put there under another clock.
    pub(super) fn tidy(&mut self, now: UnixMs, longest_ms: i64) {
        let is_over = |until: UnixMs| until <= now || until > now.saturating_add(longest_ms);
        let remembers = self.lanes.len() <= REMEMBERED;
        self.lanes.retain(|_, lane| {
            lane.aside_until = lane.aside_until.filter(|until| !is_over(*until));
            lane.begun.retain(|at| is_recent(*at, now));
            (remembers && lane.is_known()) || lane.is_busy() || lane.aside_until.is_some() || !lane.begun.is_empty()
        });
    }

    #[cfg(test)]
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    fn change(&mut self, endpoint: i64, change: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            change(lane);
        }
    }
}

impl Lane {
    fn pace(&self) -> Pace {
        match self.prompt {
            _ if self.is_slow => Pace::Slow,
            PROVEN.. => Pace::Prompt,
            prompt => Pace::New { prompt },
        }
    }

    fn is_known(&self) -> bool {
        self.is_slow || self.prompt > 0
    }

    fn is_busy(&self) -> bool {
        self.under_way > 0 || self.closing > 0
    }

    /// How many more may be begun within this second, or when the next one may.
    fn room(&mut self, rate: usize, now: UnixMs) -> Result<usize, UnixMs> {
        // Also those that a clock which was set back since has put into the future.
        self.begun.retain(|at| is_recent(*at, now));
        match rate.checked_sub(self.begun.len()).filter(|room| *room > 0) {
            Some(room) => Ok(room),
            // With a rate that was lowered, more than one must be a second old.
            None => Err(self.begun.get(self.begun.len() - rate).map_or(now, |at| at.saturating_add(SECOND_MS))),
        }
    }
}

fn is_recent(at: UnixMs, now: UnixMs) -> bool {
    (0..SECOND_MS).contains(&now.saturating_sub(at))
}

fn rate_of(rate_per_second: i64) -> usize {
    usize::try_from(rate_per_second).unwrap_or_default().max(1)
}

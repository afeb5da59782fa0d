//! How many attempts may be under way, in all and to each endpoint, and whose turn it is. In memory: a process that ends
//! has none under way. Pure, so that every rule has its test; the worker holds it behind a lock.

use std::collections::{HashMap, VecDeque};

use crate::kernel::clock::UnixMs;
use crate::webhooks::delivery::{Pick, Waiting};

/// The time in which an endpoint with a rate is begun with at most so often.
const SECOND_MS: i64 = 1000;

/// Slots that an endpoint is given at a time. Looking an endpoint up and claiming one of its deliveries costs nearly as
/// much as claiming several.
const AT_A_TIME: usize = 4;

/// The gate of a process.
#[derive(Debug)]
pub(super) struct Gate {
    most: usize,
    most_of_one: usize,
    under_way: usize,
    lanes: HashMap<i64, Lane>,
    /// The endpoint that was served last: the next round begins after it.
    served: i64,
}

/// What the gate knows of an endpoint.
#[derive(Debug, Default)]
struct Lane {
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
struct Share {
    endpoint: i64,
    left: usize,
    given: usize,
}

impl Gate {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most, most_of_one, under_way: 0, lanes: HashMap::new(), served: 0 }
    }

    /// Shares the free slots out: a few to each endpoint that is due, again and again, beginning after the one that was
    /// served last. So what an endpoint has waiting, and how long it takes, is nobody else's delay.
    pub(super) fn turn(&mut self, waiting: &[Waiting], now: UnixMs) -> Turn {
        let mut turn = Turn::default();
        let mut shares: Vec<Share> = Vec::new();
        for endpoint in waiting {
            if let Some(left) = self.allowance(endpoint, now, &mut turn) {
                shares.push(Share { endpoint: endpoint.endpoint, left, given: 0 });
            }
        }
        shares.sort_unstable_by_key(|share| share.endpoint);
        let first = shares.partition_point(|share| share.endpoint <= self.served);
        shares.rotate_left(first);
        let mut free = self.most.saturating_sub(self.under_way);
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for share in shares.iter_mut().filter(|share| share.left > 0) {
                if free == 0 {
                    turn.is_held = true;
                    break;
                }
                let step = AT_A_TIME.min(share.left).min(free);
                (free, share.left, share.given) = (free - step, share.left - step, share.given + step);
                self.served = share.endpoint;
                is_moving = true;
            }
        }
        let given = shares.iter().filter(|share| share.given > 0);
        turn.picks = given.map(|share| Pick { endpoint: share.endpoint, most: share.given }).collect();
        turn
    }

    /// How many of an endpoint may be begun now, beside those under way; none, and what it waits for, if that is none.
    fn allowance(&mut self, waiting: &Waiting, now: UnixMs, turn: &mut Turn) -> Option<usize> {
        let most = self.most_of_one;
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

    /// So many attempts at an endpoint have been begun. `rate_per_second` is what the endpoint had when it was looked at.
    pub(super) fn began(&mut self, endpoint: i64, attempts: usize, rate_per_second: Option<i64>, now: UnixMs) {
        self.under_way += attempts;
        let lane = self.lanes.entry(endpoint).or_default();
        lane.under_way += attempts;
        let rate = rate_per_second.map_or(0, rate_of);
        lane.begun.extend(std::iter::repeat_n(now, attempts.min(rate)));
        while lane.begun.len() > rate {
            lane.begun.pop_front();
        }
    }

    /// Whether so many slots are free that a claim is worth its while.
    pub(super) fn is_roomy(&self) -> bool {
        self.most.saturating_sub(self.under_way) >= self.most.div_ceil(4)
    }

    /// An attempt has ended.
    pub(super) fn ended(&mut self, endpoint: i64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.change(endpoint, |lane| lane.under_way = lane.under_way.saturating_sub(1));
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
        self.lanes.retain(|_, lane| {
            lane.aside_until = lane.aside_until.filter(|until| !is_over(*until));
            lane.begun.retain(|at| is_recent(*at, now));
            lane.is_busy() || lane.aside_until.is_some() || !lane.begun.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = 1_700_000_000_000;

    fn due(endpoint: i64) -> Waiting {
        Waiting { endpoint, due_at: NOW, rate_per_second: None }
    }

    fn limited(endpoint: i64, rate: i64) -> Waiting {
        Waiting { rate_per_second: Some(rate), ..due(endpoint) }
    }

    fn picked(turn: &Turn) -> Vec<(i64, usize)> {
        let mut picked: Vec<_> = turn.picks.iter().map(|pick| (pick.endpoint, pick.most)).collect();
        picked.sort_unstable();
        picked
    }

    /// A turn whose picks are all begun.
    fn begin(gate: &mut Gate, waiting: &[Waiting], now: UnixMs) -> Turn {
        let turn = gate.turn(waiting, now);
        for pick in &turn.picks {
            let rate = waiting.iter().find(|one| one.endpoint == pick.endpoint).unwrap().rate_per_second;
            gate.began(pick.endpoint, pick.most, rate, now);
        }
        turn
    }

    #[test]
    fn one_endpoint_has_its_share_and_no_more() {
        let mut gate = Gate::new(64, 4);
        assert_eq!(picked(&begin(&mut gate, &[due(1)], NOW)), [(1, 4)]);
        let turn = begin(&mut gate, &[due(1)], NOW);
        assert_eq!((picked(&turn), turn.is_held), (vec![], true));
        gate.ended(1);
        assert_eq!(picked(&begin(&mut gate, &[due(1), due(2)], NOW)), [(1, 1), (2, 4)]);
        assert_eq!(gate.under_way(), 8);
    }

    #[test]
    fn free_slots_are_shared_out_a_few_at_a_time_and_the_round_goes_on_where_it_ended() {
        let mut gate = Gate::new(22, 8);
        let all: Vec<Waiting> = (1..=5).map(due).collect();
        let turn = begin(&mut gate, &all, NOW);
        assert_eq!(picked(&turn), [(1, 6), (2, 4), (3, 4), (4, 4), (5, 4)]);
        assert!(turn.is_held, "some have to wait for a slot");
        (0..4).for_each(|_| gate.ended(1));
        gate.ended(5);
        assert_eq!(picked(&begin(&mut gate, &all, NOW)), [(2, 4), (3, 1)]);
        gate.ended(2);
        assert_eq!(picked(&begin(&mut gate, &all, NOW)), [(4, 1)], "in its turn, whoever gave the slot back");
    }

    #[test]
    fn nothing_is_picked_beyond_what_is_free() {
        let mut gate = Gate::new(3, 2);
        let all: Vec<Waiting> = (1..=3).map(due).collect();
        begin(&mut gate, &all, NOW);
        let turn = gate.turn(&all, NOW);
        assert_eq!((picked(&turn), turn.is_held, turn.next), (vec![], true, None));
    }

    #[test]
    fn what_is_not_due_is_waited_for() {
        let mut gate = Gate::new(8, 4);
        let later = |endpoint, ms| Waiting { due_at: NOW + ms, ..due(endpoint) };
        let turn = gate.turn(&[later(1, 500), later(2, 300), due(3)], NOW);
        assert_eq!((picked(&turn), turn.is_held, turn.next), (vec![(3, 4)], false, Some(NOW + 300)));
    }

    #[test]
    fn a_rate_is_never_exceeded_within_any_second() {
        let mut gate = Gate::new(64, 64);
        let endpoint = [limited(1, 3)];
        let mut begun = Vec::new();
        for now in (NOW..NOW + 5000).step_by(70) {
            let turn = begin(&mut gate, &endpoint, now);
            begun.extend(turn.picks.iter().flat_map(|pick| vec![now; pick.most]));
            (0..turn.picks.iter().map(|pick| pick.most).sum()).for_each(|_| gate.ended(1));
        }
        assert!((13..=15).contains(&begun.len()), "{}", begun.len());
        for four in begun.windows(4) {
            assert!(four[3] - four[0] >= SECOND_MS, "{four:?}");
        }
    }

    #[test]
    fn the_next_of_a_limited_endpoint_has_its_instant() {
        let mut gate = Gate::new(64, 4);
        assert_eq!(picked(&begin(&mut gate, &[limited(1, 2)], NOW)), [(1, 2)]);
        let turn = gate.turn(&[limited(1, 2), due(2)], NOW + 400);
        assert_eq!((picked(&turn), turn.next, turn.is_held), (vec![(2, 4)], Some(NOW + 1000), false));
        let lowered = gate.turn(&[limited(1, 1)], NOW + 999);
        assert_eq!((picked(&lowered), lowered.next), (vec![], Some(NOW + 1000)));
        assert_eq!(picked(&gate.turn(&[limited(1, 2)], NOW + 1000)), [(1, 2)]);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut gate = Gate::new(64, 4);
        begin(&mut gate, &[limited(1, 2)], NOW);
        gate.put_aside(2, NOW + 60_000);
        let earlier = NOW - 3_600_000;
        gate.tidy(earlier, 60_000);
        let waiting = [Waiting { due_at: earlier, ..limited(1, 2) }, Waiting { due_at: earlier, ..due(2) }];
        assert_eq!(picked(&gate.turn(&waiting, earlier)), [(1, 2), (2, 4)]);
    }

    #[test]
    fn an_endpoint_that_is_being_closed_or_was_put_aside_has_no_turn() {
        let mut gate = Gate::new(64, 4);
        gate.close(1);
        let turn = gate.turn(&[due(1), due(2)], NOW);
        assert_eq!((picked(&turn), turn.is_held), (vec![(2, 4)], true));
        gate.closed(1);
        assert_eq!(picked(&gate.turn(&[due(1)], NOW)), [(1, 4)]);
        gate.put_aside(1, NOW + 1);
        assert_eq!(gate.turn(&[due(1)], NOW).next, Some(NOW + 1));
        assert_eq!(picked(&gate.turn(&[due(1)], NOW + 1)), [(1, 4)]);
    }

    #[test]
    fn nothing_is_kept_of_endpoints_without_a_bearing() {
        let mut gate = Gate::new(64, 4);
        for endpoint in 1..=100 {
            begin(&mut gate, &[limited(endpoint, 5)], NOW);
            (0..4).for_each(|_| gate.ended(endpoint));
        }
        gate.tidy(NOW + SECOND_MS, 60_000);
        assert!(gate.lanes.is_empty());
        assert_eq!(gate.under_way(), 0);
    }
}

//! Whose turn it is, and what stands in the way.

use super::*;
use crate::kernel::tenant::TenantId;

const NOW: UnixMs = 1_700_000_000_000;

const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
const SLOWLY: Option<Duration> = Some(SLOW);
const SLOW: Duration = Duration::from_secs(3);

/// A gate that knows the endpoints 1 to 9 as prompt.
fn gate(most: usize, most_of_one: usize) -> Gate {
    let known: Vec<Waiting> = (1..10).map(due).collect();
    gate_that_knows(most, most_of_one, &known, AT_ONCE)
}

/// A gate that knows these as endpoints which answer so.
fn gate_that_knows(most: usize, most_of_one: usize, known: &[Waiting], took: Option<Duration>) -> Gate {
    let mut gate = Gate::new(most, most_of_one, SLOW);
    for one in known {
        for _ in 0..PROVEN {
            gate.began(one, 1, NOW - SECOND_MS);
            gate.ended(one.endpoint, took);
        }
    }
    gate
}

fn due(endpoint: i64) -> Waiting {
    Waiting { endpoint, due_at: NOW, rate_per_second: None, is_failing: false, tenant: TenantId::installation() }
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
    let turn = gate.turn(waiting, Tenants::One, now);
    for pick in &turn.picks {
        let endpoint = waiting.iter().find(|one| one.endpoint == pick.endpoint).unwrap();
        gate.began(endpoint, pick.most, now);
    }
    turn
}

#[test]
fn one_endpoint_has_its_share_and_no_more() {
    let mut gate = gate(64, 4);
    assert_eq!(picked(&begin(&mut gate, &[due(1)], NOW)), [(1, 4)]);
    let turn = begin(&mut gate, &[due(1)], NOW);
    assert_eq!((picked(&turn), turn.is_held), (vec![], true));
    gate.ended(1, AT_ONCE);
    assert_eq!(picked(&begin(&mut gate, &[due(1), due(2)], NOW)), [(1, 1), (2, 4)]);
    assert_eq!(gate.under_way(), 8);
}

#[test]
fn free_slots_are_shared_out_a_few_at_a_time_and_the_round_goes_on_where_it_ended() {
    let all: Vec<Waiting> = (1..=5).map(due).collect();
    let mut gate = gate_that_knows(22, 8, &all, AT_ONCE);
    let turn = begin(&mut gate, &all, NOW);
    assert_eq!(picked(&turn), [(1, 6), (2, 4), (3, 4), (4, 4), (5, 4)]);
    assert!(turn.is_held && turn.is_full, "some have to wait for a slot");
    (0..4).for_each(|_| gate.ended(1, AT_ONCE));
    gate.ended(5, AT_ONCE);
    assert_eq!(picked(&begin(&mut gate, &all, NOW)), [(2, 4), (3, 1)]);
    gate.ended(2, AT_ONCE);
    assert_eq!(picked(&begin(&mut gate, &all, NOW)), [(4, 1)], "in its turn, whoever gave the slot back");
}

#[test]
fn nothing_is_picked_beyond_what_is_free() {
    let mut gate = gate(3, 2);
    let all: Vec<Waiting> = (1..=3).map(due).collect();
    begin(&mut gate, &all, NOW);
    let turn = gate.turn(&all, Tenants::One, NOW);
    assert_eq!((picked(&turn), turn.is_held, turn.next), (vec![], true, None));
}

#[test]
fn what_is_not_due_is_waited_for() {
    let mut gate = gate(8, 4);
    let later = |endpoint, ms| Waiting { due_at: NOW + ms, ..due(endpoint) };
    let turn = gate.turn(&[later(1, 500), later(2, 300), due(3)], Tenants::One, NOW);
    assert_eq!((picked(&turn), turn.is_held, turn.next), (vec![(3, 4)], false, Some(NOW + 300)));
}

#[test]
fn a_rate_is_never_exceeded_within_any_second() {
    let mut gate = gate(64, 64);
    let endpoint = [limited(1, 3)];
    let mut begun = Vec::new();
    for now in (NOW..NOW + 5000).step_by(70) {
        let turn = begin(&mut gate, &endpoint, now);
        begun.extend(turn.picks.iter().flat_map(|pick| vec![now; pick.most]));
        (0..turn.picks.iter().map(|pick| pick.most).sum()).for_each(|_| gate.ended(1, AT_ONCE));
    }
    assert!((13..=15).contains(&begun.len()), "{}", begun.len());
    for four in begun.windows(4) {
        assert!(four[3] - four[0] >= SECOND_MS, "{four:?}");
    }
}

#[test]
fn the_next_of_a_limited_endpoint_has_its_instant() {
    let mut gate = gate(64, 4);
    assert_eq!(picked(&begin(&mut gate, &[limited(1, 2)], NOW)), [(1, 2)]);
    let turn = gate.turn(&[limited(1, 2), due(2)], Tenants::One, NOW + 400);
    assert_eq!((picked(&turn), turn.next, turn.is_held), (vec![(2, 4)], Some(NOW + 1000), false));
    let lowered = gate.turn(&[limited(1, 1)], Tenants::One, NOW + 999);
    assert_eq!((picked(&lowered), lowered.next), (vec![], Some(NOW + 1000)));
    assert_eq!(picked(&gate.turn(&[limited(1, 2)], Tenants::One, NOW + 1000)), [(1, 2)]);
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_up() {
    let mut gate = gate(64, 4);
    begin(&mut gate, &[limited(1, 2)], NOW);
    gate.put_aside(2, NOW + 60_000);
    let earlier = NOW - 3_600_000;
    gate.tidy(earlier, 60_000);
    let waiting = [Waiting { due_at: earlier, ..limited(1, 2) }, Waiting { due_at: earlier, ..due(2) }];
    assert_eq!(picked(&gate.turn(&waiting, Tenants::One, earlier)), [(1, 2), (2, 4)]);
}

#[test]
fn an_endpoint_that_is_being_closed_or_was_put_aside_has_no_turn() {
    let mut gate = gate(64, 4);
    gate.close(1);
    let turn = gate.turn(&[due(1), due(2)], Tenants::One, NOW);
    assert_eq!((picked(&turn), turn.is_held), (vec![(2, 4)], true));
    gate.closed(1);
    assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW)), [(1, 4)]);
    gate.put_aside(1, NOW + 1);
    assert_eq!(gate.turn(&[due(1)], Tenants::One, NOW).next, Some(NOW + 1));
    assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW + 1)), [(1, 4)]);
}

#[test]
fn the_pace_of_so_many_endpoints_is_remembered_and_nothing_else() {
    let mut gate = Gate::new(64, 4, SLOW);
    for endpoint in 1..=5000 {
        begin(&mut gate, &[limited(endpoint, 5)], NOW);
        gate.ended(endpoint, AT_ONCE);
    }
    gate.tidy(NOW + SECOND_MS, 60_000);
    assert!(gate.lanes.is_empty());
    assert_eq!(gate.under_way(), 0);
    begin(&mut gate, &[due(1)], NOW);
    gate.ended(1, AT_ONCE);
    begin(&mut gate, &[due(1)], NOW);
    (0..2).for_each(|_| gate.ended(1, SLOWLY));
    gate.tidy(NOW, 60_000);
    assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW)), [(1, 1)]);
}

#[test]
fn any_number_of_endpoints_that_hang_leave_slots_to_those_that_answer() {
    let hanging: Vec<Waiting> = (1..=50).map(due).collect();
    let mut gate = gate_that_knows(64, 4, &hanging, SLOWLY);
    let turn = begin(&mut gate, &hanging, NOW);
    assert_eq!((turn.wanted(), turn.is_held, turn.is_full), (32, true, false), "one each, and half of all");
    let fresh: Vec<Waiting> = (51..=100).map(due).collect();
    let turn = begin(&mut gate, &fresh, NOW);
    assert_eq!((turn.wanted(), turn.is_full), (16, false), "nobody knows of these what they will do");
    for _ in 0..PROVEN {
        gate.began(&due(200), 1, NOW);
        gate.ended(200, AT_ONCE);
    }
    assert_eq!(picked(&begin(&mut gate, &[due(200)], NOW)), [(200, 4)], "it has answered often enough");
    assert_eq!(gate.under_way(), 52);
}

#[test]
fn an_endpoint_gets_one_slot_more_for_each_prompt_answer_and_begins_anew_after_a_slow_one() {
    let mut gate = Gate::new(64, 4, SLOW);
    for slots in [1, 2, 3, 4, 4] {
        assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW)), [(1, slots)]);
        gate.began(&due(1), 1, NOW);
        gate.ended(1, AT_ONCE);
    }
    gate.began(&due(1), 1, NOW);
    gate.ended(1, SLOWLY);
    assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW)), [(1, 1)]);
    gate.began(&due(1), 1, NOW);
    gate.ended(1, None);
    assert_eq!(picked(&gate.turn(&[due(1)], Tenants::One, NOW)), [(1, 1)], "what was cut off says nothing");
}

#[test]
fn what_nothing_is_known_of_is_at_the_start_as_the_file_says() {
    let mut gate = Gate::new(4, 4, SLOW);
    let failing: Vec<Waiting> = (1..=4).map(|endpoint| Waiting { is_failing: true, ..due(endpoint) }).collect();
    assert_eq!(begin(&mut gate, &failing, NOW).wanted(), 2, "half of all, as for those that were slow");
    gate.ended(1, AT_ONCE);
    assert_eq!(picked(&gate.turn(&failing[..1], Tenants::One, NOW)), [(1, 2)], "what refuses at once holds up nobody");
}

#[test]
fn a_tenant_leaves_a_quarter_to_the_others_if_there_are_any() {
    let theirs: Vec<Waiting> = (1..=20).map(due).collect();
    let ours = Waiting { tenant: TenantId::parse("acme").unwrap(), ..due(30) };
    let mut gate = gate_that_knows(64, 4, &theirs, AT_ONCE);
    assert_eq!(gate.turn(&theirs, Tenants::One, NOW).wanted(), 64);
    let turn = gate.turn(&theirs, Tenants::Several, NOW);
    assert_eq!((turn.wanted(), turn.is_held, turn.is_full), (48, true, false));
    for pick in turn.picks {
        gate.began(&due(pick.endpoint), pick.most, NOW);
    }
    let all: Vec<Waiting> = theirs.iter().cloned().chain([ours]).collect();
    assert_eq!(picked(&gate.turn(&all, Tenants::Several, NOW)), [(30, 1)], "and nothing of theirs");
}

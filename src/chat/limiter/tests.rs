//! The limiter against its promises: the examples of the rules, and random use against the sliding windows.

use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits {
        per_second: 5,
        bulk_per_second: 3,
        chat_interval: Duration::from_secs(1),
        group_per_minute: 4,
        max_in_flight: 8,
    }
}

fn limiter() -> (Arc<Limiter>, Clock) {
    let clock = Clock::stopped_at(1_000_000);
    (Limiter::new(limits(), clock.clone()), clock)
}

fn send(limiter: &Arc<Limiter>, chat_id: i64, lane: Lane) -> Result<(), NoSlot> {
    limiter.take(chat_id, lane).map(|mut slot| slot.start())
}

#[test]
fn a_chat_waits_for_its_interval_and_others_do_not() {
    let (limiter, clock) = limiter();
    assert_eq!(send(&limiter, 1, Lane::Interactive), Ok(()));
    assert_eq!(send(&limiter, 1, Lane::Interactive), Err(NoSlot::Chat(Some(1_001_000))));
    assert_eq!(send(&limiter, 2, Lane::Interactive), Ok(()));
    clock.advance(Duration::from_secs(1));
    assert_eq!(send(&limiter, 1, Lane::Interactive), Ok(()));
}

#[test]
fn a_chat_has_one_send_at_a_time_however_long_it_takes() {
    let (limiter, clock) = limiter();
    let mut slot = limiter.take(1, Lane::Interactive).expect("nothing was sent yet");
    slot.start();
    clock.advance(Duration::from_secs(30));
    assert!(matches!(limiter.take(1, Lane::Bulk), Err(NoSlot::Chat(None))));
    drop(slot);
    assert_eq!(send(&limiter, 1, Lane::Bulk), Ok(()));
}

#[test]
fn bulk_leaves_room_for_the_others() {
    let (limiter, _clock) = limiter();
    for chat in 1..=3 {
        assert_eq!(send(&limiter, chat, Lane::Bulk), Ok(()));
    }
    assert_eq!(send(&limiter, 4, Lane::Bulk), Err(NoSlot::Lane(Some(1_001_000))));
    assert_eq!(send(&limiter, 4, Lane::Interactive), Ok(()));
    assert_eq!(send(&limiter, 5, Lane::Interactive), Ok(()));
    assert_eq!(send(&limiter, 6, Lane::Interactive), Err(NoSlot::All(Some(1_001_000))));
}

#[test]
fn a_slot_that_is_not_used_costs_nothing() {
    let (limiter, _clock) = limiter();
    for _ in 0..50 {
        drop(limiter.take(1, Lane::Bulk).expect("the last one was given back"));
    }
    assert_eq!(send(&limiter, 1, Lane::Bulk), Ok(()));
}

#[test]
fn one_limited_chat_pauses_alone_and_two_within_a_second_pause_all() {
    let (limiter, clock) = limiter();
    let minute = Some(Duration::from_secs(60));
    assert_eq!(limiter.rate_limited(1, minute), [Pause { chat_id: 1, until: 1_060_500 }]);
    assert_eq!(send(&limiter, 1, Lane::Interactive), Err(NoSlot::Chat(Some(1_060_500))));
    assert_eq!(send(&limiter, 2, Lane::Interactive), Ok(()));
    clock.advance(Duration::from_millis(999));
    let pauses = limiter.rate_limited(2, Some(Duration::from_secs(3)));
    assert_eq!(pauses[1], Pause { chat_id: ALL_CHATS, until: 1_060_500 });
    assert_eq!(send(&limiter, 3, Lane::Interactive), Err(NoSlot::All(Some(1_060_500))));
    clock.advance(Duration::from_secs(61));
    assert_eq!(send(&limiter, 3, Lane::Interactive), Ok(()));
    assert_eq!(limiter.rate_limited(3, None).len(), 1, "the refusals before are long ago");
}

#[test]
fn a_pause_is_never_shortened_and_survives_a_restart() {
    let (limiter, clock) = limiter();
    limiter.rate_limited(1, Some(Duration::from_secs(100)));
    limiter.rate_limited(1, Some(Duration::from_secs(1)));
    assert_eq!(send(&limiter, 1, Lane::Bulk), Err(NoSlot::Chat(Some(1_100_500))));
    let again = Limiter::new(limits(), clock);
    again.restore([Pause { chat_id: 1, until: 1_100_500 }, Pause { chat_id: 2, until: i64::MAX }]);
    assert_eq!(send(&again, 1, Lane::Bulk), Err(NoSlot::Chat(Some(1_100_500))));
    assert_eq!(send(&again, 2, Lane::Bulk), Err(NoSlot::Chat(Some(1_000_000 + 7 * 86_400_000))));
}

#[test]
fn a_clock_set_back_lengthens_no_wait() {
    let (limiter, clock) = limiter();
    assert_eq!(send(&limiter, 1, Lane::Interactive), Ok(()));
    limiter.rate_limited(2, Some(Duration::from_secs(60)));
    limiter.hold_all(Duration::from_secs(5));
    clock.set(400_000);
    assert_eq!(send(&limiter, 1, Lane::Interactive), Err(NoSlot::All(Some(405_000))));
    clock.set(405_000);
    assert_eq!(send(&limiter, 1, Lane::Interactive), Ok(()));
    assert_eq!(send(&limiter, 2, Lane::Interactive), Err(NoSlot::Chat(Some(460_500))));
    clock.set(460_500);
    assert_eq!(send(&limiter, 2, Lane::Interactive), Ok(()));
}

/// What a driver of the limiter can do.
#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Take {
        chat: i64,
        lane: Lane,
    },
    /// Starts the oldest slot that has not started.
    Start,
    /// Gives back the oldest slot.
    Drop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lane = prop_oneof![Just(Lane::Interactive), Just(Lane::Transactional), Just(Lane::Bulk)];
    let step = prop_oneof![
        2 => (0_u64..2_000).prop_map(Step::Advance),
        6 => (prop_oneof![-2_i64..0, 1_i64..12], lane).prop_map(|(chat, lane)| Step::Take { chat, lane }),
        5 => Just(Step::Start),
        3 => Just(Step::Drop),
    ];
    proptest::collection::vec(step, 0..400)
}

fn most_in_any_window(starts: &[i64], length_ms: i64) -> usize {
    starts
        .iter()
        .map(|from| starts.iter().filter(|at| (*from..from + length_ms).contains(at)).count())
        .max()
        .unwrap_or(0)
}

proptest! {
    #[test]
    fn no_window_holds_more_starts_than_its_limit(steps in steps()) {
        let (limiter, clock) = limiter();
        let mut held: Vec<(Slot, bool)> = Vec::new();
        let mut starts: Vec<(i64, Lane, i64)> = Vec::new();
        for step in steps {
            match step {
                Step::Advance(ms) => { clock.advance(Duration::from_millis(ms)); }
                Step::Take { chat, lane } => if let Ok(slot) = limiter.take(chat, lane) {
                    prop_assert!(held.iter().all(|(other, _)| other.chat_id != chat));
                    held.push((slot, false));
                },
                Step::Start => if let Some((slot, started)) = held.iter_mut().find(|(_, started)| !started) {
                    slot.start();
                    *started = true;
                    starts.push((slot.chat_id, slot.lane, clock.now()));
                },
                Step::Drop => if !held.is_empty() { held.remove(0); },
            }
            prop_assert!(held.len() <= 8);
        }
        let at = |wanted: &dyn Fn(&(i64, Lane, i64)) -> bool| -> Vec<i64> {
            starts.iter().filter(|start| wanted(start)).map(|start| start.2).collect()
        };
        prop_assert!(most_in_any_window(&at(&|_| true), 1_000) <= 5);
        prop_assert!(most_in_any_window(&at(&|start| start.1 == Lane::Bulk), 1_000) <= 3);
        for chat in -2..12 {
            let of_chat = at(&|start| start.0 == chat);
            prop_assert!(most_in_any_window(&of_chat, 1_000) <= 1);
            prop_assert!(chat > 0 || most_in_any_window(&of_chat, 60_000) <= 4);
        }
    }

    #[test]
    fn whoever_waits_until_the_named_instant_gets_a_slot(steps in steps()) {
        let (limiter, clock) = limiter();
        for step in steps {
            match step {
                Step::Advance(ms) => { clock.advance(Duration::from_millis(ms)); }
                Step::Take { chat, lane } => {
                    let mut result = send(&limiter, chat, lane);
                    // The budget, the lane and the chat may each name an instant once.
                    for _ in 0..4 {
                        if let Err(NoSlot::Chat(Some(at)) | NoSlot::Lane(Some(at)) | NoSlot::All(Some(at))) = result {
                            prop_assert!(at > clock.now());
                            let wait = u64::try_from(at - clock.now()).expect("it lies ahead");
                            clock.advance(Duration::from_millis(wait));
                            result = send(&limiter, chat, lane);
                        }
                    }
                    prop_assert_eq!(result, Ok(()));
                }
                Step::Start | Step::Drop => {}
            }
        }
    }
}

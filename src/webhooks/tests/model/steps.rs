//! What happens in the model's world, and how often.

use proptest::prelude::*;

use super::super::*;
use super::known::End;
use crate::webhooks::EndpointStatus;

/// Something that happens. Endpoints, deliveries and sends are named by their place, as far as there are so many.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Event,
    Claim {
        place: usize,
        most: usize,
    },
    Finish {
        send: usize,
        end: End,
    },
    /// A task forgets the delivery it has, and comes back with its result later or never.
    Forget {
        send: usize,
    },
    TakeUp,
    Restart,
    /// What is due is attempted, and ends so; then it is as late as the next is due.
    Round {
        place: usize,
        end: End,
    },
    /// The program ends while it sends, and starts again.
    Kill(usize),
    Move(i64),
    Resend(usize),
    Queue {
        place: usize,
        lost: Lost,
    },
    Disable(usize),
    Set {
        place: usize,
        status: EndpointStatus,
    },
    Delete(usize),
    Rotate {
        place: usize,
        overlap_seconds: i64,
    },
    Sweep,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || 0_usize..2;
    let end = || {
        prop_oneof![
            3 => Just(End::Ok),
            9 => Just(End::Fails),
            1 => Just(End::Gone),
            2 => prop_oneof![Just(1_u64), Just(600), Just(90_000), Just(1 << 40)].prop_map(|seconds| End::Asks { seconds }),
        ]
    };
    let ahead = prop_oneof![
        Just(1),
        Just(5 * SECOND),
        Just(LEASE_MS),
        Just(5 * MINUTE),
        Just(2 * HOUR),
        Just(DAY),
        Just(5 * DAY),
    ];
    let step = prop_oneof![
        4 => Just(Step::Event),
        14 => (place(), end()).prop_map(|(place, end)| Step::Round { place, end }),
        5 => place().prop_map(Step::Kill),
        8 => (place(), 1_usize..4).prop_map(|(place, most)| Step::Claim { place, most }),
        8 => (0_usize..6, end()).prop_map(|(send, end)| Step::Finish { send, end }),
        2 => (0_usize..6).prop_map(|send| Step::Forget { send }),
        3 => Just(Step::TakeUp),
        1 => Just(Step::Restart),
        8 => ahead.prop_map(Step::Move),
        1 => prop_oneof![Just(-1), Just(-5 * MINUTE), Just(-3 * DAY), Just(-400 * DAY), Just(400 * DAY)].prop_map(Step::Move),
        6 => (0_usize..5).prop_map(Step::Resend),
        2 => (place(), prop_oneof![Just(Lost::Undelivered), Just(Lost::Skipped)])
            .prop_map(|(place, lost)| Step::Queue { place, lost }),
        1 => place().prop_map(Step::Disable),
        3 => (place(), prop_oneof![3 => Just(EndpointStatus::Active), 1 => Just(EndpointStatus::Paused)])
            .prop_map(|(place, status)| Step::Set { place, status }),
        1 => Just(Step::Delete(1)),
        2 => (place(), prop_oneof![Just(0_i64), Just(60), Just(604_800)])
            .prop_map(|(place, overlap_seconds)| Step::Rotate { place, overlap_seconds }),
        3 => Just(Step::Sweep),
    ];
    proptest::collection::vec(step, 1..140)
}

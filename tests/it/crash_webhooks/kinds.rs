//! The endpoints of the load, and how their receivers behave.

use std::time::Duration;

use crate::harness::receiver::{Came, Reply};

/// An endpoint, and how its receiver behaves for the so-many-th attempt of an event.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) wants: Option<&'static [&'static str]>,
    pub(super) behaves: fn(&Came, u64) -> Reply,
}

/// At most three failures that are meant, so that those which a busy machine adds do not exhaust the schedule.
pub(super) const KINDS: [Kind; 8] = [
    Kind { name: "steady", wants: None, behaves: |_, _| Reply::Status(200) },
    Kind { name: "fails", wants: Some(&["order.*"]), behaves: fails },
    Kind { name: "busy", wants: Some(&["order.paid", "stock.low"]), behaves: is_busy },
    Kind { name: "hangs", wants: Some(&["slow.*"]), behaves: hangs },
    Kind { name: "breaks", wants: None, behaves: breaks },
    Kind { name: "slow", wants: Some(&["order.sent", "slow.*"]), behaves: is_slow },
    Kind { name: HOPELESS, wants: Some(&["stock.*"]), behaves: |_, _| Reply::Status(500) },
    Kind { name: "narrow", wants: Some(&["slow.one"]), behaves: |_, _| Reply::Status(204) },
];
/// The only one that never says yes.
pub(super) const HOPELESS: &str = "hopeless";

fn fails(came: &Came, dice: u64) -> Reply {
    let statuses = [500, 502, 404, 301];
    if (came.earlier as u64) < dice % 4 { Reply::Status(statuses[came.earlier]) } else { Reply::Status(201) }
}

fn is_busy(came: &Came, dice: u64) -> Reply {
    let waits = ["Retry-After: 0\r\n", "Retry-After: 2\r\n", "Retry-After: 40\r\n", "Retry-After: soon\r\n"];
    match came.earlier as u64 {
        earlier if earlier < dice % 3 => Reply::Whole(503, waits[(dice / 3 % 4) as usize], "busy"),
        _ => Reply::Status(200),
    }
}

fn hangs(came: &Came, dice: u64) -> Reply {
    if (came.earlier as u64) < dice % 2 { Reply::Hang } else { Reply::Status(200) }
}

fn breaks(came: &Came, dice: u64) -> Reply {
    let ways = [Reply::Close, Reply::Reset, Reply::Bytes(b"HTTP/1.1 20"), Reply::Bytes(b"\r\n\r\n")];
    match came.earlier as u64 {
        earlier if earlier < dice % 4 => ways[((dice / 4 + earlier) % 4) as usize].clone(),
        _ => Reply::Status(200),
    }
}

/// Slow enough that a kill often comes before it has answered, or before its answer is in the file.
fn is_slow(_: &Came, dice: u64) -> Reply {
    Reply::After(Duration::from_millis(dice % 200), 200)
}

/// The same number for the same event, in every run of these bytes.
pub(super) fn dice(came: &Came) -> u64 {
    let bytes = came.id().bytes().chain(came.path.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) >> 7
}

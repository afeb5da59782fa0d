//! What everything stands on: time, ids, secrets, retries, events and the store. Knows no subsystem's table.

pub mod clock;
pub mod secret;

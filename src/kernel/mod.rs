//! What everything stands on: time, ids, secrets, events, this machine's own addresses and the store. Knows no subsystem's table.

pub(crate) mod batches;
pub mod clock;
pub mod contract;
pub mod events;
pub mod id;
pub mod loopback;
pub mod retry;
pub mod secret;
pub mod store;
pub mod tenant;

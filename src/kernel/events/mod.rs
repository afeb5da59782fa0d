//! Domain events: what has happened, in the closed list of things that can.
//!
//! A source calls [`crate::kernel::store::Tx::publish`] and knows neither outbox. Who records an event, and under which
//! name, is decided by the recorders that the store was opened with.

mod catalogue;
mod pattern;

pub use catalogue::{CATALOGUE, Entry, Event, Lead, Member, NftLevel};
pub use pattern::Pattern;

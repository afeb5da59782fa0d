//! Domain events: what has happened, in the closed list of things that can.
//!
//! A source calls [`crate::kernel::store::Tx::publish`] and knows neither outbox. Who records an event, and under which
//! name, is decided by the recorders that the store was opened with. What tenants post is not in this list; it may have
//! any type but those of the list and of [`KEPT_NAMES`].

mod catalogue;
mod document;
mod event;
mod pattern;
#[cfg(test)]
mod tests;

pub use catalogue::{CATALOGUE, Entry, Field, KEPT_NAMES, find_entry, is_reserved};
pub use document::catalogue_markdown;
pub use event::{BroadcastOutcome, EndpointReason, EndpointTrouble, Event, FinishedBroadcast, Lead, Member, NftLevel};
pub use pattern::Pattern;

//! Domain events: everything that happened, recorded by the transaction in which it happened, and handed to every consumer.
//!
//! # What
//! An event is a row of `outbox_events`: of our own subsystems by `tx.publish` and [`record`], of a tenant by [`post()`], or
//! of another program's SQL. [`Relay`] hands each to every [`consumer::Consumer`] and notes who has accepted. What a person
//! may do is in `retry.rs` and `inspect.rs`; what a person should look after is [`health::health`].
//!
//! # States
//! `pending → published` when every consumer has accepted; `pending → failed` at the tenth refusal; `failed → pending` by a
//! person. A pending event is due at once, or, refused, at its `next_attempt_at`.
//!
//! # Guarantees
//! - An event is in the table if and only if its change is: `src/app/record_tests.rs`.
//! - Every event is accepted by every consumer at least once, by one inside the file exactly once; who has accepted is not
//!   asked again; ten refused attempts fail it and no other number does:
//!   `src/outbox/tests/model.rs::any_order_of_refusals_restarts_and_clock_moves_keeps_what_is_promised`.
//! - Whatever another program writes into a row keeps no other event: `src/outbox/tests/odd_rows.rs::odd_rows_stop_nobody`.
//! - A consumer that panics or hangs refuses, and no more:
//!   `src/outbox/tests/outside.rs::one_that_hangs_is_left_alone_and_the_others_get_their_events`.
//! - What consumers inside the file make of an event does not wait for one outside that hangs, and an event for which one
//!   was not asked has lost no attempt: `src/outbox/tests/outside.rs::one_that_hangs_does_not_hold_up_those_inside`,
//!   `src/outbox/tests/outside.rs::one_that_hangs_is_left_alone_and_the_others_get_their_events`.
//! - A busy store is no attempt: `src/outbox/tests/relay.rs::a_busy_store_is_no_attempt`.
//! - Fresh events do not wait for refused ones, nor these for them:
//!   `src/outbox/tests/relay.rs::neither_fresh_nor_refused_events_keep_the_others_waiting`.
//! - A request that is repeated under its key, or an event under its id, is stored once:
//!   `src/outbox/tests/post.rs::the_same_request_gets_the_same_answer_for_a_day`.
//! - Data is handed on as the text that came: `src/outbox/tests/post.rs::data_is_kept_byte_for_byte`.
//! - What is failed, or of which something is unfinished, is not pruned:
//!   `src/outbox/tests/prune.rs::what_is_young_failed_or_in_use_stays`.
//! - What is repeated costs the same among any number of published events:
//!   `src/outbox/tests/plan.rs::every_repeated_statement_uses_the_index_made_for_it`.
//!
//! # Windows
//! - Between an outside consumer's acceptance and its record a crash has it asked again
//!   (`src/outbox/tests/outside.rs::a_crash_between_acceptance_and_record_hands_it_over_again`): it recognises the event by
//!   its id. For one inside there is no such window: its work and the record are one transaction.
//! - A retry's time is the clock's. One that is set back makes a due time a later one; what is due later than anything is
//!   put off is taken for due (`src/outbox/tests/relay.rs::a_clock_that_was_set_back_holds_up_nothing_for_long`).
//!
//! # Not here
//! Order between events, exactly-once for a consumer outside the file, and a second relay beside the first: one process
//! holds the file, and its job runs one pass at a time. What the bot is told is `backend`'s.

mod analytics;
pub(crate) mod consumer;
mod error;
pub(crate) mod health;
pub(crate) mod inspect;
mod json;
mod post;
pub(crate) mod prune;
mod registry;
mod relay;
mod retry;
mod sql;
#[cfg(test)]
mod tests;

pub(crate) use analytics::Analytics;
pub(crate) use error::Error;
pub(crate) use post::{IdempotencyKey, MOST_EVENTS, NewEvent, Posted, post};
pub(crate) use registry::{RegisteredType, register_type, types, unregister_type};
pub(crate) use relay::Relay;
pub(crate) use retry::{FailedOnes, Retried, retry, retry_failed};

use std::ops::RangeInclusive;

use crate::kernel::clock::UnixMs;
use crate::kernel::events::Event;
use crate::kernel::id;
use crate::kernel::store::{StoreError, Tx, Wake};

/// Domain events have been committed, or are to be handed over again.
pub(crate) const OUTBOX_EVENTS: Wake = Wake("outbox-events");

/// The instants that RFC 3339 can say: the years 0001 to 9999.
const SAYABLE: RangeInclusive<UnixMs> = -62_135_596_800_000..=253_402_300_799_999;

/// Records a published event.
///
/// # Errors
/// The store's.
pub(crate) fn record(tx: &Tx<'_>, event: &Event) -> Result<(), StoreError> {
    sql::record::insert(tx, &id::uuid_v7(tx.now()), event)?;
    tx.wake(OUTBOX_EVENTS);
    Ok(())
}

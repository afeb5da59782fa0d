//! Webhooks: every event goes to the endpoints of its tenant that want it, signed, again and again until it is taken.
//!
//! # What
//! [`Fanout`] is the consumer that turns an event into a body, frozen once, and a delivery for each endpoint that wants it.
//! [`Deliverer`] claims what may go (`delivery/`), sends it (`transport/`, within what `egress/` allows, signed by
//! `signature.rs` with secrets that [`Vault`] opens) and records how it ended. What a tenant does with its endpoints is in
//! `endpoint/`, what a person may ask for in `recover.rs` and `probe.rs`, what can be seen in `inspect.rs` and `health.rs`;
//! `sweep.rs` and `prune.rs` delete in batches.
//!
//! # States
//! Of a delivery: `pending → sending → delivered`, or back to `pending` by the schedule and at last to `failed`;
//! `pending → cancelled` when the endpoint is gone, `pending → skipped` when it is disabled otherwise; from `failed`,
//! `cancelled` and `skipped` to `pending` by a person. A resend leads from any of them to `sending`, and in vain back to
//! where it was. Of an endpoint: `active`, `paused`, `disabled` with a reason; deleted, and then gone in batches.
//!
//! # Guarantees
//! - The attempts of a delivery have numbers without a gap, one at a time; the schedule is counted exactly, whatever is
//!   killed, late or asked for by a person; what was delivered stays so:
//!   `src/webhooks/tests/model/mod.rs::anything_in_any_order_keeps_what_is_promised`.
//! - An event that is handed over again makes no second delivery, and its body stays as it was:
//!   `src/webhooks/tests/fanout.rs::an_event_that_is_handed_over_again_changes_nothing`.
//! - An endpoint gets every event that is relayed after it was made, whatever the fan-out remembers:
//!   `src/webhooks/tests/fanout.rs::an_endpoint_is_seen_within_the_transaction_that_made_it_and_not_if_that_was_taken_back`.
//! - An endpoint whose row cannot be read keeps no other from its events, and is shown as it is:
//!   `src/webhooks/tests/fanout.rs::an_endpoint_whose_row_cannot_be_read_keeps_no_other_from_its_events`.
//! - The event's data is sent byte for byte: `src/webhooks/fanout.rs::the_body_has_its_fields_in_order_and_the_data_byte_for_byte`.
//! - Each resend that was accepted is followed by an attempt that begins after it:
//!   `src/webhooks/tests/endings.rs::a_resend_of_what_is_being_sent_is_an_attempt_after_that_one`.
//! - An attempt that was cut off, or that could not be begun for want of a descriptor, a thread, a turn at the resolver or
//!   something to sign, is held against no endpoint. It is made again at once, and after three in a row by the schedule:
//!   `src/webhooks/tests/endings.rs::an_attempt_that_fails_by_our_own_fault_is_as_one_that_was_cut_off`,
//!   `src/webhooks/deliver/tests/faults.rs::an_event_that_cannot_be_signed_is_not_the_endpoints_failure`,
//!   `src/webhooks/deliver/tests/faults.rs::a_lookup_that_never_began_is_not_the_endpoints_failure`,
//!   `src/webhooks/transport/tests/shortage.rs::without_a_descriptor_nothing_is_the_receivers_failure`.
//! - During a rotation old and new secrets sign, each for its own time:
//!   `src/webhooks/tests/secrets.rs::a_second_rotation_has_a_time_of_its_own_and_leaves_that_of_the_first`.
//! - A copy of the database alone signs nothing, and a secret opens for its own endpoint only:
//!   `src/webhooks/tests/vault.rs::a_secret_of_another_endpoint_does_not_open_nor_one_that_was_changed`.
//! - What another tenant has is answered as what there never was:
//!   `src/webhooks/tests/tenants.rs::every_call_answers_another_tenants_id_as_an_unknown_one`.
//! - What is repeated uses its index, and a claim takes the same steps whatever waits:
//!   `src/webhooks/tests/plan.rs::every_repeated_statement_uses_the_index_made_for_it`,
//!   `src/webhooks/tests/plan.rs::a_claim_among_a_million_that_wait_takes_the_steps_that_it_takes_among_a_few`.
//!
//! # Windows
//! - Between claim and result: whether the receiver has the event is unknown. The attempt is journaled as interrupted and
//!   made again at once, so the receiver may get the same id twice
//!   (`src/webhooks/tests/endings.rs::an_attempt_that_a_restart_cut_off_has_its_number_and_takes_no_step`).
//! - Between the end of an endpoint and the sweep: what waits for it is shown as waiting, and is not sent
//!   (`src/webhooks/tests/claims.rs::an_endpoint_that_is_paused_or_disabled_has_nothing_claimed`).
//! - Within a recovery of many: those of the batches before are queued, and asking again goes on
//!   (`src/webhooks/tests/recover.rs::many_are_queued_in_batches_of_which_each_goes_on_after_the_one_before`).
//! - A clock that jumps back: what was to be done under the other clock is not waited for
//!   (`src/webhooks/tests/claims.rs::times_of_another_clock_hold_nothing_up`).
//!
//! - What looks like a receiver's failure is counted as one, also where it is this machine's: its line or its name server is
//!   down, or the operator has tightened what is allowed. An endpoint for which that lasts as long as
//!   `webhooks.disable_after` is disabled (`src/webhooks/tests/trouble.rs::what_looks_like_the_receivers_failure_is_counted_whoever_is_to_blame`).
//!
//! # Not here
//! No order among deliveries. No second rule for success: 2xx is, whatever the body says. No change of a body between
//! attempts, and no headers that a tenant chooses. Which events there are is the outbox's.

mod attempt;
mod deliver;
pub(crate) mod delivery;
pub(crate) mod egress;
mod endpoint;
mod fanout;
pub(crate) mod health;
mod id;
pub(crate) mod inspect;
mod page;
pub(crate) mod probe;
pub(crate) mod prune;
pub(crate) mod recover;
pub(crate) mod resolve;
mod response;
mod shortage;
pub(crate) mod signature;
mod sql;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
mod transport;
mod vault;

pub(crate) use attempt::Trigger;
pub(crate) use deliver::{DeliverSettings, Deliverer, DelivererParts};
pub(crate) use egress::{Egress, EgressPolicy, UrlFault};
pub(crate) use endpoint::{
    DisabledReason, Endpoint, EndpointChanges, EndpointStatus, NewEndpoint, Rotated, Rotation, create, delete, disable,
    endpoints, find_endpoint, rotate_secret, update,
};
pub(crate) use fanout::{Fanout, is_unfinished};
pub(crate) use page::Page;
pub(crate) use recover::resend;
pub(crate) use resolve::Resolver;
pub(crate) use response::ErrorClass;
pub(crate) use transport::{Transport, TransportError, TransportSettings};
pub(crate) use vault::{Vault, VaultError};

use crate::kernel::store::{StoreError, Wake};

/// Something may be delivered, or an endpoint has changed.
pub(crate) const DELIVERIES: Wake = Wake("webhook-deliveries");

/// What can be wrong with a request to the webhooks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// There is no such thing, or it is another tenant's.
    #[error("there is no such thing")]
    NotFound,
    /// The tenant has as many endpoints as it may have.
    #[error("a tenant has at most {MOST_ENDPOINTS} endpoints")]
    TooManyEndpoints,
    /// A value is not one that its field may have.
    #[error("{field} {what}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What it must be.
        what: &'static str,
    },
    /// A webhook may not go there.
    #[error(transparent)]
    Url(#[from] UrlFault),
    /// Nothing is sent to a disabled endpoint: it must be made active first.
    #[error("the endpoint is disabled; make it active first")]
    EndpointDisabled,
    /// A text in the file names none of the values that it may have.
    #[error("no such {column}")]
    UnknownText {
        /// What it was to name.
        column: &'static str,
    },
    /// Secrets cannot be sealed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Endpoints of a tenant: every event may be one row for each.
pub(crate) const MOST_ENDPOINTS: i64 = 50;

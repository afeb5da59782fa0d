//! Broker leads: a form's request is stored once, and the broker's chat is told of it through an atomic claim.
//!
//! # What
//! A lead is a row of `broker_leads`, of the intake or of another program's SQL; [`announce()`] records the arrival of
//! the latter. Whoever tells the broker does so by [`claim()`], [`summary()`], a send, [`complete()`]: the callers of the
//! RPC surface, and our own worker, whose claims are [`take()`]. What a person may do is in `retry.rs`, `keep.rs` and
//! `inspect.rs`; what a person should look after is [`health::health`].
//!
//! # States
//! `pending → sending → sent | failed`, and back to `sending` by a claim that takes over an old one; `failed → pending`
//! and `disabled → pending` by a person; `pending → disabled` for a lead of another program while nobody sends, and
//! `pending → failed` instead of a fourth claim of the worker.
//!
//! # Guarantees
//! - Of claims at the same moment one wins: `src/leads/tests/claims.rs::of_many_claims_at_once_exactly_one_wins`.
//! - Who comes back after the claim was taken over changes nothing:
//!   `src/leads/tests/claims.rs::who_comes_back_after_the_claim_was_taken_over_changes_nothing`.
//! - Nothing leads from `sent`, `failed` or `disabled` to a send but a person; the worker claims at most three times
//!   between that person's requests; the rows of `broker_lead_events` and the domain events are in step with the rows:
//!   `src/leads/tests/model.rs::any_order_of_claims_endings_retries_and_restarts_keeps_what_is_promised`.
//! - A lead of another program is announced once: `src/leads/tests/others.rs::a_lead_of_another_program_is_announced_once`.
//! - A row in another encoding, or with numbers at their limits, is told like any other:
//!   `src/leads/tests/summaries.rs::a_row_in_another_encoding_is_told_and_stops_nobody`.
//! - The summary is plain text of at most 3500 characters, and no value breaks a line of it but the last one, what
//!   remains to be asked: `src/leads/tests/summaries.rs::no_value_breaks_a_line_or_pushes_out_another`,
//!   `src/leads/tests/summaries.rs::the_text_is_cut_within_both_limits`.
//! - No check that is not known gets a label into the summary by the way of a form:
//!   `src/leads/tests/others.rs::a_hostile_preparation_is_cleaned_whoever_wrote_it`.
//! - What is repeated costs the same among any number of sent leads:
//!   `src/leads/tests/plan.rs::every_repeated_statement_uses_the_index_made_for_it`.
//!
//! # Windows
//! - Between claim and send, or send and complete: the lead stays `sending`. After 15 minutes it is claimed again, and
//!   if the first message did arrive there is a second one with the same ID
//!   (`src/leads/tests/claims.rs::a_claim_is_taken_over_after_fifteen_minutes_and_not_at_them`). After a day, or three
//!   claims, it is given up as `failed` (`src/leads/tests/claims.rs::what_is_being_sent_for_over_a_day_is_given_up`).
//! - A clock that jumps, ahead or back, by more than 15 minutes makes a claim one that is not believed while its send is
//!   under way: what this process has in [`Hands`] is neither taken by the worker nor given to a caller
//!   (`src/leads/notify/tests/pass.rs::what_is_in_hand_is_taken_by_nobody_whatever_the_clock_says`). A sender elsewhere
//!   has no such protection.
//! - Between the insert of another program and the pass that announces it there is no `created` event; it may be
//!   claimed, and even sent, before that.
//!
//! # Not here
//! No repeat of a failed send by itself, no text to the person who wrote, no CRM beyond the columns, and nothing about
//! what a bank will decide: the preparation says what a person did before asking.

mod announce;
mod claim;
mod error_code;
mod hands;
pub(crate) mod health;
pub(crate) mod inspect;
mod intake;
pub(crate) mod keep;
mod lead;
pub(crate) mod notify;
mod retry;
pub(crate) mod smoke;
mod sql;
mod summary;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use announce::announce;
pub(crate) use claim::{Claim, Completed, Ending, claim, complete};
pub(crate) use error_code::ErrorCode;
pub(crate) use hands::Hands;
pub(crate) use intake::{Answer, Submission, Visitor, accept, prune_rate_limits};
pub(crate) use lead::{CrmStatus, NotificationStatus};
pub(crate) use retry::{Retry, RetryReason, enqueue_disabled, request_retry, retry_by_hand, retry_failed};
pub(crate) use summary::{SummaryError, summary};
pub(crate) use take::{Candidate, Taken, next_for_worker, take};

use crate::kernel::store::{StoreError, Wake};

/// The topic on which the notifications' worker is woken: a lead was stored, or may be notified now.
pub(crate) const LEADS: Wake = Wake("lead-notifications");

/// What can be wrong with a request to the leads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A text names none of the values that it may have.
    #[error("no such {column}")]
    UnknownText {
        /// What it was to name.
        column: &'static str,
    },
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

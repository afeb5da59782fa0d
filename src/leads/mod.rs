//! Broker leads: a form's request is stored once, and the broker's chat is told of it through an atomic claim.

mod announce;
mod claim;
mod error_code;
mod hands;
mod intake;
mod lead;
pub(crate) mod notify;
mod retry;
mod sql;
mod summary;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use announce::announce;
pub(crate) use claim::{Claim, Completed, Ending, STALE_AFTER_MS, claim, complete};
pub(crate) use error_code::ErrorCode;
pub(crate) use hands::{Hands, Hold};
pub(crate) use intake::{Answer, Submission, Visitor, accept, prune_rate_limits};
pub(crate) use lead::NotificationStatus;
pub(crate) use retry::{Retry, RetryReason, enqueue_disabled, request_retry};
pub(crate) use summary::{SummaryError, summary};
pub(crate) use take::{CLAIMS_PER_CYCLE, Candidate, Taken, next_for_worker, take};

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

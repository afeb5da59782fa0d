//! The worker's side of claiming: which lead is next, and taking it within the limits of what may happen by itself.
//!
//! What is `sending` for over a day, or would be claimed a fourth time since it came or a person asked for it again,
//! is given up instead: by then nobody knows how many messages the broker has already.

use super::claim::{self, Standing};
use super::summary::{self, SummaryError};
use super::{ErrorCode, Hands, NotificationStatus, sql};
use crate::kernel::store::{StoreError, Tx};

/// Claims of a cycle; it begins at the insertion and at each retry by hand. Each may be one message.
const CLAIMS_PER_CYCLE: i64 = 3;
/// A claim that is older than this is not repeated: who needed the lead has found it in the list by now.
const GIVEN_UP_AFTER_MS: i64 = 24 * 60 * 60 * 1000;
/// Old claims that are looked at; more than this process ever has in hand.
const LOOKED_AT: i64 = 256;

/// A lead that may be next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    row: i64,
    /// Its id.
    pub(crate) lead_id: String,
}

/// What taking a candidate led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is this worker's to send.
    Claimed {
        /// The lead.
        lead_id: String,
        /// The id its form gave it, for the log.
        request_id: Option<String>,
        /// The number of this attempt: the fence of [`claim::complete_attempt`].
        attempt: i64,
        /// What to send, or the code under which to complete it at once.
        summary: Result<String, ErrorCode>,
    },
    /// It has failed and is not tried again by itself.
    GivenUp,
    /// Somebody else has it, or has dealt with it.
    Nothing,
}

/// The lead to take next: the oldest claim that may be taken over and is not in hand, else the one that waits longest.
///
/// # Errors
/// The store's.
pub(crate) fn next_for_worker(tx: &Tx<'_>, hands: &Hands) -> Result<Option<Candidate>, StoreError> {
    let (before, after) = claim::not_to_be_believed(tx.now());
    let stale = sql::claim::oldest_sending(tx, before, after, LOOKED_AT)?;
    let oldest = stale.into_iter().find(|standing| !hands.holds(&standing.lead.id));
    let next = match oldest {
        Some(standing) => Some(standing),
        None => sql::claim::next_pending(tx)?,
    };
    Ok(next.map(|standing| Candidate { row: standing.row, lead_id: standing.lead.id }))
}

/// Takes a candidate, if it may still be taken.
///
/// # Errors
/// The store's.
pub(crate) fn take(tx: &Tx<'_>, candidate: &Candidate) -> Result<Taken, StoreError> {
    let Some(standing) = sql::claim::find_row(tx, candidate.row)? else { return Ok(Taken::Nothing) };
    if standing.lead.id != candidate.lead_id || !standing.is_claimable(tx.now()) {
        return Ok(Taken::Nothing);
    }
    if standing.cycle_claims >= CLAIMS_PER_CYCLE || is_hopeless(&standing, tx.now()) {
        claim::fail(tx, standing, &ErrorCode::NOTIFICATION_FAILED)?;
        return Ok(Taken::GivenUp);
    }
    let attempt = sql::claim::mark_sending(tx, standing.row, 1)?;
    let summary = match summary::of_row(tx, standing.row) {
        Ok(text) => Ok(text),
        Err(SummaryError::Empty) => Err(ErrorCode::SUMMARY_EMPTY),
        Err(SummaryError::NotFound) => Err(ErrorCode::SUMMARY_FAILED),
        Err(SummaryError::Store(fault)) if fault.is_store_fault() => return Err(fault),
        Err(SummaryError::Store(_)) => Err(ErrorCode::SUMMARY_FAILED),
    };
    Ok(Taken::Claimed { lead_id: standing.lead.id, request_id: standing.lead.request_id, attempt, summary })
}

/// Since when it is `sending` is known, and that is too long ago.
fn is_hopeless(standing: &Standing, now: i64) -> bool {
    let since = standing.attempted_at.filter(|_| standing.status == NotificationStatus::Sending);
    since.is_some_and(|at| now.saturating_sub(at) > GIVEN_UP_AFTER_MS)
}

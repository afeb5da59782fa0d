//! Who may tell the broker of a lead, and how that ended: the contract's `claim_broker_lead_notification` and
//! `complete_broker_lead_notification`.
//!
//! Relies on: single writer. A lead is read and then changed in one transaction of the write door, which nobody else's
//! write can come between.

use super::{ErrorCode, Hands, NotificationStatus, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::events::{Event, Lead};
use crate::kernel::store::{StoreError, Tx};

/// A claim that is older than this and was never completed may be taken over (contract: 15 minutes).
pub(super) const STALE_AFTER_MS: i64 = 15 * 60 * 1000;

/// The instants before and after which a claim is not believed now.
pub(super) const fn not_to_be_believed(now: UnixMs) -> (UnixMs, UnixMs) {
    (now.saturating_sub(STALE_AFTER_MS), now.saturating_add(STALE_AFTER_MS))
}

/// What the callers of the RPC surface are told of a lead that is not there, or not under this request id.
const MISSING: &str = "missing";

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Whether the caller is the one who sends now.
    pub(crate) claimed: bool,
    /// Where the notification stands, or `missing`.
    pub(crate) current_status: &'static str,
    /// How often it was claimed so far; the number of this attempt if `claimed`.
    pub(crate) attempt_count: i64,
}

/// How a send ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Telegram confirmed it.
    Sent,
    /// It failed, or nobody knows whether it arrived.
    Failed(ErrorCode),
}

/// What recording an ending led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// The notification is sent.
    Sent,
    /// It has failed.
    Failed,
    /// There is no such claim any more: nothing was changed.
    Unchanged,
}

impl Completed {
    /// The contract's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Where a lead stands, as every step reads it before it decides.
#[derive(Debug)]
pub(super) struct Standing {
    /// The row. The statements that follow use it and not the id: that is a text, and another program may have written
    /// one that does not come back as it was read.
    pub(super) row: i64,
    pub(super) lead: Lead,
    pub(super) status: NotificationStatus,
    pub(super) attempts: i64,
    pub(super) cycle_claims: i64,
    pub(super) attempted_at: Option<UnixMs>,
    pub(super) retries: i64,
}

impl Standing {
    /// For how long it has been `sending`, if it is. `i64::MAX` if nobody noted since when: that counts as old.
    pub(super) fn sending_for_ms(&self, now: UnixMs) -> Option<i64> {
        (self.status == NotificationStatus::Sending)
            .then(|| self.attempted_at.map_or(i64::MAX, |at| now.saturating_sub(at)))
    }

    /// Whether it waits, or its claim is too old to be believed. One from as far in the future is none either: the clock
    /// was wrong then or is now, and nobody would take the lead over before that day has come.
    pub(super) fn is_claimable(&self, now: UnixMs) -> bool {
        let is_stale = self.sending_for_ms(now).is_some_and(|age| !(-STALE_AFTER_MS..=STALE_AFTER_MS).contains(&age));
        self.status == NotificationStatus::Pending || is_stale
    }
}

/// The lead, if the request id is its own too; no request id matches a lead that has none.
pub(super) fn find(tx: &Tx<'_>, lead_id: &str, request_id: Option<&str>) -> Result<Option<Standing>, StoreError> {
    let found = sql::claim::find(tx, lead_id)?;
    Ok(found.filter(|standing| standing.lead.request_id.as_deref() == request_id))
}

/// Claims a lead for a caller of the RPC surface: the caller sends if the answer says so, and nobody else does. A lead
/// that this process has in hand is refused.
///
/// # Errors
/// The store's.
pub(crate) fn claim(tx: &Tx<'_>, lead_id: &str, request_id: Option<&str>, hands: &Hands) -> Result<Claim, StoreError> {
    let Some(standing) = find(tx, lead_id, request_id)? else {
        return Ok(Claim { claimed: false, current_status: MISSING, attempt_count: 0 });
    };
    if !standing.is_claimable(tx.now()) || hands.holds(lead_id) {
        let current_status = standing.status.as_str();
        return Ok(Claim { claimed: false, current_status, attempt_count: standing.attempts });
    }
    let attempt_count = sql::claim::mark_sending(tx, standing.row, 0)?;
    Ok(Claim { claimed: true, current_status: NotificationStatus::Sending.as_str(), attempt_count })
}

/// Records how a claimed send ended, with its event. Only a lead that is `sending` is changed, and with an `attempt`
/// only if that is still the last one: who comes back after the claim was taken over changes nothing.
///
/// # Errors
/// The store's.
pub(crate) fn complete(
    tx: &Tx<'_>,
    lead_id: &str,
    request_id: Option<&str>,
    ending: &Ending,
    attempt: Option<i64>,
) -> Result<Completed, StoreError> {
    complete_found(tx, find(tx, lead_id, request_id)?, ending, attempt)
}

/// The same for our own worker, whose attempt is fence enough: a request id that somebody changes while the message is
/// under way must not have it sent again.
///
/// # Errors
/// The store's.
pub(super) fn complete_attempt(
    tx: &Tx<'_>,
    lead_id: &str,
    ending: &Ending,
    attempt: i64,
) -> Result<Completed, StoreError> {
    complete_found(tx, sql::claim::find(tx, lead_id)?, ending, Some(attempt))
}

fn complete_found(
    tx: &Tx<'_>,
    found: Option<Standing>,
    ending: &Ending,
    attempt: Option<i64>,
) -> Result<Completed, StoreError> {
    let Some(standing) = found else { return Ok(Completed::Unchanged) };
    let is_last = attempt.is_none_or(|attempt| attempt == standing.attempts);
    if standing.status != NotificationStatus::Sending || !is_last {
        return Ok(Completed::Unchanged);
    }
    match ending {
        Ending::Sent => {
            sent(tx, standing)?;
            Ok(Completed::Sent)
        }
        Ending::Failed(code) => {
            fail(tx, standing, code)?;
            Ok(Completed::Failed)
        }
    }
}

fn sent(tx: &Tx<'_>, standing: Standing) -> Result<(), StoreError> {
    let attempt = standing.attempts;
    sql::claim::mark_sent(tx, standing.row)?;
    let payload = serde_json::json!({ "attempt": attempt });
    sql::claim::insert_event(tx, standing.row, "notification_sent", &payload)?;
    tx.publish(&Event::LeadNotificationSent { lead: standing.lead, attempt })
}

/// The notification has failed, and is not repeated by itself.
pub(super) fn fail(tx: &Tx<'_>, standing: Standing, code: &ErrorCode) -> Result<(), StoreError> {
    let (attempt, error_code) = (standing.attempts, code.as_str());
    sql::claim::mark_failed(tx, standing.row, error_code)?;
    let payload = serde_json::json!({ "attempt": attempt, "error_code": error_code });
    sql::claim::insert_event(tx, standing.row, "notification_failed", &payload)?;
    let error_code = error_code.to_owned();
    tx.publish(&Event::LeadNotificationFailed { lead: standing.lead, attempt, error_code })
}

/// What a caller is told of where a lead stands.
pub(super) fn status_of(standing: Option<&Standing>) -> &'static str {
    standing.map_or(MISSING, |standing| standing.status.as_str())
}

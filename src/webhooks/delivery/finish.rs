//! How an attempt ended, and what follows for the delivery. The journal's row and the delivery's new state are one write,
//! fenced by the attempt's number.

use super::interrupted::after_interruption;
use super::trouble;
use super::{Condition, DeliveryStatus, Ended, Finished, LONGEST_HOLD_MS, Policy, Settled, Trouble, schedule};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::attempt::{Journaled, Outcome};
use crate::webhooks::response::ErrorClass;
use crate::webhooks::sql;

/// A delivery that is being sent, as the end of its attempt finds it.
#[derive(Clone, Debug)]
pub(in crate::webhooks) struct UnderWay {
    /// Failures that the schedule has counted.
    pub(in crate::webhooks) step: i64,
    /// Attempts in a row, the last ones, that were cut off.
    pub(in crate::webhooks) interruptions: i64,
    /// When it was due, or is again after the attempt that a person asked for.
    pub(in crate::webhooks) next_attempt_at: Option<UnixMs>,
    /// What a failure leads back to, if a person asked for the attempt.
    pub(in crate::webhooks) resumes: Option<DeliveryStatus>,
}

/// Where a delivery stands from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::webhooks) struct Standing {
    pub(in crate::webhooks) status: DeliveryStatus,
    pub(in crate::webhooks) step: i64,
    pub(in crate::webhooks) interruptions: i64,
    pub(in crate::webhooks) next_attempt_at: Option<UnixMs>,
    /// A person's request that still has to be served.
    pub(in crate::webhooks) resend_requested_at: Option<UnixMs>,
    pub(in crate::webhooks) last_error: String,
}

/// Records how a claimed attempt ended. One that is no longer the last of its delivery, or was taken up as interrupted,
/// changes nothing.
///
/// # Errors
/// The store's.
pub(crate) fn finish(tx: &Tx<'_>, ended: &Ended, policy: &Policy) -> Result<Finished, StoreError> {
    let Some(code) = ended.outcome.code() else { return delivered(tx, ended) };
    let Some((under_way, condition)) = sql::finish::find_under_way(tx, &ended.claim)? else { return Ok(fenced()) };
    if ended.outcome.error == Some(ErrorClass::Interrupted) {
        // A fault of ours, noticed at once: as if it were taken up later.
        let standing = after_interruption(tx.now(), &under_way, policy);
        return record(tx, ended, &under_way, &standing, Vec::new());
    }
    let trouble = trouble::of_failure(tx, ended, &condition, policy)?;
    let is_gone = ended.outcome.is_gone() && is_same_address(ended, &condition);
    let held_until = trouble.iter().find_map(|trouble| match trouble {
        Trouble::Held(until) => Some(*until),
        _ => None,
    });
    let standing = match under_way.resumes {
        Some(DeliveryStatus::Pending) | None if is_gone => failed(&under_way, code),
        Some(before) => returned(&under_way, before, code),
        None => after_failure(tx.now(), &under_way, held_until, policy, code),
    };
    record(tx, ended, &under_way, &standing, trouble)
}

fn record(
    tx: &Tx<'_>,
    ended: &Ended,
    under_way: &UnderWay,
    standing: &Standing,
    trouble: Vec<Trouble>,
) -> Result<Finished, StoreError> {
    sql::finish::settle(tx, ended.claim.delivery, standing)?;
    sql::finish::journal(tx, &journaled(ended))?;
    let settled = match (under_way.resumes, standing.status) {
        (Some(before), now) if before == now => Settled::Returned(before),
        (_, DeliveryStatus::Pending) => standing.next_attempt_at.map_or(Settled::Failed, Settled::Again),
        _ => Settled::Failed,
    };
    Ok(Finished { settled, trouble })
}

fn fenced() -> Finished {
    Finished { settled: Settled::Fenced, trouble: Vec::new() }
}

fn delivered(tx: &Tx<'_>, ended: &Ended) -> Result<Finished, StoreError> {
    let Some(was_failing) = sql::finish::mark_delivered(tx, &ended.claim)? else { return Ok(fenced()) };
    sql::finish::journal(tx, &journaled(ended))?;
    if was_failing {
        sql::finish::clear_failing(tx, ended.claim.destination.endpoint)?;
    }
    Ok(Finished { settled: Settled::Delivered, trouble: Vec::new() })
}

fn journaled(ended: &Ended) -> Journaled<'_> {
    let Ended { claim, outcome } = ended;
    let Outcome { http_status, error, response_body, resolved_ip, .. } = outcome;
    Journaled {
        delivery: claim.delivery,
        number: claim.number,
        trigger: claim.trigger,
        started_at: claim.started_at,
        duration_ms: Some(outcome.duration_ms()),
        http_status: *http_status,
        error: *error,
        response_body: response_body.as_deref(),
        resolved_ip: resolved_ip.map(|ip| ip.to_string()),
    }
}

/// Whether the endpoint still has the address that was sent to. What another one said is nothing to hold against it.
pub(super) fn is_same_address(ended: &Ended, condition: &Condition) -> bool {
    condition.url == ended.claim.destination.url
}

/// It is not tried again by itself.
fn failed(under_way: &UnderWay, code: String) -> Standing {
    Standing {
        status: DeliveryStatus::Failed,
        step: under_way.step.saturating_add(1),
        interruptions: 0,
        next_attempt_at: None,
        resend_requested_at: None,
        last_error: code,
    }
}

/// It stands where it stood before a person asked for the attempt.
fn returned(under_way: &UnderWay, before: DeliveryStatus, code: String) -> Standing {
    Standing {
        status: before,
        step: under_way.step,
        interruptions: 0,
        next_attempt_at: under_way.next_attempt_at.filter(|_| before == DeliveryStatus::Pending),
        resend_requested_at: None,
        last_error: code,
    }
}

/// The schedule has one failure more, and not before the receiver wants to hear of us again.
pub(super) fn after_failure(
    now: UnixMs,
    under_way: &UnderWay,
    held_until: Option<UnixMs>,
    policy: &Policy,
    code: String,
) -> Standing {
    let step = under_way.step.saturating_add(1);
    let next = schedule::next(step, now, policy.jitter);
    let held_until = held_until.map(|until| until.min(now.saturating_add(LONGEST_HOLD_MS)));
    Standing {
        status: if next.is_some() { DeliveryStatus::Pending } else { DeliveryStatus::Failed },
        step,
        interruptions: 0,
        next_attempt_at: next.map(|at| at.max(held_until.unwrap_or(at))),
        resend_requested_at: None,
        last_error: code,
    }
}

//! What a failed attempt means for its endpoint: it is gone, wants to be left alone, or has had nothing for so long that
//! its owner is warned and, later, nothing more is sent there. What is known to be our own fault
//! (`ErrorClass::Interrupted`) does not come here.

use super::claim::believed;
use super::finish::is_same_address;
use super::{Condition, Ended, LONGEST_HOLD_MS, Policy, Trouble};
use crate::kernel::clock::UnixMs;
use crate::kernel::events::{EndpointTrouble, Event};
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::endpoint::DisabledReason;
use crate::webhooks::{DELIVERIES, sql};

/// The owner is warned when this part of the time is over: after a day, if it is five.
const WARNED_AT_ONE_OF: i64 = 5;

/// Draws the consequences of a failed attempt for its endpoint, and writes those that are new.
pub(super) fn of_failure(
    tx: &Tx<'_>,
    ended: &Ended,
    condition: &Condition,
    policy: &Policy,
) -> Result<Vec<Trouble>, StoreError> {
    if !condition.is_live || !is_same_address(ended, condition) {
        return Ok(Vec::new());
    }
    let endpoint = ended.claim.destination.endpoint;
    if ended.outcome.is_gone() {
        return Ok(vec![disable(tx, endpoint, condition, DisabledReason::Gone)?]);
    }
    let mut trouble = Vec::new();
    trouble.extend(hold(tx, ended, condition)?);
    // A failure from the future was noted under another clock.
    let since = condition.failing_since.filter(|since| *since <= tx.now());
    if since.is_none() {
        sql::finish::mark_failing(tx, endpoint)?;
    }
    let failing_ms = tx.now().saturating_sub(since.unwrap_or(tx.now()));
    let disable_after_ms = i64::try_from(policy.disable_after.as_millis()).unwrap_or(i64::MAX);
    if disable_after_ms == 0 {
        return Ok(trouble);
    }
    let is_warned = since.is_some() && condition.warned_at.is_some();
    if !is_warned && failing_ms >= disable_after_ms / WARNED_AT_ONE_OF {
        sql::finish::mark_warned(tx, endpoint)?;
        tx.publish(&Event::EndpointFailing(told(condition, DisabledReason::Failing, since)))?;
        trouble.push(Trouble::Failing);
    }
    if failing_ms >= disable_after_ms {
        trouble.push(disable(tx, endpoint, condition, DisabledReason::Failing)?);
    }
    Ok(trouble)
}

fn hold(tx: &Tx<'_>, ended: &Ended, condition: &Condition) -> Result<Option<Trouble>, StoreError> {
    let Some(pause) = ended.outcome.pause_asked_for() else { return Ok(None) };
    let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX).min(LONGEST_HOLD_MS);
    let until = tx.now().saturating_add(pause_ms);
    // Answers of the same moment may ask for less: the longest counts.
    if let Some(known) = believed(condition.held_until, tx.now()).filter(|known| *known >= until) {
        return Ok(Some(Trouble::Held(known)));
    }
    sql::finish::hold(tx, ended.claim.destination.endpoint, until)?;
    Ok(Some(Trouble::Held(until)))
}

fn disable(tx: &Tx<'_>, endpoint: i64, condition: &Condition, reason: DisabledReason) -> Result<Trouble, StoreError> {
    sql::endpoints::disable(tx, endpoint, reason)?;
    tx.publish(&Event::EndpointDisabled(told(condition, reason, condition.failing_since)))?;
    tx.wake(DELIVERIES);
    Ok(Trouble::Disabled(reason))
}

fn told(condition: &Condition, reason: DisabledReason, failing_since: Option<UnixMs>) -> EndpointTrouble {
    let Condition { endpoint_id, tenant, .. } = condition.clone();
    EndpointTrouble { endpoint_id, tenant, reason, failing_since }
}

//! Attempts that were cut off: the process ended while they were under way, or lost them. Whether the receiver has the
//! event is unknown, so it is sent again; the journal says that there was an attempt.

use std::collections::HashSet;

use super::finish::{Standing, UnderWay, after_failure};
use super::{DeliveryStatus, Policy};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::attempt::{Journaled, Trigger};
use crate::webhooks::response::ErrorClass;
use crate::webhooks::sql;

/// So many in a row are no accident any more: it may be the delivery that ends the process.
const TOO_MANY: i64 = 3;
/// Attempts that are taken up in one write.
const BATCH: usize = 500;
/// No lease is longer. One that ends later was taken under another clock.
const LONGEST_LEASE_MS: i64 = 60 * 60 * 1000;

/// An attempt that may have been cut off.
#[derive(Clone, Debug)]
pub(in crate::webhooks) struct CutOff {
    pub(in crate::webhooks) delivery: i64,
    pub(in crate::webhooks) number: i64,
    pub(in crate::webhooks) started_at: UnixMs,
    pub(in crate::webhooks) under_way: UnderWay,
}

/// What was taken up at once.
#[derive(Debug, Default)]
pub(crate) struct TakenUp {
    /// How many attempts.
    pub(crate) taken: usize,
    /// Deliveries of which nothing could be written, and why. They stay as they are.
    pub(crate) stuck: Vec<(i64, String)>,
}

/// Why nothing could be written of a delivery.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error("taking it up panicked")]
    Panicked,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes up attempts whose lease is of another start of this program, or over, but those that are `left_alone`: what is in
/// hand, whatever the clock says, and what could not be taken up before. Each is a savepoint of its own, so that a row
/// which cannot be read or changed costs no other. Fewer than there may be are taken up at once: repeat it, with those
/// that were stuck left alone too, until it finds none.
///
/// # Errors
/// The store's, when the transaction as a whole no longer stands.
pub(crate) fn take_up_interrupted(
    tx: &Tx<'_>,
    left_alone: &HashSet<i64>,
    policy: &Policy,
) -> Result<TakenUp, StoreError> {
    let latest = tx.now().saturating_add(LONGEST_LEASE_MS);
    // Those left alone may be among them, and must not keep others out.
    let found = sql::finish::cut_off(tx, latest, left_alone.len().saturating_add(BATCH))?;
    let mut all = TakenUp::default();
    for delivery in found.into_iter().filter(|delivery| !left_alone.contains(delivery)) {
        match tx.attempt(|| Stuck::Panicked, || take_up(tx, delivery, policy))? {
            Ok(()) => all.taken += 1,
            Err(stuck) => all.stuck.push((delivery, stuck.to_string())),
        }
    }
    if all.taken > 0 {
        tx.wake(crate::webhooks::DELIVERIES);
    }
    Ok(all)
}

fn take_up(tx: &Tx<'_>, delivery: i64, policy: &Policy) -> Result<(), Stuck> {
    let cut_off = sql::finish::load_cut_off(tx, delivery)?;
    sql::finish::settle(tx, delivery, &after_interruption(tx.now(), &cut_off.under_way, policy))?;
    sql::finish::journal(tx, &journaled(&cut_off))?;
    Ok(())
}

/// At once again, by whatever caused the attempt; after too many in a row, what a person asked for is given up, and the
/// schedule counts a failure.
pub(super) fn after_interruption(now: UnixMs, under_way: &UnderWay, policy: &Policy) -> Standing {
    let interruptions = under_way.interruptions.saturating_add(1);
    let is_too_many = interruptions >= TOO_MANY;
    let last_error = ErrorClass::Interrupted.as_str().to_owned();
    if let Some(before) = under_way.resumes {
        return Standing {
            status: before,
            step: under_way.step,
            // The next time that a person asks begins anew.
            interruptions: if is_too_many { 0 } else { interruptions },
            next_attempt_at: under_way.next_attempt_at.filter(|_| before == DeliveryStatus::Pending),
            resend_requested_at: (!is_too_many).then_some(now),
            last_error,
        };
    }
    if is_too_many {
        let standing = after_failure(now, under_way, None, policy, last_error);
        return Standing { interruptions, ..standing };
    }
    Standing {
        status: DeliveryStatus::Pending,
        step: under_way.step,
        interruptions,
        next_attempt_at: Some(now),
        resend_requested_at: None,
        last_error,
    }
}

fn journaled(cut_off: &CutOff) -> Journaled<'_> {
    Journaled {
        delivery: cut_off.delivery,
        number: cut_off.number,
        trigger: if cut_off.under_way.resumes.is_some() { Trigger::Manual } else { Trigger::Schedule },
        started_at: cut_off.started_at,
        duration_ms: None,
        http_status: None,
        error: Some(ErrorClass::Interrupted),
        response_body: None,
        resolved_ip: None,
    }
}

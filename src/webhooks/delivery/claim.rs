//! What may go, and taking it. Nothing is claimed that has no slot: the caller says how many of each endpoint.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Claim, Destination, LONGEST_HOLD_MS, Message, Pick, Tenants, Waiting};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::attempt::Trigger;
use crate::webhooks::sql;

/// A row that was claimed: which, and what it leads to.
#[derive(Clone, Copy, Debug)]
pub(in crate::webhooks) struct ClaimedRow {
    pub(in crate::webhooks) delivery: i64,
    pub(in crate::webhooks) message: i64,
    pub(in crate::webhooks) number: i64,
    pub(in crate::webhooks) created_at: UnixMs,
}

/// An endpoint as a claim finds it.
#[derive(Clone, Debug)]
pub(in crate::webhooks) struct Found {
    pub(in crate::webhooks) endpoint_id: String,
    pub(in crate::webhooks) url: String,
    pub(in crate::webhooks) held_until: Option<UnixMs>,
    /// Whether a person has asked for one of its deliveries.
    pub(in crate::webhooks) is_asked_for: bool,
}

/// Every active endpoint that has something to send, with when the first of it may go. What it costs grows with the
/// number of such endpoints, and not with what waits.
///
/// # Errors
/// The store's.
pub(crate) fn waiting(tx: &Tx<'_>) -> Result<Vec<Waiting>, StoreError> {
    let mut found = BTreeMap::new();
    for row in sql::claim::scheduled(tx)?.into_iter().chain(sql::claim::asked_for(tx)?) {
        let due_at = row.due_at.max(believed(row.held_until, tx.now()).unwrap_or(i64::MIN));
        let known = found.entry(row.waiting.endpoint).or_insert(Waiting { due_at, ..row.waiting });
        known.due_at = known.due_at.min(due_at);
    }
    Ok(found.into_values().collect())
}

/// Whether one tenant has all endpoints.
///
/// # Errors
/// The store's.
pub(crate) fn tenants(tx: &Tx<'_>) -> Result<Tenants, StoreError> {
    Ok(if sql::claim::has_several_tenants(tx)? { Tenants::Several } else { Tenants::One })
}

/// Claims what is due of each pick, what a person asked for before what the schedule brings. Each claim is a lease of
/// `lease_ms` and the beginning of an attempt; what is claimed must be sent and [finished](super::finish()).
///
/// # Errors
/// The store's.
pub(crate) fn claim(tx: &Tx<'_>, picks: &[Pick], lease_ms: i64) -> Result<Vec<Claim>, StoreError> {
    let until = tx.now().saturating_add(lease_ms);
    let mut messages = HashMap::new();
    let mut claims = Vec::new();
    for pick in picks.iter().filter(|pick| pick.most > 0) {
        let Some(found) = sql::claim::find_active(tx, pick.endpoint)? else { continue };
        if believed(found.held_until, tx.now()).is_some_and(|until| until > tx.now()) {
            continue;
        }
        let rows = claim_rows(tx, pick, found.is_asked_for, until)?;
        if rows.is_empty() {
            continue;
        }
        let secrets = sql::secrets::signing(tx, pick.endpoint)?;
        let Found { endpoint_id, url, .. } = found;
        let destination = Arc::new(Destination { endpoint: pick.endpoint, endpoint_id, url, secrets });
        for (row, trigger) in rows {
            let message = match messages.get(&row.message) {
                Some(known) => Arc::clone(known),
                None => {
                    let read: Arc<Message> = Arc::new(sql::claim::message(tx, row.message)?);
                    messages.insert(row.message, Arc::clone(&read));
                    read
                }
            };
            let ClaimedRow { delivery, number, created_at, .. } = row;
            let (started_at, destination) = (tx.now(), Arc::clone(&destination));
            claims.push(Claim { delivery, number, trigger, started_at, created_at, destination, message });
        }
    }
    Ok(claims)
}

fn claim_rows(
    tx: &Tx<'_>,
    pick: &Pick,
    is_asked_for: bool,
    until: UnixMs,
) -> Result<Vec<(ClaimedRow, Trigger)>, StoreError> {
    let as_of = |trigger| move |row| (row, trigger);
    let mut rows = Vec::new();
    if is_asked_for {
        rows.extend(sql::claim::claim_asked_for(tx, pick, until)?.into_iter().map(as_of(Trigger::Manual)));
    }
    let left = Pick { most: pick.most.saturating_sub(rows.len()), ..*pick };
    if left.most > 0 {
        rows.extend(sql::claim::claim_due(tx, &left, until)?.into_iter().map(as_of(Trigger::Schedule)));
    }
    Ok(rows)
}

/// Until when an endpoint is left alone. One that would be for longer than any receiver is granted was held under
/// another clock, and is not.
pub(in crate::webhooks) fn believed(held_until: Option<UnixMs>, now: UnixMs) -> Option<UnixMs> {
    held_until.filter(|until| *until <= now.saturating_add(LONGEST_HOLD_MS))
}

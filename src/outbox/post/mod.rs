//! Events that tenants post: one or a batch, all or nothing, and the same answer for the same request.
//!
//! The data is kept as the JSON text that came, byte for byte; it is looked at and never written anew.

mod check;

use std::collections::HashSet;

use super::{Error, OUTBOX_EVENTS, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::events::is_reserved;
use crate::kernel::id;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;

pub(crate) use check::{Checked, is_type_name};

/// The most events of one request.
pub(crate) const MOST_EVENTS: usize = 1000;
/// How long a key is remembered.
pub(crate) const KEY_LIVES_MS: i64 = 24 * 60 * 60 * 1000;

/// An event as a tenant posts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewEvent {
    /// Its id, a UUID; made here if it has none.
    pub(crate) event_id: Option<String>,
    /// The dotted type.
    pub(crate) event_type: String,
    /// The version of its fields, from one.
    pub(crate) version: i64,
    /// What it is about: the kind.
    pub(crate) aggregate_type: String,
    /// What it is about: the id.
    pub(crate) aggregate_id: String,
    /// When it happened; now, if nothing is said.
    pub(crate) occurred_at: Option<UnixMs>,
    /// The raw JSON text of an object.
    pub(crate) payload: String,
}

/// A key under which the same request gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    /// As the client chose it.
    pub(crate) key: String,
    /// SHA-256 over the path and the raw body.
    pub(crate) body_hash: [u8; 32],
}

/// A request to publish events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Whose they are.
    pub(crate) tenant: TenantId,
    /// The key, if the client gave one.
    pub(crate) key: Option<IdempotencyKey>,
    /// The events, at least one.
    pub(crate) events: Vec<NewEvent>,
    /// Whether only registered types are taken (`events.strict_types`).
    pub(crate) strict: bool,
}

/// Stores the events, and answers their ids in their order. A request that is known by its key gets the answer it had,
/// and an event that is known by its id is not stored again.
///
/// # Errors
/// [`Error`]; then nothing of the request was stored.
pub(crate) fn post(tx: &Tx<'_>, posted: &Posted) -> Result<Vec<String>, Error> {
    if let Some(key) = &posted.key {
        check::key(&key.key)?;
        if let Some(answer) = answered(tx, &posted.tenant, key)? {
            return Ok(answer);
        }
    }
    check::count(posted.events.len())?;
    let mut known = HashSet::new();
    let mut ids = Vec::with_capacity(posted.events.len());
    for (index, event) in posted.events.iter().enumerate() {
        let checked = check::event(index, event)?;
        if !known.contains(event.event_type.as_str()) {
            check_type(tx, posted, index)?;
            known.insert(event.event_type.as_str());
        }
        ids.push(store(tx, &posted.tenant, index, &checked)?);
    }
    if let Some(key) = &posted.key {
        let answer = serde_json::json!(ids).to_string();
        sql::keys::remember(tx, &posted.tenant, key, &answer)?;
    }
    tx.wake(OUTBOX_EVENTS);
    Ok(ids)
}

/// What was answered under the key, if that was lately; another request under it is refused.
fn answered(tx: &Tx<'_>, tenant: &TenantId, key: &IdempotencyKey) -> Result<Option<Vec<String>>, Error> {
    let Some(known) = sql::keys::find(tx, tenant, &key.key)? else { return Ok(None) };
    // Also one from far ahead, which a clock that was wrong has left.
    if tx.now().abs_diff(known.created_at) >= KEY_LIVES_MS.unsigned_abs() {
        return Ok(None);
    }
    if known.body_hash != key.body_hash {
        return Err(Error::KeyConflict);
    }
    // A row of another program may hold anything: then it is as if there was none.
    Ok(serde_json::from_str(&known.event_ids).ok())
}

fn check_type(tx: &Tx<'_>, posted: &Posted, index: usize) -> Result<(), Error> {
    let event_type = &posted.events[index].event_type;
    if is_reserved(event_type) {
        return Err(Error::ReservedType { index, event_type: event_type.clone() });
    }
    if posted.strict && !sql::registry::is_registered(tx, &posted.tenant, event_type)? {
        return Err(Error::UnregisteredType { index, event_type: event_type.clone() });
    }
    Ok(())
}

fn store(tx: &Tx<'_>, tenant: &TenantId, index: usize, event: &Checked<'_>) -> Result<String, Error> {
    let event_id = match &event.event_id {
        Some(own) => own.clone(),
        None => id::uuid_v7(tx.now()),
    };
    if sql::record::insert_posted(tx, tenant, &event_id, event)? || sql::record::is_same(tx, tenant, &event_id, event)?
    {
        return Ok(event_id);
    }
    Err(Error::EventIdConflict { index, event_id })
}

//! Emitting: one event, one row, in the caller's transaction.

use serde_json::{Map, Value};

use super::{BOT_EVENTS, Error, sql};
use crate::kernel::contract::{BotEventType, Chat};
use crate::kernel::events::Event;
use crate::kernel::store::{StoreError, Tx};

/// An event to be emitted.
#[derive(Clone, Debug)]
pub(crate) struct NewBotEvent {
    pub(crate) event_type: BotEventType,
    pub(crate) telegram_id: Option<i64>,
    pub(crate) magnet_uid: Option<i64>,
    pub(crate) payload: Map<String, Value>,
    /// A caller's own key: a second event with it is not emitted.
    pub(crate) dedup_key: Option<String>,
}

/// What emitting did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// A new event of this id.
    New(i64),
    /// The dedup key was known; the first event's id.
    Known(i64),
}

/// Emits an event in the caller's transaction and wakes the consumer after its commit.
///
/// # Errors
/// [`Error::NoSubject`] without a chat and a member; else the store's.
pub(crate) fn emit(tx: &Tx<'_>, event: &NewBotEvent) -> Result<Emitted, Error> {
    if event.telegram_id.is_none() && event.magnet_uid.is_none() {
        return Err(Error::NoSubject);
    }
    if let Some(key) = &event.dedup_key
        && let Some(first) = sql::find_by_dedup_key(tx, key)?
    {
        return Ok(Emitted::Known(first));
    }
    let id = sql::insert(tx, event)?;
    tx.wake(BOT_EVENTS);
    Ok(Emitted::New(id))
}

/// Records a published domain event that is also a bot event; the others are none of the bot's business.
///
/// # Errors
/// The store's.
pub(crate) fn record(tx: &Tx<'_>, event: &Event) -> Result<(), StoreError> {
    let (Some(event_type), Some(member)) = (event.entry().bot, event.member()) else { return Ok(()) };
    let telegram_id = member.chat.map(|chat| match chat {
        Chat::Bound(id) | Chat::Preview(id) => id,
    });
    let payload = event.bot_payload();
    let event = NewBotEvent { event_type, telegram_id, magnet_uid: Some(member.uid), payload, dedup_key: None };
    sql::insert(tx, &event)?;
    tx.wake(BOT_EVENTS);
    Ok(())
}

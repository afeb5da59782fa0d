//! Taking updates in: a batch and what it means for the next fetch, in one transaction.

use super::{UPDATES, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// After a week without updates Telegram counts anew, from a random number: an older offset would confirm what it never
/// showed, or hold what it has. A day before that it is left out.
const OFFSET_HOLDS_MS: i64 = 6 * 86_400_000;

/// An update as it came, with what is known of it before anybody looks at what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Its number.
    pub(crate) update_id: i64,
    /// Whose order it is in; 0 for an update of no chat.
    pub(crate) chat_id: i64,
    /// Its field's name in the Bot API.
    pub(crate) kind: String,
    /// Its text.
    pub(crate) raw: String,
    /// The id under which a pressed button waits for an answer.
    pub(crate) tap: Option<String>,
}

/// Where the reading of a bot's updates stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What the next fetch confirms everything below of.
    pub(crate) next_offset: Option<i64>,
    /// The webhook that we set last.
    pub(crate) webhook_url: Option<String>,
}

/// The row behind [`Standing`].
pub(super) struct Intake {
    pub(super) next_offset: Option<i64>,
    pub(super) stored_at: Option<UnixMs>,
    pub(super) webhook_url: Option<String>,
}

/// Stores a batch in the order given, with the offset that follows from it, and wakes whoever handles updates. Returns
/// the places in the batch of those that were new.
///
/// # Errors
/// The store's: then nothing of the batch may be acknowledged.
pub(crate) fn store(
    tx: &Tx<'_>,
    bot_id: i64,
    batch: &[Received],
    next_offset: Option<i64>,
) -> Result<Vec<usize>, StoreError> {
    let mut fresh = Vec::new();
    for (at, received) in batch.iter().enumerate() {
        if sql::insert_once(tx, bot_id, received)? == 1 {
            fresh.push(at);
        }
    }
    if let Some(next_offset) = next_offset {
        sql::move_offset(tx, bot_id, next_offset)?;
    }
    if !fresh.is_empty() {
        tx.wake(UPDATES);
    }
    Ok(fresh)
}

/// Where the reading of this bot's updates stands.
///
/// # Errors
/// The store's.
pub(crate) fn standing(tx: &Tx<'_>, bot_id: i64) -> Result<Standing, StoreError> {
    let Some(intake) = sql::find_intake(tx, bot_id)? else { return Ok(Standing::default()) };
    let oldest = tx.now().saturating_sub(OFFSET_HOLDS_MS);
    let holds = intake.stored_at.is_some_and(|at| at >= oldest);
    Ok(Standing { next_offset: intake.next_offset.filter(|_| holds), webhook_url: intake.webhook_url })
}

/// Remembers the webhook that we set, or that there is none of ours any more.
///
/// # Errors
/// The store's.
pub(crate) fn note_webhook(tx: &Tx<'_>, bot_id: i64, url: Option<&str>) -> Result<(), StoreError> {
    sql::note_webhook(tx, bot_id, url).map(|_| ())
}

//! Handling updates: which may be handled, and what becomes of one.
//!
//! An attempt is fenced by its number: whoever ends another than the last changes nothing.

use super::sql;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Failures that count before an update is dead.
const MOST_FAILURES: i64 = 10;
/// The wait after the first failure is twice this, after each further one twice the one before.
const BACKOFF_MS: i64 = 1_000;
/// The first and the longest wait for a backend that cannot be asked.
const AWAY_MS: i64 = 5_000;
const LONGEST_AWAY_MS: i64 = 60_000;

/// The oldest waiting update of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The row.
    pub(crate) id: i64,
    /// The chat whose head it is.
    pub(crate) chat_id: i64,
}

/// An update that may be handled now.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The row.
    pub(crate) id: i64,
    /// Its text.
    pub(crate) raw: String,
    /// How many attempts have ended: the fence.
    pub(crate) attempts: i64,
    /// When it was stored.
    pub(crate) received_at: UnixMs,
}

/// Why an attempt did not handle its update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why<'a> {
    /// Something failed, and may not fail the next time.
    Failed(&'a str),
    /// The same bytes will fail the same way.
    Hopeless(&'a str),
    /// The backend could not be asked: that is nobody's failure, and counts for nothing.
    BackendAway,
}

/// What follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It waits until then, and its chat with it.
    Waits(UnixMs),
    /// It is dead, and its chat goes on.
    Dead,
    /// Another attempt has ended meanwhile.
    Overtaken,
}

/// What an attempt that failed writes.
pub(super) struct Failed<'a> {
    pub(super) id: i64,
    pub(super) attempts: i64,
    pub(super) failures: i64,
    pub(super) due_at: UnixMs,
    pub(super) code: &'a str,
}

/// The heads that are due, the longest waiting first.
///
/// # Errors
/// The store's.
pub(crate) fn due(tx: &Tx<'_>, limit: usize) -> Result<Vec<Due>, StoreError> {
    sql::due_heads(tx, i64::try_from(limit).unwrap_or(i64::MAX))
}

/// When the next head becomes due that is not due yet.
///
/// # Errors
/// The store's.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    sql::next_due(tx)
}

/// The update if it waits, is due, and is the head of its chat.
///
/// # Errors
/// The store's.
pub(crate) fn find_head(tx: &Tx<'_>, id: i64) -> Result<Option<Waiting>, StoreError> {
    sql::find_head(tx, id)
}

/// Marks an update in the transaction of its effects; false if another attempt has ended meanwhile, and then those
/// effects must not be.
///
/// # Errors
/// The store's.
pub(crate) fn mark_handled(tx: &Tx<'_>, id: i64, attempts: i64) -> Result<bool, StoreError> {
    Ok(sql::mark_handled(tx, id, attempts)? == 1)
}

/// Records an attempt that did not handle its update.
///
/// # Errors
/// The store's.
pub(crate) fn put_off(tx: &Tx<'_>, id: i64, attempts: i64, why: Why<'_>) -> Result<Fate, StoreError> {
    let Some(before) = sql::find_failures(tx, id, attempts)? else { return Ok(Fate::Overtaken) };
    let (code, failures) = match why {
        Why::Failed(code) | Why::Hopeless(code) => (code, before + 1),
        Why::BackendAway => ("backend", before),
    };
    let wait = match why {
        Why::BackendAway => doubled(AWAY_MS, attempts - before).min(LONGEST_AWAY_MS),
        Why::Failed(_) | Why::Hopeless(_) => doubled(BACKOFF_MS, failures),
    };
    let due_at = tx.now().saturating_add(wait);
    let failed = Failed { id, attempts, failures, due_at, code };
    if matches!(why, Why::Hopeless(_)) || failures >= MOST_FAILURES {
        sql::mark_dead(tx, &failed)?;
        return Ok(Fate::Dead);
    }
    sql::mark_waiting(tx, &failed)?;
    Ok(Fate::Waits(due_at))
}

/// `base` doubled so many times; more than a day's worth is not asked for.
fn doubled(base: i64, times: i64) -> i64 {
    base << times.clamp(0, MOST_FAILURES)
}

//! Looking at the outbox: lists, one event whole, and who waits. For people; nothing depends on it.

use serde::Serialize;

use super::sql;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Counts stop here: counting a million rows takes tens of milliseconds and tells nothing more.
pub(crate) const COUNT_CAP: i64 = 10_000;

/// The states a list can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    Open,
    Processed,
    Abandoned,
    Dead,
}

/// Which events are listed: after this id, upward.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) shown: Shown,
    pub(crate) event_type: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

/// An event as people see it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventRow {
    pub(crate) id: i64,
    pub(crate) event_type: String,
    pub(crate) state: String,
    pub(crate) subject: Option<String>,
    pub(crate) telegram_id: Option<String>,
    pub(crate) magnet_uid: Option<i64>,
    pub(crate) payload: Option<serde_json::Value>,
    pub(crate) attempts: i64,
    pub(crate) last_error: Option<String>,
    pub(crate) created_at: String,
    pub(crate) last_attempt_at: Option<String>,
    pub(crate) next_retry_at: Option<String>,
    pub(crate) processed_at: Option<String>,
    pub(crate) dead_lettered_at: Option<String>,
    pub(crate) locked_until: Option<String>,
    pub(crate) dedup_key: Option<String>,
}

/// The outbox in numbers. Counts stop at [`COUNT_CAP`].
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    pub(crate) open: i64,
    pub(crate) waiting_subjects: i64,
    pub(crate) abandoned: i64,
    pub(crate) dead: i64,
    /// Milliseconds since the oldest open event was emitted.
    pub(crate) oldest_open_age_ms: Option<i64>,
    /// The subjects that wait longest for a retry.
    pub(crate) waiting: Vec<Waiting>,
}

/// A subject whose head has failed, and which waits with all its later events.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Waiting {
    pub(crate) subject: String,
    pub(crate) head_id: i64,
    pub(crate) event_type: String,
    pub(crate) attempts: i64,
    pub(crate) next_retry_at: String,
    pub(crate) last_error: Option<String>,
}

/// A page of events, upward by id.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<EventRow>, StoreError> {
    sql::list(tx, filter)
}

/// One event, whole.
///
/// # Errors
/// The store's.
pub(crate) fn find(tx: &Tx<'_>, id: i64) -> Result<Option<EventRow>, StoreError> {
    sql::find_row(tx, id)
}

/// The outbox in numbers.
///
/// # Errors
/// The store's.
pub(crate) fn stats(tx: &Tx<'_>) -> Result<Stats, StoreError> {
    Ok(Stats {
        open: sql::count_open(tx)?,
        waiting_subjects: sql::count_waiting(tx)?,
        abandoned: sql::count_abandoned(tx)?,
        dead: sql::count_dead(tx)?,
        oldest_open_age_ms: oldest_open(tx)?.map(|at| tx.now().saturating_sub(at)),
        waiting: sql::waiting(tx)?,
    })
}

/// The ids of the newest event and of the newest web notification; 0 where there is none.
///
/// # Errors
/// The store's.
pub(crate) fn newest(tx: &Tx<'_>) -> Result<(i64, i64), StoreError> {
    Ok((sql::newest_event(tx)?, sql::newest_notification(tx)?))
}

/// The first hundred web notifications after this id, oldest first: id, member, title.
///
/// # Errors
/// The store's.
pub(crate) fn notifications(tx: &Tx<'_>, after: i64) -> Result<Vec<(i64, i64, String)>, StoreError> {
    sql::notifications(tx, after)
}

/// When the oldest open event was emitted.
///
/// # Errors
/// The store's.
pub(crate) fn oldest_open(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    sql::oldest_open(tx)
}

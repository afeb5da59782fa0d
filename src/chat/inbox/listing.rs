//! What an operator sees of the inbox and may do to it: lists, one update, counts, and the replay of dead ones.

use super::{UPDATES, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The most rows that one page holds.
const LONGEST_PAGE: i64 = 500;
/// Counts stop here.
const COUNT_CAP: i64 = 10_000;

/// Where an update stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits for its turn.
    Pending,
    /// Its effects are in the file.
    Handled,
    /// It was given up, and is kept for a person.
    Dead,
}

impl State {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Pending, Self::Handled, Self::Dead];

    /// The state's name in the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Handled => "handled",
            Self::Dead => "dead",
        }
    }

    /// The state of that name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// Which updates to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only these.
    pub(crate) state: Option<State>,
    /// Only of this chat.
    pub(crate) chat_id: Option<i64>,
    /// Only those behind this id; the last one of the page before.
    pub(crate) after: i64,
    /// How many, 1 to 500.
    pub(crate) limit: i64,
}

/// An update as it is listed; never its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The row.
    pub(crate) id: i64,
    /// Telegram's number of it.
    pub(crate) update_id: i64,
    /// The chat.
    pub(crate) chat_id: i64,
    /// Its field's name in the Bot API.
    pub(crate) kind: String,
    /// Where it stands.
    pub(crate) state: String,
    /// How many attempts have ended.
    pub(crate) attempts: i64,
    /// Those that count, since it was last replayed.
    pub(crate) failures: i64,
    /// How often a person had it handled again.
    pub(crate) replays: i64,
    /// When it may be handled.
    pub(crate) due_at: UnixMs,
    /// How the last attempt failed.
    pub(crate) error_code: Option<String>,
    /// When it was stored.
    pub(crate) received_at: UnixMs,
    /// When it was handled, or died.
    pub(crate) finished_at: Option<UnixMs>,
}

/// Where the inbox stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Waiting updates; the count stops at 10000.
    pub(crate) pending: i64,
    /// Chats whose first update waits; the count stops at 10000.
    pub(crate) waiting_chats: i64,
    /// Dead updates; the count stops at 10000.
    pub(crate) dead: i64,
    /// How long the longest waiting head has been in the file, in milliseconds.
    pub(crate) oldest_age_ms: Option<i64>,
}

/// A page, the oldest first.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
    let page = Filter { limit: filter.limit.clamp(1, LONGEST_PAGE), ..filter.clone() };
    match page.state {
        Some(State::Pending) => sql::list_pending(tx, &page),
        Some(State::Dead) => sql::list_dead(tx, &page),
        Some(State::Handled) | None => sql::list_all(tx, &page),
    }
}

/// One update, with its text if that is still kept.
///
/// # Errors
/// The store's.
pub(crate) fn find(tx: &Tx<'_>, id: i64) -> Result<Option<(Listed, Option<String>)>, StoreError> {
    sql::find(tx, id)
}

/// Dead updates behind `after`, for whoever replays them all.
///
/// # Errors
/// The store's.
pub(crate) fn dead_after(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    sql::dead_after(tx, after, limit)
}

/// Has a dead update handled again, at its old place in its chat: true if it was dead.
///
/// # Errors
/// The store's.
pub(crate) fn replay(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let reopened = sql::reopen(tx, id)? == 1;
    if reopened {
        tx.wake(UPDATES);
    }
    Ok(reopened)
}

/// Counts.
///
/// # Errors
/// The store's.
pub(crate) fn stats(tx: &Tx<'_>) -> Result<Stats, StoreError> {
    let oldest = sql::oldest_head(tx)?;
    Ok(Stats {
        pending: sql::count_pending(tx, COUNT_CAP)?,
        waiting_chats: sql::count_chats(tx, COUNT_CAP)?,
        dead: sql::count_dead(tx, COUNT_CAP)?,
        oldest_age_ms: oldest.map(|at| tx.now().saturating_sub(at).max(0)),
    })
}

/// Deletes up to `limit` updates that were handled before `cutoff`; how many. Dead ones are a person's to decide.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::delete_handled(tx, cutoff, limit)
}

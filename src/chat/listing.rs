//! What an operator sees of the queue and may do to it: lists, counts, and the retry by hand.

use super::kind::{Kind, Lane};
use super::{Error, QUEUED, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The most rows that one page holds.
const LONGEST_PAGE: i64 = 500;

/// Counts stop here: counting a million rows is not worth a reader's time, nor the server's.
pub(crate) const COUNT_CAP: i64 = 10_000;

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It waits for its turn.
    Pending,
    /// It is being sent.
    Sending,
    /// It arrived.
    Sent,
    /// It certainly did not arrive, and is given up.
    Undeliverable,
    /// It may have arrived, and is given up.
    Unknown,
    /// It was taken back before it was sent.
    Cancelled,
    /// The addressee was unreachable, or did not want it.
    Skipped,
}

/// Which messages to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only these.
    pub(crate) status: Option<Status>,
    /// Only to this chat.
    pub(crate) chat_id: Option<i64>,
    /// Only of this kind.
    pub(crate) kind: Option<Kind>,
    /// Only those behind this id; the last one of the page before.
    pub(crate) after: i64,
    /// How many, 1 to 500.
    pub(crate) limit: i64,
}

/// A message as it is listed; never its text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Listed {
    /// The row.
    pub(crate) id: i64,
    /// The chat.
    pub(crate) chat_id: i64,
    /// Its kind.
    pub(crate) kind: String,
    /// Where it stands.
    pub(crate) status: String,
    /// How often it was tried.
    pub(crate) attempts: i64,
    /// How many of those may have delivered it.
    pub(crate) unknown_count: i64,
    /// How often a person asked for it again.
    pub(crate) retried_by_hand: i64,
    /// When it is tried, or was to be.
    pub(crate) due_at: UnixMs,
    /// Why the last attempt failed, or none was made.
    pub(crate) error_code: Option<String>,
    /// What makes it one of its kind.
    pub(crate) dedup_key: String,
    /// When it was queued.
    pub(crate) created_at: UnixMs,
    /// When it was closed.
    pub(crate) finished_at: Option<UnixMs>,
}

/// What became of a retry by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Retried {
    /// These wait again.
    pub(crate) reopened: Vec<i64>,
    /// These are waiting, being sent, or sent: nothing changed.
    pub(crate) unchanged: Vec<i64>,
    /// There are no such messages.
    pub(crate) missing: Vec<i64>,
}

/// The queue in numbers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Stats {
    /// Messages by status; [`COUNT_CAP`] means that many or more.
    pub(crate) by_status: Vec<(&'static str, i64)>,
    /// For each lane, how long its oldest message has been due, in milliseconds; 0 when none is.
    pub(crate) age_ms: Vec<(&'static str, i64)>,
}

impl Status {
    /// Every status.
    pub(crate) const ALL: [Self; 7] =
        [Self::Pending, Self::Sending, Self::Sent, Self::Undeliverable, Self::Unknown, Self::Cancelled, Self::Skipped];

    /// The status's name in the file and on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Undeliverable => "undeliverable",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// The status of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(Error::UnknownText { column: "status" })
    }
}

/// A page of messages, the oldest first.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Listed>, Error> {
    let page = Filter { limit: filter.limit.clamp(1, LONGEST_PAGE), ..filter.clone() };
    Ok(match page.status {
        Some(status) => sql::lists::list_with_status(tx, status, &page)?,
        None => sql::lists::list_all(tx, &page)?,
    })
}

/// The newest message's id; 0 if there is none.
///
/// # Errors
/// The store's.
pub(crate) fn newest(tx: &Tx<'_>) -> Result<i64, StoreError> {
    sql::lists::newest(tx)
}

/// Opens closed messages again, due now. `sent` ones are never repeated. The attempt number goes on counting, since it
/// is the fence of late answers, and so does the count of doubtful attempts: it is the reason that a second copy has.
/// The age at which refusals are given up counts from now.
///
/// # Errors
/// The store's.
pub(crate) fn retry(tx: &Tx<'_>, ids: &[i64]) -> Result<Retried, Error> {
    let mut retried = Retried::default();
    for &id in ids {
        if sql::lists::reopen(tx, id)? > 0 {
            retried.reopened.push(id);
        } else if sql::lists::is_known(tx, id)? {
            retried.unchanged.push(id);
        } else {
            retried.missing.push(id);
        }
    }
    if !retried.reopened.is_empty() {
        tx.wake(QUEUED);
    }
    Ok(retried)
}

/// The queue in numbers.
///
/// # Errors
/// The store's.
pub(crate) fn stats(tx: &Tx<'_>) -> Result<Stats, Error> {
    let count = |status: Status| Ok((status.as_str(), sql::lists::count_up_to(tx, status, COUNT_CAP)?));
    let age = |lane: Lane| Ok((lane.as_str(), age_ms(tx, lane)?));
    let by_status: Result<Vec<_>, StoreError> = Status::ALL.into_iter().map(count).collect();
    let age_ms: Result<Vec<_>, StoreError> = Lane::ALL.into_iter().map(age).collect();
    Ok(Stats { by_status: by_status?, age_ms: age_ms? })
}

/// How long the longest waiting message of a lane has been due, in milliseconds.
pub(super) fn age_ms(tx: &Tx<'_>, lane: Lane) -> Result<i64, StoreError> {
    Ok(sql::claim::oldest_due(tx, lane)?.map_or(0, |due_at| tx.now().saturating_sub(due_at)))
}

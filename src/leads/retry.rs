//! What only a person may ask for: that a failed notification is tried again, or that of a lead which nobody was to be
//! told of. Both begin a new cycle and are recorded with the reason.

use super::claim::{self, Standing};
use super::{Error, LEADS, NotificationStatus, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// Why a person asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryReason {
    /// Token, chat or rights were put right.
    TelegramConfigFixed,
    /// Telegram or the way to it was disturbed.
    TelegramTemporaryError,
    /// What kept the summary from being made was put right.
    NotificationSummaryFixed,
    /// Anything else.
    ManualRecovery,
}

impl RetryReason {
    /// Every reason.
    pub(crate) const ALL: [Self; 4] =
        [Self::TelegramConfigFixed, Self::TelegramTemporaryError, Self::NotificationSummaryFixed, Self::ManualRecovery];

    /// The contract's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TelegramConfigFixed => "telegram_config_fixed",
            Self::TelegramTemporaryError => "telegram_temporary_error",
            Self::NotificationSummaryFixed => "notification_summary_fixed",
            Self::ManualRecovery => "manual_recovery",
        }
    }

    /// The reason of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|reason| reason.as_str() == text);
        found.ok_or(Error::UnknownText { column: "reason_code" })
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Whether it waits again.
    pub(crate) retry_requested: bool,
    /// Where it stands now, or `missing`.
    pub(crate) current_status: &'static str,
    /// How often a person has asked for it.
    pub(crate) retry_count: i64,
}

/// A failed notification waits again. Its attempts go on counting, and its last error stays until it is claimed.
///
/// # Errors
/// The store's.
pub(crate) fn request_retry(
    tx: &Tx<'_>,
    lead_id: &str,
    request_id: Option<&str>,
    reason: RetryReason,
) -> Result<Retry, StoreError> {
    retry_found(tx, claim::find(tx, lead_id, request_id)?, reason)
}

/// The same for a person who has the lead before them: its id is enough.
///
/// # Errors
/// The store's.
pub(crate) fn retry_by_hand(tx: &Tx<'_>, lead_id: &str, reason: RetryReason) -> Result<Retry, StoreError> {
    retry_found(tx, sql::claim::find(tx, lead_id)?, reason)
}

fn retry_found(tx: &Tx<'_>, found: Option<Standing>, reason: RetryReason) -> Result<Retry, StoreError> {
    if let Some(standing) = found.as_ref().filter(|standing| standing.status == NotificationStatus::Failed) {
        let retry_count = again(tx, standing, reason)?;
        return Ok(Retry { retry_requested: true, current_status: NotificationStatus::Pending.as_str(), retry_count });
    }
    let retry_count = found.as_ref().map_or(0, |standing| standing.retries);
    Ok(Retry { retry_requested: false, current_status: claim::status_of(found.as_ref()), retry_count })
}

/// Up to `limit` leads that nobody was to be told of wait now, the oldest first; how many. Fewer than `limit`: those
/// were the last.
///
/// # Errors
/// The store's.
pub(crate) fn enqueue_disabled(tx: &Tx<'_>, reason: RetryReason, limit: i64) -> Result<usize, StoreError> {
    let disabled = sql::claim::oldest_disabled(tx, limit)?;
    for standing in &disabled {
        again(tx, standing, reason)?;
    }
    Ok(disabled.len())
}

/// Up to `limit` notifications that had failed by `begun` wait again; how many. Fewer than `limit`: those were the last.
/// One that fails anew meanwhile was claimed later, and is not taken twice.
///
/// # Errors
/// The store's.
pub(crate) fn retry_failed(tx: &Tx<'_>, reason: RetryReason, begun: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let failed = sql::claim::oldest_failed(tx, begun, limit)?;
    for standing in &failed {
        again(tx, standing, reason)?;
    }
    Ok(failed.len())
}

fn again(tx: &Tx<'_>, standing: &Standing, reason: RetryReason) -> Result<i64, StoreError> {
    let retry_count = sql::claim::mark_pending_again(tx, standing.row, reason.as_str())?;
    let payload = serde_json::json!({ "reason_code": reason.as_str(), "retry_count": retry_count });
    sql::claim::insert_event(tx, standing.row, "notification_retry_requested", &payload)?;
    tx.wake(LEADS);
    Ok(retry_count)
}

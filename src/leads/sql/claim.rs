//! Where a lead's notification stands and how that changes: claims, endings, retries, and what becomes of a lead of
//! another program. Each change counts within the CHECK of its column, so that no row can refuse it and hold up others;
//! and each moves `updated_at` on, also within a millisecond, so that the trigger for those who do not has nothing to do;
//! one that a program set beyond the year 9999 begins again there, since nothing can be added to the last number.

use rusqlite::{Row, named_params};
use serde_json::Value;

use crate::kernel::clock::UnixMs;
use crate::kernel::events::Lead;
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::NotificationStatus;
use crate::leads::claim::Standing;

/// The most characters of a request id; longer is only one that hides the rest behind a NUL.
const LONGEST_REQUEST_ID: usize = 80;

/// The statement over the rows that `$which` names.
macro_rules! standing {
    ($which:literal) => {
        concat!(
            "SELECT rowid AS row, id, request_id, notification_status, notification_attempt_count,
                    notification_cycle_claims, notification_attempted_at, notification_manual_retry_count
             FROM broker_leads ",
            $which
        )
    };
}

pub(super) const FIND: &str = standing!("WHERE id = :id");
const FIND_ROW: &str = standing!("WHERE rowid = :row");
pub(super) const OLDEST_SENDING: &str = standing!(
    "INDEXED BY broker_leads_sending WHERE notification_status = 'sending'
       AND (notification_attempted_at IS NULL OR notification_attempted_at < :before
            OR notification_attempted_at > :after)
     ORDER BY notification_attempted_at, id LIMIT :limit"
);
pub(super) const NEXT_PENDING: &str =
    standing!("INDEXED BY broker_leads_pending WHERE notification_status = 'pending' ORDER BY created_at, id LIMIT 1");
pub(super) const OLDEST_DISABLED: &str = standing!(
    "INDEXED BY broker_leads_disabled WHERE notification_status = 'disabled' ORDER BY created_at, id LIMIT :limit"
);
pub(super) const OLDEST_FAILED: &str = standing!(
    "INDEXED BY broker_leads_failed WHERE notification_status = 'failed'
       AND COALESCE(notification_attempted_at, 0) <= :begun ORDER BY created_at, id LIMIT :limit"
);
pub(super) const UNANNOUNCED: &str =
    standing!("INDEXED BY broker_leads_unannounced WHERE announced_at IS NULL ORDER BY created_at, id LIMIT :limit");

fn standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    let status = lossy_text(row, "notification_status")?.unwrap_or_default();
    let request_id = lossy_text(row, "request_id")?;
    Ok(Standing {
        row: row.get("row")?,
        lead: Lead {
            id: lossy_text(row, "id")?.unwrap_or_default(),
            request_id: request_id.map(|id| id.chars().take(LONGEST_REQUEST_ID).collect()),
        },
        status: NotificationStatus::parse(&status).map_err(super::unreadable)?,
        attempts: row.get("notification_attempt_count")?,
        cycle_claims: row.get("notification_cycle_claims")?,
        attempted_at: row.get("notification_attempted_at")?,
        retries: row.get("notification_manual_retry_count")?,
    })
}

/// The lead of that id.
pub(crate) fn find(tx: &Tx<'_>, lead_id: &str) -> Result<Option<Standing>, StoreError> {
    tx.query_opt(FIND, named_params! { ":id": lead_id }, standing)
}

/// The lead in that row.
pub(crate) fn find_row(tx: &Tx<'_>, row: i64) -> Result<Option<Standing>, StoreError> {
    tx.query_opt(FIND_ROW, named_params! { ":row": row }, standing)
}

/// Leads that are `sending` since before `:before`, the longest first; before them those of which nobody noted since
/// when, and behind them those that will be since after `:after`.
pub(crate) fn oldest_sending(
    tx: &Tx<'_>,
    before: UnixMs,
    after: UnixMs,
    limit: i64,
) -> Result<Vec<Standing>, StoreError> {
    tx.query_all(OLDEST_SENDING, named_params! { ":before": before, ":after": after, ":limit": limit }, standing)
}

/// The lead that waits longest.
pub(crate) fn next_pending(tx: &Tx<'_>) -> Result<Option<Standing>, StoreError> {
    tx.query_opt(NEXT_PENDING, [], standing)
}

/// Leads that nobody is told of, the oldest first.
pub(crate) fn oldest_disabled(tx: &Tx<'_>, limit: i64) -> Result<Vec<Standing>, StoreError> {
    tx.query_all(OLDEST_DISABLED, named_params! { ":limit": limit }, standing)
}

/// Failed leads whose last claim was no later than that, the oldest first.
pub(crate) fn oldest_failed(tx: &Tx<'_>, begun: UnixMs, limit: i64) -> Result<Vec<Standing>, StoreError> {
    tx.query_all(OLDEST_FAILED, named_params! { ":begun": begun, ":limit": limit }, standing)
}

/// Leads whose arrival is not recorded, the oldest first.
pub(crate) fn unannounced(tx: &Tx<'_>, limit: i64) -> Result<Vec<Standing>, StoreError> {
    tx.query_all(UNANNOUNCED, named_params! { ":limit": limit }, standing)
}

/// Somebody sends it now; `of_cycle` is 1 if that is our own worker. The number of the attempt.
pub(crate) fn mark_sending(tx: &Tx<'_>, row: i64, of_cycle: i64) -> Result<i64, StoreError> {
    let sql = "
        UPDATE broker_leads
        SET notification_status = 'sending', notification_attempted_at = :now, notification_last_error = NULL,
            notification_attempt_count = MIN(notification_attempt_count + 1, 1000000),
            notification_cycle_claims = MIN(notification_cycle_claims + :of_cycle, 1000000),
            updated_at = MAX(:now, MIN(updated_at, 253402300799999) + 1)
        WHERE rowid = :row AND notification_status IN ('pending', 'sending')
        RETURNING notification_attempt_count";
    let params = named_params! { ":row": row, ":of_cycle": of_cycle, ":now": tx.now() };
    tx.query_one(sql, params, |row| row.get("notification_attempt_count"))
}

/// The broker's chat has it.
pub(crate) fn mark_sent(tx: &Tx<'_>, row: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broker_leads
        SET notification_status = 'sent', notification_sent_at = :now, notification_last_error = NULL,
            updated_at = MAX(:now, MIN(updated_at, 253402300799999) + 1)
        WHERE rowid = :row AND notification_status = 'sending'";
    tx.execute(sql, named_params! { ":row": row, ":now": tx.now() })
}

/// Nobody tries it again by himself.
pub(crate) fn mark_failed(tx: &Tx<'_>, row: i64, error_code: &str) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broker_leads
        SET notification_status = 'failed', notification_last_error = :error_code,
            updated_at = MAX(:now, MIN(updated_at, 253402300799999) + 1)
        WHERE rowid = :row AND notification_status IN ('pending', 'sending')";
    tx.execute(sql, named_params! { ":row": row, ":error_code": error_code, ":now": tx.now() })
}

/// A person wants it sent: a new cycle. How often a person did.
pub(crate) fn mark_pending_again(tx: &Tx<'_>, row: i64, reason_code: &str) -> Result<i64, StoreError> {
    let sql = "
        UPDATE broker_leads
        SET notification_status = 'pending', notification_cycle_claims = 0,
            notification_manual_retry_count = MIN(notification_manual_retry_count + 1, 1000000),
            notification_manual_retry_requested_at = :now, notification_manual_retry_reason_code = :reason_code,
            updated_at = MAX(:now, MIN(updated_at, 253402300799999) + 1)
        WHERE rowid = :row AND notification_status IN ('failed', 'disabled')
        RETURNING notification_manual_retry_count";
    let params = named_params! { ":row": row, ":reason_code": reason_code, ":now": tx.now() };
    tx.query_one(sql, params, |row| row.get("notification_manual_retry_count"))
}

/// A waiting lead that nobody is to be told of.
pub(crate) fn mark_disabled(tx: &Tx<'_>, row: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broker_leads
        SET notification_status = 'disabled', updated_at = MAX(:now, MIN(updated_at, 253402300799999) + 1)
        WHERE rowid = :row AND notification_status = 'pending'";
    tx.execute(sql, named_params! { ":row": row, ":now": tx.now() })
}

/// The lead's arrival is recorded.
pub(crate) fn mark_announced(tx: &Tx<'_>, row: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE broker_leads SET announced_at = :now WHERE rowid = :row AND announced_at IS NULL";
    tx.execute(sql, named_params! { ":row": row, ":now": tx.now() })
}

/// Records what happened to a lead; a second `created` is none. The ids are copied in the file, byte by byte.
pub(crate) fn insert_event(tx: &Tx<'_>, row: i64, event_type: &str, payload: &Value) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO broker_lead_events (lead_id, request_id, created_at, event_type, payload)
        SELECT id, request_id, :now, :event_type, :payload FROM broker_leads WHERE rowid = :row
        ON CONFLICT (lead_id) WHERE event_type = 'created' DO NOTHING";
    let params = named_params! {
        ":row": row, ":now": tx.now(), ":event_type": event_type, ":payload": payload.to_string(),
    };
    tx.execute(sql, params)
}

//! Every statement on `broker_leads`, `broker_lead_events` and `broker_lead_rate_limits`, by what it is for.

pub(super) mod claim;
pub(super) mod intake;
pub(super) mod keep;
pub(super) mod lists;
pub(super) mod parts;
pub(super) mod stats;
pub(super) mod summary;

use rusqlite::types::FromSqlError;

use super::Error;

/// A text that the schema does not let into its column.
fn unreadable(error: Error) -> rusqlite::Error {
    FromSqlError::Other(Box::new(error)).into()
}

/// The repeated statements, each with the index that it relies on; a test looks at their plans.
#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static str)> {
    let mut plans = vec![
        (claim::FIND, "sqlite_autoindex_broker_leads_1 (id=?)"),
        (claim::OLDEST_SENDING, "broker_leads_sending"),
        (claim::NEXT_PENDING, "broker_leads_pending"),
        (claim::OLDEST_DISABLED, "broker_leads_disabled"),
        (claim::OLDEST_FAILED, "broker_leads_failed"),
        (claim::UNANNOUNCED, "broker_leads_unannounced"),
        (lists::LIST_ALL, "broker_leads_by_age (created_at>? AND (created_at,id)<(?,?))"),
        (lists::EXPORT_ALL, "broker_leads_by_age ((created_at,id)>(?,?) AND created_at<?)"),
        (stats::STALE, "broker_leads_sending"),
        (keep::DELETE_OLDER, "broker_leads_by_age (created_at<?)"),
    ];
    let indexes = [
        "broker_leads_pending",
        "broker_leads_sending",
        "broker_leads_sent",
        "broker_leads_failed",
        "broker_leads_disabled",
    ];
    for statements in [lists::LIST, lists::EXPORT, stats::QUEUES] {
        plans.extend(statements.into_iter().zip(indexes));
    }
    plans
}

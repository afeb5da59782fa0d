//! Every statement on the tables of webhooks, by what it is for.

pub(super) mod claim;
pub(super) mod endpoints;
pub(super) mod fanout;
pub(super) mod finish;
pub(super) mod health;
pub(super) mod keep;
pub(super) mod lists;
pub(super) mod probe;
pub(super) mod recover;
pub(super) mod secrets;
pub(super) mod sweep;

use rusqlite::Row;
use rusqlite::types::FromSqlError;

use super::Error;

/// A text of a column that must name one of the values that there are.
fn parsed<T>(row: &Row<'_>, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| FromSqlError::Other(Box::new(Error::UnknownText { column })).into())
}

/// The same for a column that may be empty.
fn parsed_opt<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    let Some(text) = text else { return Ok(None) };
    let found = parse(&text).ok_or_else(|| FromSqlError::Other(Box::new(Error::UnknownText { column })))?;
    Ok(Some(found))
}

/// Rows as a statement takes them: a JSON array, for `json_each`.
fn listed(rows: &[i64]) -> String {
    serde_json::Value::from(rows).to_string()
}

/// The repeated statements, each with what their plans must say; a test looks at them.
#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static [&'static str])> {
    const PENDING: &str = "webhook_deliveries_pending";
    const RESEND: &str = "webhook_deliveries_resend";
    const OF_TENANT: &str = "webhook_endpoints_of_tenant (tenant_id=?";
    const BY_ROW: &str = "USING INTEGER PRIMARY KEY (rowid=?)";
    vec![
        (claim::SCHEDULED, &["COVERING INDEX webhook_deliveries_pending (endpoint>?)", "_pending (endpoint=?)"]),
        (claim::ASKED_FOR, &["INDEX webhook_deliveries_resend (endpoint>?)"]),
        (claim::HAS_SEVERAL_TENANTS, &["INDEX webhook_endpoints_of_tenant"]),
        (claim::FIND_ACTIVE, &["USING INTEGER PRIMARY KEY", "_resend (endpoint=? AND resend_requested_at>?)"]),
        (claim::CLAIM_DUE, &[BY_ROW, "COVERING INDEX webhook_deliveries_pending (endpoint=? AND next_attempt_at<?)"]),
        (claim::CLAIM_ASKED_FOR, &[BY_ROW, "INDEX webhook_deliveries_resend (endpoint=? AND resend_requested_at>?)"]),
        (claim::MESSAGE, &[BY_ROW]),
        (endpoints::AUDIENCE, &[OF_TENANT]),
        (endpoints::FIND, &["(endpoint_id=?)"]),
        (endpoints::LIST, &["webhook_endpoints_of_tenant (tenant_id=? AND id>?)"]),
        (fanout::IS_UNFINISHED, &["sqlite_autoindex_webhook_deliveries_1 (message=?)"]),
        (finish::CUT_OFF, &["webhook_deliveries_sending"]),
        (finish::CUT_OFF_ONE, &[BY_ROW]),
        (finish::FIND_UNDER_WAY, &["SEARCH d USING INTEGER PRIMARY KEY", "SEARCH w USING INTEGER PRIMARY KEY"]),
        (finish::MARK_DELIVERED, &[BY_ROW, "webhook_endpoints USING INTEGER PRIMARY KEY"]),
        (finish::SETTLE, &[BY_ROW]),
        (health::PENDING, &[PENDING]),
        (health::SENDING, &["webhook_deliveries_sending"]),
        (keep::DELETE_AT_REST, &[BY_ROW]),
        (keep::DELETE_FINISHED, &[BY_ROW]),
        (keep::DELETE_MESSAGE, &[BY_ROW, "sqlite_autoindex_webhook_deliveries_1 (message=?)"]),
        (keep::DELETE_TESTS, &["webhook_tests_by_age (started_at<?)"]),
        (keep::DELETE_TESTS_OF, &[BY_ROW, "webhook_tests_of_endpoint (endpoint=?)"]),
        (keep::OLDEST, &["USING INTEGER PRIMARY KEY (rowid>?)"]),
        (lists::ARE_FEW_PENDING, &["COVERING INDEX webhook_deliveries_pending (endpoint=?)"]),
        (lists::ATTEMPTS, &["PRIMARY KEY (delivery=? AND number>?)"]),
        (lists::ENDPOINTS_OF, &[OF_TENANT]),
        (lists::FIND, &["SEARCH d USING INTEGER PRIMARY KEY"]),
        (lists::OF_ENDPOINT, &["webhook_deliveries_of_endpoint (endpoint=? AND id<?)"]),
        (lists::TESTS, &["webhook_tests_of_endpoint (endpoint=? AND id<?)"]),
        (lists::UNDELIVERED, &["webhook_deliveries_undelivered (endpoint=? AND status=? AND id<?)"]),
        (recover::FIND, &["SEARCH d USING INTEGER PRIMARY KEY"]),
        (recover::LOST, &["INDEX webhook_deliveries_undelivered (endpoint=? AND status=? AND id>?)"]),
        (recover::QUEUE, &[BY_ROW]),
        (secrets::DELETE_EXPIRED, &["webhook_secrets_expiring (valid_until>? AND valid_until<?)"]),
        (secrets::SIGNING, &["webhook_secrets_of_endpoint (endpoint=?)"]),
        (sweep::AT_REST, &["webhook_deliveries_of_endpoint (endpoint=?)"]),
        (sweep::CANCEL, &[BY_ROW, "COVERING INDEX webhook_deliveries_pending (endpoint=?)"]),
        (sweep::DELETED, &["webhook_endpoints_deleted"]),
        (sweep::DELETE_ENDPOINT, &[BY_ROW, "webhook_deliveries_of_endpoint (endpoint=?)"]),
        (sweep::DISABLED_WITH_WORK, &["webhook_endpoints_disabled", "webhook_deliveries_pending (endpoint=?)"]),
        (sweep::DROP_REQUESTS, &[BY_ROW, RESEND]),
        (sweep::DUE_TOO_LATE, &["webhook_deliveries_pending (endpoint=? AND next_attempt_at>?)"]),
        (sweep::IS_ANY_SECRET_EXPIRED, &["webhook_secrets_expiring (valid_until>? AND valid_until<?)"]),
        (sweep::PULL_IN, &[BY_ROW, "webhook_deliveries_pending (endpoint=? AND next_attempt_at>?)"]),
        (sweep::SKIP, &[BY_ROW, "COVERING INDEX webhook_deliveries_pending (endpoint=?)"]),
    ]
}

/// The statements with which an endpoint's share of the work is found and claimed, by name, for whoever counts their steps.
#[cfg(test)]
pub(super) const STEPS_COUNTED: [(&str, &str); 3] =
    [("scheduled", claim::SCHEDULED), ("find_active", claim::FIND_ACTIVE), ("claim_due", claim::CLAIM_DUE)];

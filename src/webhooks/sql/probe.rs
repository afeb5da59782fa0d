//! Test attempts.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::attempt::Outcome;

/// A test attempt of an endpoint that is still there.
pub(crate) fn insert(
    tx: &Tx<'_>,
    endpoint: i64,
    message_id: &str,
    started_at: UnixMs,
    outcome: &Outcome,
) -> Result<usize, StoreError> {
    let sql = "
        INSERT INTO webhook_tests (endpoint, message_id, started_at, duration_ms, http_status, error, response_body,
                                   resolved_ip)
        SELECT id, :message_id, :started_at, :duration_ms, :http_status, :error, :response_body, :resolved_ip
        FROM webhook_endpoints WHERE id = :endpoint";
    let params = named_params! {
        ":endpoint": endpoint,
        ":message_id": message_id,
        ":started_at": started_at,
        ":duration_ms": outcome.duration_ms(),
        ":http_status": outcome.http_status,
        ":error": outcome.error.map(|error| error.as_str()),
        ":response_body": outcome.response_body,
        ":resolved_ip": outcome.resolved_ip.map(|ip| ip.to_string()),
    };
    tx.execute(sql, params)
}

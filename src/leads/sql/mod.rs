//! Every statement on `broker_leads`, `broker_lead_events` and `broker_lead_rate_limits`: claims, intake, lists.

pub(super) mod claim;
pub(super) mod intake;
pub(super) mod summary;

use rusqlite::types::FromSqlError;

use super::Error;

/// A text that the schema does not let into its column.
fn unreadable(error: Error) -> rusqlite::Error {
    FromSqlError::Other(Box::new(error)).into()
}

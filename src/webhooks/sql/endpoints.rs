//! Endpoints: their rows, and what is changed in them by a person or by what happens there.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::endpoint::DisabledReason;

/// Nothing more is sent there.
pub(crate) fn disable(tx: &Tx<'_>, endpoint: i64, reason: DisabledReason) -> Result<usize, StoreError> {
    let sql = "
        UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = :reason, updated_at = :now
        WHERE id = :endpoint AND status <> 'disabled'";
    tx.execute(sql, named_params! { ":reason": reason.as_str(), ":now": tx.now(), ":endpoint": endpoint })
}

//! Secrets of endpoints, as they are sealed.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::delivery::SealedSecret;

pub(super) const SIGNING: &str = "
    SELECT id, sealed FROM webhook_secrets INDEXED BY webhook_secrets_of_endpoint
    WHERE endpoint = :endpoint AND (valid_until IS NULL OR valid_until > :now)
    ORDER BY id DESC LIMIT 10";

/// The secrets that sign for an endpoint now, the newest first.
pub(crate) fn signing(tx: &Tx<'_>, endpoint: i64) -> Result<Vec<SealedSecret>, StoreError> {
    tx.query_all(SIGNING, named_params! { ":endpoint": endpoint, ":now": tx.now() }, |row| {
        Ok(SealedSecret { row: row.get("id")?, sealed: row.get("sealed")? })
    })
}

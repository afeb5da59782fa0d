//! Statements by which a person has events handed over again.

use rusqlite::named_params;

use crate::kernel::store::{StoreError, Tx};

/// Opens a failed event again: due now, with all its attempts before it, and to those who have not accepted it.
pub(crate) fn reopen(tx: &Tx<'_>, row: i64) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE outbox_events SET failed_at = NULL, attempts = 0, next_attempt_at = :now
         WHERE id = :row AND failed_at IS NOT NULL",
        named_params! { ":row": row, ":now": tx.now() },
    )?;
    Ok(changed == 1)
}

/// Makes an event that waits for its next attempt due now. One that nobody has refused is.
pub(crate) fn hasten(tx: &Tx<'_>, row: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE outbox_events SET next_attempt_at = :now
         WHERE id = :row AND published_at IS NULL AND failed_at IS NULL AND next_attempt_at > :now",
        named_params! { ":row": row, ":now": tx.now() },
    )?;
    Ok(())
}

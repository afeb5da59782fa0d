//! Statements of the relay. What is due is found by the partial index `outbox_events_due` alone, whatever was published.

use rusqlite::types::ValueRef;
use rusqlite::{Row, named_params};

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::outbox::relay::{Basket, Candidate, Columns};

/// The statement over some of the due rows.
macro_rules! due {
    ($which:literal) => {
        concat!(
            "SELECT id, tenant_id, event_id, type, schema_version, aggregate_type, aggregate_id, occurred_at, payload,
                    attempts, next_attempt_at, acceptances
             FROM outbox_events ",
            $which
        )
    };
}

pub(super) const FRESH: &str = due!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at IS NULL AND id > :row
     ORDER BY id"
);
// Two statements: SQLite cannot find its place in this index by a pair, of which the second is the rowid.
pub(super) const RETRIES_THEN: &str = due!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at = :due AND id > :row
     ORDER BY id"
);
pub(super) const RETRIES_LATER: &str = due!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at > :due AND next_attempt_at <= :until
     ORDER BY next_attempt_at, id"
);
pub(super) const ONE: &str = due!("WHERE id = :row AND published_at IS NULL AND failed_at IS NULL");
pub(super) const NEXT_DUE: &str = "
    SELECT min(next_attempt_at) AS due FROM outbox_events INDEXED BY outbox_events_due
    WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at > :now";

/// Puts into the basket what nobody has refused yet, behind a row, by id.
pub(crate) fn take_fresh(tx: &Tx<'_>, row: i64, basket: &mut Basket<'_>) -> Result<(), StoreError> {
    tx.query_while(FRESH, named_params! { ":row": row }, |row| put(row, basket))
}

/// Puts into the basket what is due behind a time and row and up to a time, in that order.
pub(crate) fn take_retries(
    tx: &Tx<'_>,
    (due, row): (UnixMs, i64),
    until: UnixMs,
    basket: &mut Basket<'_>,
) -> Result<(), StoreError> {
    tx.query_while(RETRIES_THEN, named_params! { ":due": due, ":row": row }, |row| put(row, basket))?;
    if basket.has_left() {
        return Ok(());
    }
    tx.query_while(RETRIES_LATER, named_params! { ":due": due, ":until": until }, |row| put(row, basket))
}

fn put(row: &Row<'_>, basket: &mut Basket<'_>) -> rusqlite::Result<bool> {
    if basket.wants(row.get("id")?) {
        // One more is there: the basket is told only now that it may be full, so that it knows what it leaves.
        if basket.is_full() {
            basket.leave();
            return Ok(false);
        }
        basket.put(candidate(row)?);
    }
    Ok(true)
}

/// The event of a row, if it is still to be published.
pub(crate) fn find_unpublished(tx: &Tx<'_>, row: i64) -> Result<Option<Candidate>, StoreError> {
    tx.query_opt(ONE, named_params! { ":row": row }, candidate)
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let columns = Columns {
        row: integer(row, "id")?.unwrap_or_default(),
        tenant: text(row, "tenant_id")?,
        event_id: text(row, "event_id")?,
        event_type: text(row, "type")?,
        version: integer(row, "schema_version")?.unwrap_or(1),
        aggregate_type: text(row, "aggregate_type")?,
        aggregate_id: text(row, "aggregate_id")?,
        occurred_at: integer(row, "occurred_at")?.unwrap_or_default(),
        payload: text(row, "payload")?,
        attempts: integer(row, "attempts")?.unwrap_or_default(),
        next_attempt_at: integer(row, "next_attempt_at")?,
        acceptances: text(row, "acceptances")?,
    };
    Ok(columns.into())
}

/// A text, if it is one in UTF-8.
fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        _ => None,
    })
}

fn integer(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

/// When the next refused event is due, of those that are not yet.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<UnixMs>, StoreError> {
    tx.query_one(NEXT_DUE, named_params! { ":now": tx.now() }, |row| row.get("due"))
}

/// Marks an event as published; whether it was still to be.
pub(crate) fn publish(tx: &Tx<'_>, row: i64, acceptances: &str) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE outbox_events SET published_at = :now, next_attempt_at = NULL, acceptances = :acceptances
         WHERE id = :row AND published_at IS NULL AND failed_at IS NULL",
        named_params! { ":row": row, ":now": tx.now(), ":acceptances": acceptances },
    )?;
    Ok(changed == 1)
}

/// What is written of an event that a consumer refused, or was not asked for.
#[derive(Debug)]
pub(crate) struct PutOff<'t> {
    pub(crate) row: i64,
    pub(crate) acceptances: &'t str,
    pub(crate) attempts: i64,
    /// When it is handed over again; `None` gives it up.
    pub(crate) next_attempt_at: Option<UnixMs>,
    pub(crate) last_error: &'t str,
}

/// Puts an event off, or gives it up; whether it was still to be published.
pub(crate) fn put_off(tx: &Tx<'_>, put_off: &PutOff<'_>) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE outbox_events SET attempts = :attempts, next_attempt_at = :next, last_error = :error,
                                  failed_at = CASE WHEN :next IS NULL THEN :now END, acceptances = :acceptances
         WHERE id = :row AND published_at IS NULL AND failed_at IS NULL",
        named_params! {
            ":row": put_off.row,
            ":attempts": put_off.attempts,
            ":next": put_off.next_attempt_at,
            ":error": put_off.last_error,
            ":now": tx.now(),
            ":acceptances": put_off.acceptances,
        },
    )?;
    Ok(changed == 1)
}

/// Notes acceptances of an event that stays due; whether it was still to be published.
pub(crate) fn note_acceptances(tx: &Tx<'_>, row: i64, acceptances: &str) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE outbox_events SET acceptances = :acceptances WHERE id = :row AND published_at IS NULL AND failed_at IS NULL",
        named_params! { ":row": row, ":acceptances": acceptances },
    )?;
    Ok(changed == 1)
}

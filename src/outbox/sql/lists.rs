//! Statements that only look: lists, one event whole, numbers.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, named_params};

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::kernel::tenant::TenantId;
use crate::outbox::inspect::{Aggregate, Cursor, EventRow, EventStatus, Gathering};
use crate::outbox::relay::Acceptances;

/// The statement over some of the rows, without their data.
macro_rules! listed {
    ($which:literal) => {
        concat!(
            "SELECT id, tenant_id, event_id, type, schema_version, aggregate_type, aggregate_id, occurred_at, created_at,
                    attempts, next_attempt_at, last_error, published_at, failed_at, acceptances
             FROM outbox_events ",
            $which
        )
    };
}

pub(super) const BY_ID: &str = listed!("WHERE tenant_id = :tenant AND event_id < :before ORDER BY event_id DESC");
pub(super) const FAILED: &str = listed!(
    "INDEXED BY outbox_events_failed
     WHERE tenant_id = :tenant AND failed_at IS NOT NULL AND event_id < :before ORDER BY event_id DESC"
);
pub(super) const FRESH: &str = listed!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at IS NULL AND id > :row ORDER BY id"
);
// Two statements: SQLite cannot find its place in this index by a pair, of which the second is the rowid.
pub(super) const REFUSED_THEN: &str = listed!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at = :due AND id > :row ORDER BY id"
);
pub(super) const REFUSED_LATER: &str = listed!(
    "INDEXED BY outbox_events_due
     WHERE published_at IS NULL AND failed_at IS NULL AND next_attempt_at > :due ORDER BY next_attempt_at, id"
);

/// A text behind which a list goes on; without one, what is behind every text.
fn before(id: Option<&[u8]>) -> ToSqlOutput<'_> {
    // Any bytes: another program may have written them. Every text sorts before a blob.
    ToSqlOutput::Borrowed(id.map_or(ValueRef::Blob(b"\0"), ValueRef::Text))
}

/// Gathers a tenant's events by id, the newest first, behind one.
pub(crate) fn gather_by_id(
    tx: &Tx<'_>,
    tenant: &TenantId,
    id: Option<&[u8]>,
    gathering: &mut Gathering<'_>,
) -> Result<(), StoreError> {
    let params = named_params! { ":tenant": tenant.as_str(), ":before": before(id) };
    tx.query_while(BY_ID, params, |row| gather(row, gathering, id_cursor))
}

/// Gathers a tenant's failed events, in the same order.
pub(crate) fn gather_failed(
    tx: &Tx<'_>,
    tenant: &TenantId,
    id: Option<&[u8]>,
    gathering: &mut Gathering<'_>,
) -> Result<(), StoreError> {
    let params = named_params! { ":tenant": tenant.as_str(), ":before": before(id) };
    tx.query_while(FAILED, params, |row| gather(row, gathering, id_cursor))
}

/// Gathers events that nobody has refused yet, behind a row.
pub(crate) fn gather_fresh(tx: &Tx<'_>, row: i64, gathering: &mut Gathering<'_>) -> Result<(), StoreError> {
    tx.query_while(FRESH, named_params! { ":row": row }, |row| gather(row, gathering, due_cursor))
}

/// Gathers events that wait for their next attempt, by when that is due, behind a time and row.
pub(crate) fn gather_refused(
    tx: &Tx<'_>,
    (due, row): (UnixMs, i64),
    gathering: &mut Gathering<'_>,
) -> Result<(), StoreError> {
    tx.query_while(REFUSED_THEN, named_params! { ":due": due, ":row": row }, |row| gather(row, gathering, due_cursor))?;
    if gathering.has_left() {
        return Ok(());
    }
    tx.query_while(REFUSED_LATER, named_params! { ":due": due }, |row| gather(row, gathering, due_cursor))
}

fn gather(
    row: &Row<'_>,
    gathering: &mut Gathering<'_>,
    cursor: impl FnOnce(&Row<'_>) -> rusqlite::Result<Cursor>,
) -> rusqlite::Result<bool> {
    if !gathering.goes_on() {
        return Ok(false);
    }
    let is_theirs = row.get_ref("tenant_id")?.as_bytes().is_ok_and(|tenant| gathering.is_of(tenant));
    let event = if is_theirs { Some(listed(row)?) } else { None };
    gathering.take(row.get("id")?, cursor(row)?, event);
    Ok(true)
}

fn id_cursor(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    Ok(Cursor::Id(row.get_ref("event_id")?.as_bytes().unwrap_or_default().to_vec()))
}

fn due_cursor(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    Ok(Cursor::Due(row.get("next_attempt_at")?, row.get("id")?))
}

fn listed(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let text = |column| Ok::<_, rusqlite::Error>(lossy_text(row, column)?.unwrap_or_default());
    let (published_at, failed_at) = (row.get("published_at")?, row.get("failed_at")?);
    Ok(EventRow {
        event_id: text("event_id")?,
        event_type: text("type")?,
        version: row.get("schema_version")?,
        aggregate: Aggregate { aggregate_type: text("aggregate_type")?, id: text("aggregate_id")? },
        occurred_at: row.get("occurred_at")?,
        created_at: row.get("created_at")?,
        status: EventStatus::of(published_at, failed_at),
        attempts: row.get("attempts")?,
        next_attempt_at: row.get("next_attempt_at")?,
        last_error: lossy_text(row, "last_error")?,
        published_at,
        failed_at,
        acceptances: Acceptances::read(text("acceptances")?).times(),
    })
}

/// Both spellings of a UUID are one event's; the one that is asked for first.
pub(super) const FIND: &str = "
    SELECT id, tenant_id, event_id, type, schema_version, aggregate_type, aggregate_id, occurred_at, created_at,
           attempts, next_attempt_at, last_error, published_at, failed_at, acceptances, payload
    FROM outbox_events WHERE tenant_id = :tenant AND event_id IN (:event_id, :lower_case)
    ORDER BY event_id = :event_id DESC LIMIT 1";

/// A tenant's event of that id with its data.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, event_id: &str) -> Result<Option<(EventRow, String)>, StoreError> {
    let lower_case = event_id.to_ascii_lowercase();
    let params = named_params! { ":tenant": tenant.as_str(), ":event_id": event_id, ":lower_case": lower_case };
    tx.query_opt(FIND, params, |row| Ok((listed(row)?, lossy_text(row, "payload")?.unwrap_or_default())))
}

/// Where a tenant's event stands: its row, and its status.
pub(crate) fn find_status(
    tx: &Tx<'_>,
    tenant: &TenantId,
    event_id: &str,
) -> Result<Option<(i64, EventStatus)>, StoreError> {
    let sql = "
        SELECT id, published_at, failed_at FROM outbox_events
        WHERE tenant_id = :tenant AND event_id IN (:event_id, :lower_case)
        ORDER BY event_id = :event_id DESC LIMIT 1";
    let lower_case = event_id.to_ascii_lowercase();
    let params = named_params! { ":tenant": tenant.as_str(), ":event_id": event_id, ":lower_case": lower_case };
    tx.query_opt(sql, params, |row| {
        Ok((row.get("id")?, EventStatus::of(row.get("published_at")?, row.get("failed_at")?)))
    })
}

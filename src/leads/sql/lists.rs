//! Statements that only look: lists, an export, one lead whole with its events.

use rusqlite::types::ValueRef;
use rusqlite::{Row, named_params};
use serde_json::Value;

use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::NotificationStatus;
use crate::leads::inspect::{EventRow, Filter, Listed, Position, Record};

/// The list's statement over the rows of one notification status, or of all: the same columns and filters, newest first.
macro_rules! newest_first {
    ($which:literal) => {
        concat!(
            "SELECT id, request_id, created_at, status, notification_status, notification_attempt_count,
                    notification_last_error, notification_manual_retry_count, technical_priority, source, client_name, city
             FROM broker_leads INDEXED BY ",
            $which,
            " AND (created_at, id) < (:at, :id) AND created_at >= :from AND (:status IS NULL OR status = :status)
             ORDER BY created_at DESC, id DESC LIMIT :limit"
        )
    };
}

/// Every column that is exported, once, and the statements that read them.
macro_rules! whole {
    ($($column:literal)*) => {
        /// The columns of a lead, in their order.
        pub(crate) const COLUMNS: &[&str] = &[$($column),*];
        const WHOLE: &str = concat!("SELECT rowid" $(, ", ", $column)*, " FROM broker_leads WHERE id = :id OR request_id = :id
             ORDER BY id = :id DESC LIMIT 1");
        pub(super) const EXPORT_ALL: &str = oldest_first!("broker_leads_by_age WHERE TRUE", $($column)*);
        pub(super) const EXPORT: [&str; 5] = [
            oldest_first!("broker_leads_pending WHERE notification_status = 'pending'", $($column)*),
            // That index has another order: these are few, and sorted.
            oldest_first!("broker_leads_sending WHERE notification_status = 'sending'", $($column)*),
            oldest_first!("broker_leads_sent WHERE notification_status = 'sent'", $($column)*),
            oldest_first!("broker_leads_failed WHERE notification_status = 'failed'", $($column)*),
            oldest_first!("broker_leads_disabled WHERE notification_status = 'disabled'", $($column)*),
        ];
    };
}

macro_rules! oldest_first {
    ($which:literal, $($column:literal)*) => {
        concat!(
            "SELECT rowid" $(, ", ", $column)*, " FROM broker_leads INDEXED BY ",
            $which,
            " AND (created_at, id) > (:at, :id) AND created_at < :to AND (:status IS NULL OR status = :status)
             ORDER BY created_at, id LIMIT :limit"
        )
    };
}

pub(super) const LIST_ALL: &str = newest_first!("broker_leads_by_age WHERE TRUE");
/// In the order of [`NotificationStatus::ALL`].
pub(super) const LIST: [&str; 5] = [
    newest_first!("broker_leads_pending WHERE notification_status = 'pending'"),
    newest_first!("broker_leads_sending WHERE notification_status = 'sending'"),
    newest_first!("broker_leads_sent WHERE notification_status = 'sent'"),
    newest_first!("broker_leads_failed WHERE notification_status = 'failed'"),
    newest_first!("broker_leads_disabled WHERE notification_status = 'disabled'"),
];

whole! {
    "id" "request_id" "created_at" "updated_at" "announced_at" "status" "source" "source_page" "client_name" "phone"
    "phone_normalized" "city" "preferred_contact" "contact_time" "comment" "scenario" "mortgage_goal" "object_type"
    "property_type" "object_price_text" "down_payment_text" "income_type" "bank_history" "property_price" "down_payment"
    "monthly_income" "has_matkapital" "has_bad_credit_history" "has_previous_rejection" "consent_accepted"
    "personal_data_consent" "schema_version" "form_version" "submitted_at" "form_fill_ms" "page_url" "page_title"
    "referrer" "user_agent" "utm_source" "utm_medium" "utm_campaign" "utm_content" "utm_term" "tracking" "qualification"
    "spam_check" "raw_payload" "technical_priority" "delivery_channel" "notification_status"
    "notification_attempt_count" "notification_cycle_claims" "notification_attempted_at" "notification_sent_at"
    "notification_last_error" "notification_manual_retry_count" "notification_manual_retry_requested_at"
    "notification_manual_retry_reason_code" "journey_type" "journey_stage" "journey_scenario_slug" "remaining_questions"
    "preparation" "preparation_completed"
}

const FLAGS: [&str; 5] =
    ["has_matkapital", "has_bad_credit_history", "has_previous_rejection", "consent_accepted", "personal_data_consent"];
const JSON: [&str; 6] =
    ["tracking", "qualification", "spam_check", "raw_payload", "preparation", "preparation_completed"];

/// The statement for a status among those in the order of [`NotificationStatus::ALL`].
fn of_status(all: &'static str, by_status: &[&'static str; 5], status: Option<NotificationStatus>) -> &'static str {
    let at = NotificationStatus::ALL.into_iter().position(|one| Some(one) == status);
    at.map_or(all, |at| by_status[at])
}

/// A page of leads, newest first.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
    // No id is empty: this is the end of what is before the instant.
    let end = Position { created_at: filter.to.unwrap_or(i64::MAX), id: String::new() };
    let before = filter.after.as_ref().map_or(&end, |after| after.min(&end));
    let params = named_params! {
        ":at": before.created_at, ":id": before.id, ":from": filter.from.unwrap_or(i64::MIN),
        ":status": filter.status.map(|status| status.as_str()), ":limit": filter.limit,
    };
    tx.query_all(of_status(LIST_ALL, &LIST, filter.notification), params, listed)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let created_at: UnixMs = row.get("created_at")?;
    let id = lossy_text(row, "id")?.unwrap_or_default();
    Ok(Listed {
        position: Position { created_at, id: id.clone() },
        id,
        request_id: lossy_text(row, "request_id")?,
        created_at: rfc3339(created_at),
        status: lossy_text(row, "status")?.unwrap_or_default(),
        notification_status: lossy_text(row, "notification_status")?.unwrap_or_default(),
        notification_attempt_count: row.get("notification_attempt_count")?,
        notification_last_error: lossy_text(row, "notification_last_error")?,
        notification_manual_retry_count: row.get("notification_manual_retry_count")?,
        technical_priority: lossy_text(row, "technical_priority")?,
        source: lossy_text(row, "source")?.unwrap_or_default(),
        client_name: lossy_text(row, "client_name")?,
        city: lossy_text(row, "city")?,
    })
}

/// A page of leads with all their columns, oldest first.
pub(crate) fn export(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Record>, StoreError> {
    let begin = Position { created_at: filter.from.unwrap_or(i64::MIN), id: String::new() };
    let behind = filter.after.as_ref().map_or(&begin, |after| after.max(&begin));
    let params = named_params! {
        ":at": behind.created_at, ":id": behind.id, ":to": filter.to.unwrap_or(i64::MAX),
        ":status": filter.status.map(|status| status.as_str()), ":limit": filter.limit,
    };
    tx.query_all(of_status(EXPORT_ALL, &EXPORT, filter.notification), params, record)
}

/// The lead of that id, or of that request id.
pub(crate) fn find_whole(tx: &Tx<'_>, id_or_request_id: &str) -> Result<Option<Record>, StoreError> {
    tx.query_opt(WHOLE, named_params! { ":id": id_or_request_id }, record)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let values: rusqlite::Result<Vec<Value>> = COLUMNS.iter().map(|column| shown(row, column)).collect();
    let position = Position { created_at: row.get("created_at")?, id: lossy_text(row, "id")?.unwrap_or_default() };
    Ok(Record { position, values: values? })
}

/// A value as people read it: a time as such, a flag as such, JSON taken apart. JSON that only SQLite takes for such,
/// and text in another encoding, as text.
fn shown(row: &Row<'_>, column: &str) -> rusqlite::Result<Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(at) if column.ends_with("_at") => Value::from(rfc3339(at)),
        ValueRef::Integer(flag) if FLAGS.contains(&column) => Value::from(flag != 0),
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Text(bytes) if JSON.contains(&column) => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from(text(bytes)))
        }
        ValueRef::Text(bytes) => Value::from(text(bytes)),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Value::Null,
    })
}

/// What happened to a lead, the newest first, no more than `limit`.
pub(crate) fn events_of(tx: &Tx<'_>, lead_id: &str, limit: i64) -> Result<Vec<EventRow>, StoreError> {
    let sql = "
        SELECT created_at, event_type, payload FROM broker_lead_events
        WHERE lead_id = :id ORDER BY id DESC LIMIT :limit";
    tx.query_all(sql, named_params! { ":id": lead_id, ":limit": limit }, |row| {
        let payload = lossy_text(row, "payload")?.unwrap_or_default();
        Ok(EventRow {
            created_at: rfc3339(row.get("created_at")?),
            event_type: lossy_text(row, "event_type")?.unwrap_or_default(),
            payload: serde_json::from_str(&payload).unwrap_or(Value::String(payload)),
        })
    })
}

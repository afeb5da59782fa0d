//! Storing a lead, what is asked before it, and the count of requests.

use rusqlite::{named_params, params};

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::NotificationStatus;
use crate::leads::intake::{Arrival, Submission};

pub(super) const STATUS_OF_REQUEST: &str =
    "SELECT notification_status FROM broker_leads WHERE request_id = :request_id";

/// Where the notification of the lead of this request stands.
pub(crate) fn find_status(tx: &Tx<'_>, request_id: &str) -> Result<Option<NotificationStatus>, StoreError> {
    tx.query_opt(STATUS_OF_REQUEST, named_params! { ":request_id": request_id }, |row| {
        let status = lossy_text(row, "notification_status")?.unwrap_or_default();
        NotificationStatus::parse(&status).map_err(super::unreadable)
    })
}

pub(super) const ATTEMPTS: &str = "SELECT attempt_count FROM broker_lead_rate_limits
     WHERE window_start = :window_start AND fingerprint = :fingerprint";

/// How many requests of this visitor in this hour are counted.
pub(crate) fn attempts(tx: &Tx<'_>, fingerprint: &str, window_start: UnixMs) -> Result<i64, StoreError> {
    let params = named_params! { ":fingerprint": fingerprint, ":window_start": window_start };
    Ok(tx.query_opt(ATTEMPTS, params, |row| row.get("attempt_count"))?.unwrap_or(0))
}

/// Counts a request of this visitor in this hour. Without RETURNING, whose table in memory costs more than the rest.
pub(crate) fn count_attempt(tx: &Tx<'_>, fingerprint: &str, window_start: UnixMs) -> Result<usize, StoreError> {
    tx.execute(
        "INSERT INTO broker_lead_rate_limits (fingerprint, window_start, attempt_count, first_attempt_at, last_attempt_at)
         VALUES (:fingerprint, :window_start, 1, :now, :now)
         ON CONFLICT (window_start, fingerprint) DO UPDATE
           SET attempt_count = MIN(attempt_count + 1, 1000000), last_attempt_at = MAX(last_attempt_at, :now)",
        named_params! { ":fingerprint": fingerprint, ":window_start": window_start, ":now": tx.now() },
    )
}

pub(super) const DELETE_WINDOWS: &str = "DELETE FROM broker_lead_rate_limits WHERE (fingerprint, window_start) IN (
       SELECT fingerprint, window_start FROM broker_lead_rate_limits WHERE window_start < :before LIMIT :limit)";

/// Deletes up to so many counts of hours that began before then.
pub(crate) fn delete_windows(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_WINDOWS, named_params! { ":before": before, ":limit": limit })
}

const INSERT: &str = "INSERT INTO broker_leads (
       id, request_id, created_at, updated_at, announced_at, source_page, client_name, phone, phone_normalized,
       city, preferred_contact, comment, scenario, object_type, object_price_text, down_payment_text, income_type,
       bank_history, property_price, down_payment, has_matkapital, has_bad_credit_history, has_previous_rejection,
       form_version, submitted_at, form_fill_ms, page_url, page_title, referrer, user_agent, utm_source,
       utm_medium, utm_campaign, utm_content, utm_term, tracking, qualification, spam_check, raw_payload,
       technical_priority, notification_status, consent_accepted, personal_data_consent, journey_type, journey_stage,
       journey_scenario_slug, remaining_questions, preparation, preparation_completed)
     VALUES (
       :id, :request_id, :now, :now, :now, :source_page, :client_name, :phone, :phone_normalized, :city,
       :preferred_contact, :comment, :scenario, :object_type, :object_price_text, :down_payment_text, :income_type,
       :bank_history, :property_price, :down_payment, :has_matkapital, :has_bad_credit_history,
       :has_previous_rejection, :form_version, :submitted_at, :form_fill_ms, :page_url, :page_title, :referrer,
       :user_agent, :utm_source, :utm_medium, :utm_campaign, :utm_content, :utm_term, :tracking, :qualification,
       :spam_check, :raw_payload, :technical_priority, :notification_status, 1, 1, :journey_type, :journey_stage,
       :journey_scenario_slug, :remaining_questions, :preparation, :preparation_completed)";

/// Inserts a lead whose arrival the same transaction records, so that no sweep has to.
pub(crate) fn insert(tx: &Tx<'_>, arrival: &Arrival<'_>, submission: &Submission) -> Result<(), StoreError> {
    let Submission { client, mortgage, context, preparation, .. } = submission;
    let [source, medium, campaign, content, term] = &context.utm;
    // By position, in the order in which the names first stand in the statement: looking each of forty-five names up among
    // the others would be the one writer's work.
    let params = params![
        arrival.id,
        arrival.request_id,
        tx.now(),
        context.source_page,
        client.name,
        client.phone,
        arrival.phone_normalized,
        client.city,
        client.preferred_contact,
        mortgage.comment,
        mortgage.scenario,
        mortgage.object_type,
        mortgage.object_price,
        mortgage.down_payment,
        mortgage.income_type,
        mortgage.bank_history,
        mortgage.property_price_amount,
        mortgage.down_payment_amount,
        mortgage.flags.matkapital,
        mortgage.flags.bad_credit_history,
        mortgage.flags.previous_rejection,
        context.form_version,
        context.submitted_at.unwrap_or(tx.now()),
        context.form_fill_ms,
        context.page_url,
        context.page_title,
        context.referrer,
        arrival.user_agent,
        source,
        medium,
        campaign,
        content,
        term,
        context.tracking,
        context.qualification,
        context.spam_check,
        context.raw_payload,
        submission.priority.text(),
        arrival.status.as_str(),
        preparation.journey_type,
        preparation.journey_stage,
        preparation.scenario_slug,
        preparation.remaining_questions,
        preparation.whole,
        preparation.completed,
    ];
    tx.execute(INSERT, params)?;
    Ok(())
}

/// Records that a lead was created. The payload is codes and counters.
pub(crate) fn insert_created(tx: &Tx<'_>, arrival: &Arrival<'_>, payload: &str) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO broker_lead_events (lead_id, request_id, created_at, event_type, payload)
         VALUES (:lead_id, :request_id, :now, 'created', :payload)",
        named_params! {
            ":lead_id": arrival.id,
            ":request_id": arrival.request_id,
            ":now": tx.now(),
            ":payload": payload,
        },
    )?;
    Ok(())
}

/// The repeated statements with the index each is meant to use.
#[cfg(test)]
pub(crate) fn plans() -> [(&'static str, &'static str); 3] {
    [
        (ATTEMPTS, "PRIMARY KEY (window_start=? AND fingerprint=?)"),
        (STATUS_OF_REQUEST, "broker_leads_requested_once (request_id=?)"),
        (DELETE_WINDOWS, "PRIMARY KEY (window_start<?)"),
    ]
}

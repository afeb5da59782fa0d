//! What the end of an attempt writes: the delivery's new state, the journal's row, and what is noted of the endpoint.

use rusqlite::{Row, named_params};

use super::{parsed, parsed_opt};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::webhooks::attempt::Journaled;
use crate::webhooks::delivery::{Claim, Condition, CutOff, DeliveryStatus, Standing, UnderWay};

// Whether anything of the endpoint has to be cleared is read on the way: on the way of every delivery nothing has.
pub(super) const MARK_DELIVERED: &str = "
    UPDATE webhook_deliveries
    SET status = 'delivered', delivered_at = COALESCE(delivered_at, :now), interruptions = 0, next_attempt_at = NULL,
        claimed_at = NULL, locked_until = NULL, lease_boot = NULL, resumes = NULL, last_error = NULL
    WHERE id = :delivery AND status = 'sending' AND attempts = :number
    RETURNING (SELECT failing_since IS NOT NULL FROM webhook_endpoints
               WHERE id = webhook_deliveries.endpoint) AS was_failing";

pub(super) const FIND_UNDER_WAY: &str = "
    SELECT d.step, d.interruptions, d.next_attempt_at, d.resumes,
           w.endpoint_id, w.tenant_id, w.url, w.status <> 'disabled' AND w.deleted_at IS NULL AS is_live,
           w.held_until, w.failing_since, w.warned_at
    FROM webhook_deliveries AS d CROSS JOIN webhook_endpoints AS w ON w.id = d.endpoint
    WHERE d.id = :delivery AND d.status = 'sending' AND d.attempts = :number";

pub(super) const CUT_OFF: &str = "
    SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_sending
    WHERE status = 'sending' AND (lease_boot <> :boot OR locked_until <= :now OR locked_until > :latest)
    ORDER BY locked_until LIMIT :limit";

pub(super) const CUT_OFF_ONE: &str = "
    SELECT id, attempts, claimed_at, step, interruptions, next_attempt_at, resumes
    FROM webhook_deliveries WHERE id = :delivery";

pub(super) const SETTLE: &str = "
    UPDATE webhook_deliveries
    SET status = :status, step = :step, interruptions = :interruptions, next_attempt_at = :next_attempt_at,
        last_error = :last_error, resend_requested_at = COALESCE(resend_requested_at, :resend_requested_at),
        claimed_at = NULL, locked_until = NULL, lease_boot = NULL, resumes = NULL
    WHERE id = :delivery";

pub(super) const JOURNAL: &str = "
    INSERT INTO webhook_attempts (delivery, number, trigger, started_at, duration_ms, http_status, error, response_body,
                                  resolved_ip)
    VALUES (:delivery, :number, :trigger, :started_at, :duration_ms, :http_status, :error, :response_body, :resolved_ip)";

/// The endpoint has it; whether nothing had arrived there for a while. `None` if the attempt is not the one under way.
pub(crate) fn mark_delivered(tx: &Tx<'_>, claim: &Claim) -> Result<Option<bool>, StoreError> {
    let params = named_params! { ":now": tx.now(), ":delivery": claim.delivery, ":number": claim.number };
    tx.query_opt(MARK_DELIVERED, params, |row| row.get("was_failing"))
}

/// The delivery and its endpoint, if the attempt is the one under way.
pub(crate) fn find_under_way(tx: &Tx<'_>, claim: &Claim) -> Result<Option<(UnderWay, Condition)>, StoreError> {
    let params = named_params! { ":delivery": claim.delivery, ":number": claim.number };
    tx.query_opt(FIND_UNDER_WAY, params, |row| Ok((under_way(row)?, condition(row)?)))
}

fn under_way(row: &Row<'_>) -> rusqlite::Result<UnderWay> {
    Ok(UnderWay {
        step: row.get("step")?,
        interruptions: row.get("interruptions")?,
        next_attempt_at: row.get("next_attempt_at")?,
        resumes: parsed_opt(row, "resumes", |text| DeliveryStatus::parse(text).ok())?,
    })
}

fn condition(row: &Row<'_>) -> rusqlite::Result<Condition> {
    Ok(Condition {
        endpoint_id: row.get("endpoint_id")?,
        tenant: parsed(row, "tenant_id", TenantId::parse)?,
        url: row.get("url")?,
        is_live: row.get("is_live")?,
        held_until: row.get("held_until")?,
        failing_since: row.get("failing_since")?,
        warned_at: row.get("warned_at")?,
    })
}

/// Deliveries of attempts whose lease is of another boot, over, or ends after `latest`. Only the rows: what is in one that
/// cannot be read is nobody else's loss.
pub(crate) fn cut_off(tx: &Tx<'_>, latest: UnixMs, limit: usize) -> Result<Vec<i64>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let params = named_params! { ":boot": tx.boot(), ":now": tx.now(), ":latest": latest, ":limit": limit };
    tx.query_all(CUT_OFF, params, |row| row.get("id"))
}

/// The attempt of a delivery that was cut off.
pub(crate) fn load_cut_off(tx: &Tx<'_>, delivery: i64) -> Result<CutOff, StoreError> {
    tx.query_one(CUT_OFF_ONE, named_params! { ":delivery": delivery }, |row| {
        Ok(CutOff {
            delivery: row.get("id")?,
            number: row.get("attempts")?,
            started_at: row.get("claimed_at")?,
            under_way: under_way(row)?,
        })
    })
}

/// The attempt is over; where the delivery stands now. A person's request that came meanwhile stays.
pub(crate) fn settle(tx: &Tx<'_>, delivery: i64, standing: &Standing) -> Result<usize, StoreError> {
    let params = named_params! {
        ":delivery": delivery,
        ":status": standing.status.as_str(),
        ":step": standing.step,
        ":interruptions": standing.interruptions,
        ":next_attempt_at": standing.next_attempt_at,
        ":last_error": standing.last_error,
        ":resend_requested_at": standing.resend_requested_at,
    };
    tx.execute(SETTLE, params)
}

/// Journals an attempt. Its number is taken: the journal has no attempt twice.
pub(crate) fn journal(tx: &Tx<'_>, attempt: &Journaled<'_>) -> Result<usize, StoreError> {
    let params = named_params! {
        ":delivery": attempt.delivery,
        ":number": attempt.number,
        ":trigger": attempt.trigger.as_str(),
        ":started_at": attempt.started_at,
        ":duration_ms": attempt.duration_ms,
        ":http_status": attempt.http_status,
        ":error": attempt.error.map(|error| error.as_str()),
        ":response_body": attempt.response_body,
        ":resolved_ip": attempt.resolved_ip,
    };
    tx.execute(JOURNAL, params)
}

/// Something arrives at the endpoint again.
pub(crate) fn clear_failing(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_endpoints SET failing_since = NULL, warned_at = NULL WHERE id = :endpoint";
    tx.execute(sql, named_params! { ":endpoint": endpoint })
}

/// The first failure since something arrived, of which nobody was told yet.
pub(crate) fn mark_failing(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_endpoints SET failing_since = :now, warned_at = NULL WHERE id = :endpoint";
    tx.execute(sql, named_params! { ":now": tx.now(), ":endpoint": endpoint })
}

/// The owner is told that nothing arrives.
pub(crate) fn mark_warned(tx: &Tx<'_>, endpoint: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_endpoints SET warned_at = :now WHERE id = :endpoint";
    tx.execute(sql, named_params! { ":now": tx.now(), ":endpoint": endpoint })
}

/// The endpoint's receiver is left alone until then.
pub(crate) fn hold(tx: &Tx<'_>, endpoint: i64, until: UnixMs) -> Result<usize, StoreError> {
    let sql = "UPDATE webhook_endpoints SET held_until = :until WHERE id = :endpoint";
    tx.execute(sql, named_params! { ":until": until, ":endpoint": endpoint })
}

//! The intake: what a form posted becomes a lead, once, in one transaction.
//!
//! Whatever of a request needs no store is done before the transaction ([`Submission::parse`]): the one writer only
//! looks up, counts and binds. A refusal is committed too, since it counts.
//!
//! # What the rules leave open
//! - A field of an odd type is absent, and a number stands for its text. `schema_version` and `form_fill_ms` are numbers;
//!   `1.0` is one as JavaScript sees it, and `"1"` is not.
//! - `phone_normalized` is the E.164 digits without the plus, in every region; without `client.phone` the form's own
//!   `client.phone_normalized` is read as the number.
//! - utm columns are the `utm_*` keys of `tracking.current`, and no others.
//! - Price and down payment count for the priority when anything is written there; their columns hold digits only.
//! - Marks of direction stay in a text: names in Hebrew and Arabic need them.
//! - A request id is compared as it was sent: the same UUID in another case is another request.
//!
//! # Guarantees
//! - Equal requests at once make one lead: `src/leads/intake/tests/mod.rs::sixty_four_equal_requests_at_once_make_one_lead`.
//! - Nothing that is stored offends the schema: `src/leads/intake/tests/any_json.rs::what_is_accepted_never_offends_the_schema`.
//! - What each kind of request is answered and becomes: `tests/it/leads_fixtures.rs::every_fixture_is_answered_stored_and_summed_up_as_it_says`.
//!
//! # Windows
//! The process dies before the commit: nothing of the request is in the file. After it and before the answer: the form
//! posts again under its id and is told that the lead is known.

mod json;
mod money;
mod phone;
mod preparation;
mod priority;
mod rate_limit;
mod request_id;
mod submission;
#[cfg(test)]
mod tests;
mod text;
mod validation;

use std::net::IpAddr;

pub(crate) use submission::Submission;

use super::{LEADS, NotificationStatus, sql};
use crate::config::{Delivery, LeadsConfig};
use crate::kernel::clock::UnixMs;
use crate::kernel::events::{Event, Lead};
use crate::kernel::id;
use crate::kernel::store::{StoreError, Tx};

/// Who sent a request.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    /// The peer's, or what a trusted proxy says it is.
    pub(crate) ip: IpAddr,
    /// The header; empty if there is none.
    pub(crate) user_agent: String,
}

/// What became of a request. The id in a refusal is the one sent, if it is a valid one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is a new lead.
    Stored { request_id: String, status: NotificationStatus },
    /// Its lead was stored before.
    Known { request_id: String, status: NotificationStatus },
    /// The visitor has posted too often in this hour.
    RateLimited { request_id: Option<String>, retry_after_seconds: i64 },
    /// A machine sent it.
    Spam { request_id: Option<String> },
    /// It lacks something; the faults are for the log.
    Invalid { request_id: Option<String>, faults: Vec<&'static str> },
}

/// What of a lead is known only when it is stored.
pub(crate) struct Arrival<'a> {
    pub(crate) id: String,
    pub(crate) request_id: &'a str,
    pub(crate) phone_normalized: &'a str,
    pub(crate) user_agent: Option<String>,
    pub(crate) status: NotificationStatus,
}

/// Takes a request in: known, too many, spam, invalid, or stored with its `created` event and its domain event.
///
/// # Errors
/// The store's; nothing of the request is in the file then, and it was not counted.
pub(crate) fn accept(
    tx: &Tx<'_>,
    submission: &Submission,
    visitor: &Visitor,
    rules: &LeadsConfig,
) -> Result<Answer, StoreError> {
    let request_id = submission.request_id.clone();
    if let Some(request_id) = &request_id
        && let Some(status) = sql::intake::find_status(tx, request_id)?
    {
        let is_unfinished = matches!(status, NotificationStatus::Pending | NotificationStatus::Sending);
        if is_unfinished && rules.delivery == Delivery::Worker {
            tx.wake(LEADS);
        }
        return Ok(Answer::Known { request_id: request_id.clone(), status });
    }
    let fingerprint = rate_limit::fingerprint(visitor, &submission.phone.digits);
    let window = rate_limit::window_of(tx.now());
    let requests = sql::intake::attempts(tx, &fingerprint, window)? + 1;
    sql::intake::count_attempt(tx, &fingerprint, window)?;
    if requests > i64::from(rules.rate_limit_per_hour) {
        return Ok(Answer::RateLimited { request_id, retry_after_seconds: rate_limit::seconds_left(tx.now()) });
    }
    if submission.is_spam {
        return Ok(Answer::Spam { request_id });
    }
    let faults = validation::faults(submission, rules);
    match request_id {
        Some(request_id) if faults.is_empty() => {
            let status = match rules.delivery {
                Delivery::Worker | Delivery::Rpc => NotificationStatus::Pending,
                Delivery::Off => NotificationStatus::Disabled,
            };
            let arrival = Arrival {
                id: id::uuid_v7(tx.now()),
                request_id: &request_id,
                phone_normalized: &submission.phone.digits,
                user_agent: text::some(text::line(&visitor.user_agent, 500)),
                status,
            };
            store(tx, &arrival, submission)?;
            Ok(Answer::Stored { request_id, status })
        }
        request_id => Ok(Answer::Invalid { request_id, faults }),
    }
}

/// The lead, that it was created, and the domain event; whoever notifies is woken.
fn store(tx: &Tx<'_>, arrival: &Arrival<'_>, submission: &Submission) -> Result<(), StoreError> {
    sql::intake::insert(tx, arrival, submission)?;
    // The form's version is the sender's text and stays in the lead: an event holds codes and counters.
    let payload = format!(r#"{{"source":"site","schema_version":1,"priority":"{}"}}"#, submission.priority.code());
    sql::intake::insert_created(tx, arrival, &payload)?;
    tx.publish(&Event::LeadReceived(Lead { id: arrival.id.clone(), request_id: Some(arrival.request_id.to_owned()) }))?;
    if arrival.status == NotificationStatus::Pending {
        tx.wake(LEADS);
    }
    Ok(())
}

/// Forgets up to so many counts of hours that began before then; how many.
///
/// # Errors
/// The store's.
pub(crate) fn prune_rate_limits(tx: &Tx<'_>, before: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::intake::delete_windows(tx, before, limit)
}

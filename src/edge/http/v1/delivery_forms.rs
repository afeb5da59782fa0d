//! Deliveries and their attempts as they travel.

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::Object;

use crate::kernel::clock::rfc3339;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::inspect::{Attempt, Delivery, Seen};
use crate::webhooks::{ErrorClass, Trigger};

/// An event on its way to an endpoint. The command line prints the same form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryBody {
    /// Its id.
    #[schema(pattern = "^dlv_[0-9a-f-]{36}$")]
    pub(crate) id: String,
    /// The event.
    pub(crate) event_id: String,
    /// The event's type.
    pub(crate) event_type: String,
    /// Where it goes.
    #[schema(pattern = "^ep_[0-9a-f-]{36}$")]
    pub(crate) endpoint_id: String,
    /// Where it stands.
    #[schema(schema_with = delivery_status)]
    pub(crate) status: &'static str,
    /// Attempts that were begun.
    #[schema(minimum = 0)]
    pub(crate) attempts: i64,
    /// When it is tried again, if it waits.
    #[schema(required, format = DateTime)]
    pub(crate) next_attempt_at: Option<String>,
    /// When a person asked for it to be sent again, if that was not begun yet.
    #[schema(required, format = DateTime)]
    pub(crate) resend_requested_at: Option<String>,
    /// Why the last attempt failed: the status of the answer, or one of the classes of an attempt.
    #[schema(required)]
    pub(crate) last_error: Option<String>,
    /// When the endpoint first had it.
    #[schema(required, format = DateTime)]
    pub(crate) delivered_at: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
}

/// The words of [`DeliveryStatus`].
pub(super) fn delivery_status() -> Object {
    super::words(&DeliveryStatus::ALL.map(DeliveryStatus::as_str))
}

impl From<Delivery> for DeliveryBody {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id,
            event_id: delivery.event_id,
            event_type: delivery.event_type,
            endpoint_id: delivery.endpoint_id,
            status: delivery.status.as_str(),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(rfc3339),
            resend_requested_at: delivery.resend_requested_at.map(rfc3339),
            last_error: delivery.last_error,
            delivered_at: delivery.delivered_at.map(rfc3339),
            created_at: rfc3339(delivery.created_at),
        }
    }
}

/// One attempt to deliver.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(super) struct AttemptBody {
    /// Its number, from one.
    #[schema(minimum = 1)]
    number: i64,
    /// Who caused it: the schedule, or a person.
    #[schema(schema_with = trigger)]
    trigger: &'static str,
    /// When it began.
    #[schema(format = DateTime)]
    started_at: String,
    /// How long it took; null if it was cut off.
    #[schema(required, minimum = 0)]
    duration_ms: Option<i64>,
    /// The status of the answer; null without one.
    #[schema(required)]
    http_status: Option<u16>,
    /// Why it did not deliver; null if it did.
    #[schema(required, schema_with = error_class)]
    error: Option<&'static str>,
    /// The first 4 KiB of the answer.
    #[schema(required)]
    response_body: Option<String>,
    /// The address that was dialled.
    #[schema(required)]
    resolved_ip: Option<String>,
}

fn trigger() -> Object {
    super::words(&[Trigger::Schedule, Trigger::Manual].map(Trigger::as_str))
}

/// The words of [`ErrorClass`], or null.
pub(super) fn error_class() -> Object {
    super::words_or_null(&ErrorClass::ALL.map(ErrorClass::as_str))
}

impl From<Attempt> for AttemptBody {
    fn from(attempt: Attempt) -> Self {
        let Attempt { number, trigger, seen } = attempt;
        let Seen { started_at, duration_ms, http_status, error, response_body, resolved_ip } = seen;
        Self {
            number,
            trigger: trigger.as_str(),
            started_at: rfc3339(started_at),
            duration_ms,
            http_status,
            error: error.map(ErrorClass::as_str),
            response_body,
            resolved_ip,
        }
    }
}

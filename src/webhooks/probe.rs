//! The test button: one request to an endpoint, made and judged as those of deliveries are, and everything that was said
//! on both sides. It has no delivery, is not repeated, and changes nothing about the endpoint.

use super::attempt::{Outcome, record_test};
use super::deliver::ready::Ready;
use super::endpoint::destination;
use super::fanout::body;
use super::signature::sign;
use super::transport::{Answer, Transport, WebhookHeaders, user_agent};
use super::vault::Vault;
use super::{Error, ErrorClass};
use crate::kernel::clock::UnixMs;
use crate::kernel::id::uuid_v7;
use crate::kernel::store::{Db, Tx};
use crate::kernel::tenant::TenantId;
use crate::outbox::consumer::StoredEvent;

/// The type of the event that is sent. No tenant can publish it.
const TYPE: &str = "webhook.test";

/// What a test is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tools<'a> {
    /// Who sends.
    pub(crate) transport: &'a Transport,
    /// Who opens the secrets.
    pub(crate) vault: &'a Vault,
}

/// One side of a test, as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Name and value.
    pub(crate) headers: Vec<(String, String)>,
    /// The body; of an answer, its beginning.
    pub(crate) body: String,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tested {
    /// How it ended, as it is journaled.
    pub(crate) outcome: Outcome,
    /// What was sent, or would have been.
    pub(crate) request: Said,
    /// What was answered, if anything.
    pub(crate) response: Option<Said>,
}

/// Sends `webhook.test` to an endpoint, whatever its status is, and records the attempt.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Vault`], the store's. That it does not arrive is none.
pub(crate) async fn test(db: &Db, tools: Tools<'_>, tenant: &TenantId, endpoint_id: &str) -> Result<Tested, Error> {
    let (asked_tenant, asked) = (tenant.clone(), endpoint_id.to_owned());
    let destination = db.read(move |tx: &Tx<'_>| destination(tx, &asked_tenant, &asked)).await?;
    let ready = Ready::make(&destination, tools.transport.egress(), tools.vault)?;
    let now = db.clock().now();
    let event = event(tenant, &destination.endpoint_id, now);
    let body = body(&event);
    let at_s = now.div_euclid(1000);
    let (answer, signature) = match sign(&ready.keys, &event.event_id, at_s, body.as_bytes()) {
        Ok(signature) => {
            let headers = WebhookHeaders { id: &event.event_id, at_s, signature: &signature };
            let answer = match &ready.target {
                Ok(target) => tools.transport.post(target, &headers, body.clone().into_bytes()).await,
                Err(_) => Answer::blocked(),
            };
            (answer, signature)
        }
        Err(_) => (Answer::failed(ErrorClass::Interrupted), String::new()),
    };
    let (endpoint, message_id, outcome) = (destination.endpoint, event.event_id.clone(), answer.outcome.clone());
    // Of what was sent there is to be a trace, also while the disk is low.
    db.settle(move |tx: &Tx<'_>| record_test(tx, endpoint, &message_id, now, &outcome)).await?;
    let response = answer.outcome.http_status.map(|_| Said {
        headers: answer.headers().map(|(name, value)| (name.to_owned(), value)).collect(),
        body: answer.outcome.response_body.clone().unwrap_or_default(),
    });
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("user-agent", user_agent().to_owned()),
        ("webhook-id", event.event_id),
        ("webhook-signature", signature),
        ("webhook-timestamp", at_s.to_string()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Tested { outcome: answer.outcome, request: Said { headers, body }, response })
}

fn event(tenant: &TenantId, endpoint_id: &str, now: UnixMs) -> StoredEvent {
    StoredEvent {
        row: 0,
        tenant: tenant.clone(),
        event_id: uuid_v7(now),
        event_type: TYPE.to_owned(),
        version: 1,
        aggregate_type: "webhook_endpoint".to_owned(),
        aggregate_id: endpoint_id.to_owned(),
        occurred_at: now,
        payload: serde_json::json!({ "endpoint_id": endpoint_id }).to_string(),
        attempts: 0,
    }
}

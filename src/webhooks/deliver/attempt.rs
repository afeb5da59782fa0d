//! One attempt: it signs, sends, records how it ended, and lets go of what it held, however it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use metrics::{counter, histogram};

use super::hands::{Hands, Taken};
use super::ready::Ready;
use crate::kernel::store::Tx;
use crate::webhooks::DELIVERIES;
use crate::webhooks::attempt::Outcome;
use crate::webhooks::delivery::{Claim, Ended, Finished, Message, Settled, Trouble, finish};
use crate::webhooks::response::ErrorClass;
use crate::webhooks::signature::sign;
use crate::webhooks::transport::{Answer, WebhookHeaders};

impl Hands {
    /// Makes a claimed attempt and records how it ended.
    pub(super) async fn attempt(self: Arc<Self>, taken: Taken) {
        let (mut claim, ready) = taken;
        let _in_hand = InHand { hands: Arc::clone(&self), delivery: claim.delivery };
        let slot = Slot { hands: Arc::clone(&self), endpoint: claim.destination.endpoint };
        let sent = AssertUnwindSafe(self.send(&mut claim, &ready)).catch_unwind().await;
        let outcome = sent.unwrap_or_else(|_| cut_off());
        self.measure(&claim, &outcome);
        let closes = outcome.is_gone() || outcome.pause_asked_for().is_some();
        let _closing = closes.then(|| Closing::of(&self, claim.destination.endpoint));
        drop(slot);
        self.settle(claim, outcome).await;
    }

    async fn send(&self, claim: &mut Claim, ready: &Ready) -> Outcome {
        let Ok(target) = &ready.target else { return Answer::blocked().outcome };
        let body = take_body(&mut claim.message);
        // One reading of the clock: the time that is signed is the time that is told.
        let at_s = self.clock().now().div_euclid(1000);
        let id = claim.message.event_id.as_str();
        let Ok(signature) = sign(&ready.keys, id, at_s, &body) else {
            tracing::error!(delivery.id = %claim.id(), "an event cannot be signed");
            return Answer::failed(ErrorClass::Protocol).outcome;
        };
        let headers = WebhookHeaders { id, at_s, signature: &signature };
        self.parts.transport.post(target, &headers, body).await.outcome
    }

    async fn settle(self: &Arc<Self>, claim: Claim, outcome: Outcome) {
        let (id, endpoint_id) = (claim.id(), claim.destination.endpoint_id.clone());
        let class = outcome.error;
        let (hands, policy, ended) = (Arc::clone(self), self.parts.settings.policy, Ended { claim, outcome });
        let settle = move |tx: &Tx<'_>| {
            if hands.starves() {
                tx.wake(DELIVERIES);
            }
            finish(tx, &ended, &policy)
        };
        match self.parts.db.settle(settle).await {
            Ok(finished) => self.note(&finished, class, &id, &endpoint_id),
            Err(error) => tracing::error!(delivery.id = id, %error, "the outcome of an attempt could not be recorded"),
        }
    }

    fn measure(&self, claim: &Claim, outcome: &Outcome) {
        let class = outcome.error.map_or("delivered", ErrorClass::as_str);
        counter!("pillarbox_webhook_attempts_total", "outcome" => class).increment(1);
        if outcome.is_delivered() && claim.number == 1 {
            let since = self.clock().now().saturating_sub(claim.created_at).max(0);
            histogram!("pillarbox_webhook_receipt_seconds")
                .record(Duration::from_millis(since.unsigned_abs()).as_secs_f64());
        }
    }

    fn note(&self, finished: &Finished, class: Option<ErrorClass>, delivery: &str, endpoint: &str) {
        self.tally().count(&finished.settled);
        let error = class.map_or("none", ErrorClass::as_str);
        match finished.settled {
            Settled::Delivered => tracing::debug!(delivery.id = delivery, "a webhook was delivered"),
            Settled::Again(_) | Settled::Returned(_) => {
                tracing::info!(delivery.id = delivery, endpoint.id = endpoint, error, "a webhook was not delivered");
            }
            Settled::Failed => {
                tracing::warn!(delivery.id = delivery, endpoint.id = endpoint, error, "a webhook was given up");
            }
            Settled::Fenced => {
                tracing::warn!(delivery.id = delivery, "an attempt was taken up by somebody else before it ended");
            }
        }
        for trouble in &finished.trouble {
            match trouble {
                Trouble::Held(until) => {
                    tracing::info!(endpoint.id = endpoint, until, "a receiver asks to be left alone");
                }
                Trouble::Failing => {
                    tracing::warn!(endpoint.id = endpoint, "nothing has arrived at an endpoint for long");
                }
                Trouble::Disabled(reason) => {
                    tracing::warn!(endpoint.id = endpoint, reason = reason.as_str(), "an endpoint was disabled");
                }
            }
        }
    }
}

/// What is known of an attempt that ended in a panic: nothing.
fn cut_off() -> Outcome {
    Answer::failed(ErrorClass::Interrupted).outcome
}

/// The body's bytes, moved unless another delivery of the same event needs them too.
fn take_body(message: &mut Arc<Message>) -> Vec<u8> {
    match Arc::get_mut(message) {
        Some(message) => std::mem::take(&mut message.body),
        None => message.body.clone(),
    }
}

/// A slot, given back when this is dropped.
struct Slot {
    hands: Arc<Hands>,
    endpoint: i64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.hands.gate().ended(self.endpoint);
        self.hands.put_down.notify_waiters();
    }
}

/// Keeps anything more of an endpoint from being claimed until what its answer means is in the file.
struct Closing {
    hands: Arc<Hands>,
    endpoint: i64,
}

impl Closing {
    fn of(hands: &Arc<Hands>, endpoint: i64) -> Self {
        hands.gate().close(endpoint);
        Self { hands: Arc::clone(hands), endpoint }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.hands.gate().closed(self.endpoint);
        self.hands.put_down.notify_waiters();
    }
}

/// Puts the delivery down when its task ends.
struct InHand {
    hands: Arc<Hands>,
    delivery: i64,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.hands.in_hand().remove(&self.delivery);
        self.hands.put_down.notify_waiters();
    }
}

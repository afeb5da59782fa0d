//! One attempt: it signs, sends, and hands its result over, however it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use metrics::{counter, histogram};

use super::hands::{Hands, Taken};
use super::ready::Ready;
use super::results::{Closing, Done, InHand};
use crate::webhooks::attempt::Outcome;
use crate::webhooks::delivery::{Claim, Ended, Message};
use crate::webhooks::response::ErrorClass;
use crate::webhooks::signature::sign;
use crate::webhooks::transport::{Answer, WebhookHeaders};

impl Hands {
    /// Makes a claimed attempt and sees to it that how it ended is recorded.
    pub(super) async fn attempt(self: Arc<Self>, taken: Taken) {
        let (mut claim, ready) = taken;
        let in_hand = InHand::of(&self, claim.delivery);
        let mut slot = Slot { hands: Arc::clone(&self), endpoint: claim.destination.endpoint, took: None };
        let sent = AssertUnwindSafe(self.send(&mut claim, &ready)).catch_unwind().await;
        let outcome = sent.unwrap_or_else(|_| cut_off());
        self.measure(&claim, &outcome);
        let closes = outcome.is_gone() || outcome.pause_asked_for().is_some();
        let closing = closes.then(|| Closing::of(&self, claim.destination.endpoint));
        slot.took = (outcome.error != Some(ErrorClass::Interrupted)).then_some(outcome.duration);
        drop(slot);
        self.settle(Done::new(Ended { claim, outcome }, in_hand, closing)).await;
    }

    async fn send(&self, claim: &mut Claim, ready: &Ready) -> Outcome {
        let Ok(target) = &ready.target else { return Answer::blocked().outcome };
        let body = take_body(&mut claim.message);
        // One reading of the clock: the time that is signed is the time that is told.
        let at_s = self.clock().now().div_euclid(1000);
        let id = claim.message.event_id.as_str();
        let Ok(signature) = sign(&ready.keys, id, at_s, &body) else {
            tracing::error!(delivery.id = %claim.id(), "an event cannot be signed");
            return Answer::failed(ErrorClass::Interrupted).outcome;
        };
        let headers = WebhookHeaders { id, at_s, signature: &signature };
        self.parts.transport.post(target, &headers, body).await.outcome
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
    took: Option<Duration>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let is_roomy = {
            let mut gate = self.hands.gate();
            gate.ended(self.endpoint, self.took);
            gate.is_roomy()
        };
        self.hands.put_down.notify_waiters();
        if is_roomy {
            self.hands.roomy.notify_waiters();
        }
    }
}

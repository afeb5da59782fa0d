//! Results that wait to be written down. Each write has a savepoint of its own, for which SQLite copies every page that
//! is changed under it; so those of attempts that end while the writer is busy are one write, made by the task of the
//! first of them. That is what this queue is for. What is in it is in hand, and lost with the process as an attempt under
//! way is.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;

use super::hands::Hands;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::DELIVERIES;
use crate::webhooks::delivery::{Ended, Finished, Settled, Trouble, finish};
use crate::webhooks::response::ErrorClass;

/// An attempt that has ended, with what it holds until that is written.
pub(super) struct Done {
    ended: Ended,
    _in_hand: InHand,
    _closing: Option<Closing>,
}

/// Results by the order in which they came.
#[derive(Default)]
pub(super) struct Results(Mutex<Vec<Done>>);

impl Done {
    pub(super) fn new(ended: Ended, in_hand: InHand, closing: Option<Closing>) -> Self {
        Self { ended, _in_hand: in_hand, _closing: closing }
    }
}

impl Results {
    /// Whether nobody else is about to write this one too.
    fn put(&self, done: Done) -> bool {
        let mut waiting = self.lock();
        waiting.push(done);
        waiting.len() == 1
    }

    fn move_to(&self, batch: &mut Vec<Done>) {
        batch.append(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Done>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hands {
    /// Records how an attempt ended, together with those that end until the writer has time for it.
    pub(super) async fn settle(self: &Arc<Self>, done: Done) {
        if !self.results.put(done) {
            return;
        }
        // With all slots taken there are more to come soon, and a commit costs the same with them.
        self.room().await;
        let batch: Arc<Results> = Arc::default();
        let written = AssertUnwindSafe(self.write(&batch)).catch_unwind().await;
        let mut done = std::mem::take(&mut *batch.lock());
        match written {
            Ok(Ok(finished)) => {
                done.iter().zip(&finished).for_each(|(done, finished)| self.note(finished, &done.ended))
            }
            Ok(Err(error)) if error.is_store_fault() => {
                // Whatever came since would meet the same.
                self.results.move_to(&mut done);
                done.iter().for_each(|done| not_recorded(done, &error));
            }
            // One that cannot be recorded, or panics, keeps no other from it.
            Ok(Err(_)) | Err(_) => {
                done.into_iter().for_each(|done| drop(tokio::spawn(Arc::clone(self).settle_alone(done))))
            }
        }
    }

    /// Writes what waits once the writer is there; what that is, is moved to `batch` for good.
    async fn write(self: &Arc<Self>, batch: &Arc<Results>) -> Result<Vec<Finished>, StoreError> {
        let (hands, batch, policy) = (Arc::clone(self), Arc::clone(batch), self.parts.settings.policy);
        let write_all = move |tx: &Tx<'_>| {
            let mut batch = batch.lock();
            hands.results.move_to(&mut batch);
            hands.wake_if_starved(tx);
            batch.iter().map(|done| finish(tx, &done.ended, &policy)).collect::<Result<Vec<_>, _>>()
        };
        self.parts.db.settle(write_all).await
    }

    async fn settle_alone(self: Arc<Self>, done: Done) {
        let done = Arc::new(done);
        let (hands, policy, own) = (Arc::clone(&self), self.parts.settings.policy, Arc::clone(&done));
        let write = move |tx: &Tx<'_>| {
            hands.wake_if_starved(tx);
            finish(tx, &own.ended, &policy)
        };
        match self.parts.db.settle(write).await {
            Ok(finished) => self.note(&finished, &done.ended),
            Err(error) => not_recorded(&done, &error),
        }
    }

    fn wake_if_starved(&self, tx: &Tx<'_>) {
        if self.starves() {
            tx.wake(DELIVERIES);
        }
    }

    fn note(&self, finished: &Finished, ended: &Ended) {
        self.tally().count(&finished.settled);
        let error = ended.outcome.error.map_or("none", ErrorClass::as_str);
        let (delivery, endpoint) = (ended.claim.id(), ended.claim.destination.endpoint_id.as_str());
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

fn not_recorded(done: &Done, error: &StoreError) {
    tracing::error!(delivery.id = %done.ended.claim.id(), %error, "the outcome of an attempt could not be recorded");
}

/// Keeps anything more of an endpoint from being claimed until what its answer means is in the file.
pub(super) struct Closing {
    hands: Arc<Hands>,
    endpoint: i64,
}

impl Closing {
    pub(super) fn of(hands: &Arc<Hands>, endpoint: i64) -> Self {
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

/// Puts the delivery down when this is dropped.
pub(super) struct InHand {
    hands: Arc<Hands>,
    delivery: i64,
}

impl InHand {
    pub(super) fn of(hands: &Arc<Hands>, delivery: i64) -> Self {
        Self { hands: Arc::clone(hands), delivery }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.hands.in_hand().remove(&self.delivery);
        self.hands.put_down.notify_waiters();
    }
}

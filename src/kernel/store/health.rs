//! What the store knows of its own state, for readiness, metrics and the writes it refuses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::StoreError;

/// The state of the store; set by the writer, read by anyone.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Why nothing is written any more, once that is so.
    stopped: OnceLock<StoreError>,
    low: AtomicBool,
    /// The last failure that no commit has followed yet.
    failing: Mutex<Option<StoreError>>,
}

impl Health {
    /// Why nothing is written any more until a restart, if that is so.
    pub(super) fn stopped(&self) -> Option<StoreError> {
        self.stopped.get().map(StoreError::echo)
    }

    pub(super) fn is_low(&self) -> bool {
        self.low.load(Ordering::Acquire)
    }

    /// Whether the last thing the store tried failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Notes whether the disk is low; whether that is news.
    pub(super) fn set_low(&self, low: bool) -> bool {
        self.low.swap(low, Ordering::AcqRel) != low
    }

    /// Notes a failure; whether it differs from the one already known, so that it is logged once.
    pub(super) fn failed(&self, error: &StoreError) -> bool {
        if error.is_final() {
            return self.stopped.set(error.echo()).is_ok();
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failing.as_ref().is_some_and(|f| std::mem::discriminant(f) == std::mem::discriminant(error));
        *failing = Some(error.echo());
        !known
    }

    pub(super) fn committed(&self) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.take().is_some() {
            tracing::info!("the store writes again");
        }
    }
}

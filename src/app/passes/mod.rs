//! The passes of the service's jobs: each calls one subsystem and says when it wants to be called again.

mod bulk;
mod events;
mod telegram;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::kernel::clock::UnixMs;

/// What a pass did, and when the next one is wanted besides the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    /// Counts, as they are logged, stored and answered.
    pub(crate) counts: serde_json::Value,
    pub(crate) again: Again,
}

impl Pass {
    /// Of a job that this configuration has nothing to do for.
    fn off() -> Self {
        Self::later(json!({ "off": true }))
    }

    /// What was done, and nothing more is due.
    fn later(counts: serde_json::Value) -> Self {
        Self { counts, again: Again::Later }
    }
}

/// When a pass wants to be followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// By the schedule or a wake.
    Later,
    /// More is due already.
    Now,
    /// Something becomes due then.
    At(UnixMs),
}

/// When something last gave a sign of life, in real time: a moved clock proves nothing.
pub(in crate::app) struct Beat(Mutex<Instant>);

impl Beat {
    pub(in crate::app) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(in crate::app) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(in crate::app) fn since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

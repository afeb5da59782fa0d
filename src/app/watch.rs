//! How long work has waited, as it was last measured. Probes are asked by anybody, so they look here and not into the file.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::kernel::store::Db;
use crate::outbox::health::{Health, health};

/// Between two measurements, in real time; the sweeps that measure come as often.
const EVERY: Duration = Duration::from_secs(5);
/// What has waited this long is not merely behind: somebody should look.
const LONG: Duration = Duration::from_secs(300);

/// The last measurement of one process.
#[derive(Default)]
pub(crate) struct Watch(Mutex<Option<(Instant, Health)>>);

impl Watch {
    /// Measures, unless that was done a moment ago. A store that cannot be read leaves what is known.
    pub(super) async fn look(&self, db: &Db) {
        if self.seen().is_some_and(|(at, _)| at.elapsed() < EVERY) {
            return;
        }
        match db.read(health).await {
            Ok(found) => *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found)),
            Err(error) => tracing::debug!(%error, "what waits for the relay could not be counted"),
        }
    }

    fn seen(&self) -> Option<(Instant, Health)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a person should know of the events.
    pub(crate) fn advice(&self) -> Option<String> {
        let (_, health) = self.seen()?;
        let waited = health.oldest_pending_age_ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
        if let Some(waited) = waited.filter(|waited| *waited >= LONG) {
            let minutes = waited.as_secs() / 60;
            return Some(format!(
                "an event has waited {minutes} minutes for a consumer; see `pillarbox events list --status pending`"
            ));
        }
        (health.failed > 0).then(|| {
            "events were given up by the relay; see `pillarbox events list --status failed` and `pillarbox events retry`"
                .to_owned()
        })
    }
}

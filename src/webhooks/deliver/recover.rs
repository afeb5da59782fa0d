//! Taking up what was under way when a process ended, batch by batch. A row of which nothing can be written (another
//! program's trigger, a journal's number that is taken) is left as it is for a while, and told of once each time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hands::{ASIDE_MS, Hands};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::webhooks::delivery::take_up_interrupted;

/// Deliveries (rows) that could not be taken up, each until when it is not tried again.
#[derive(Debug, Default)]
pub(super) struct Stuck(Mutex<HashMap<i64, UnixMs>>);

impl Stuck {
    /// Those that are left alone now. A clock that is set back does not make it longer.
    fn left_alone(&self, now: UnixMs) -> HashSet<i64> {
        let mut stuck = self.lock();
        stuck.retain(|_, until| (1..=ASIDE_MS).contains(&until.saturating_sub(now)));
        stuck.keys().copied().collect()
    }

    fn put(&self, delivery: i64, now: UnixMs) {
        self.lock().insert(delivery, now.saturating_add(ASIDE_MS));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, UnixMs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hands {
    /// Takes up what was under way when a process ended.
    ///
    /// # Errors
    /// The store's. What was taken up before stays so.
    pub(super) async fn recover(&self) -> Result<(), StoreError> {
        let (mut stuck, mut one_of_them) = (0_u64, None);
        loop {
            let mut left_alone = self.stuck.left_alone(self.clock().now());
            left_alone.extend(self.in_hand().iter().copied());
            let policy = self.parts.settings.policy;
            let take_up = move |tx: &Tx<'_>| take_up_interrupted(tx, &left_alone, &policy);
            let found = match self.parts.db.settle(take_up).await {
                Ok(found) => found,
                Err(error) if error.is_store_fault() => return Err(error),
                Err(error) => {
                    // Whatever it is, it keeps nothing from being sent that waits.
                    tracing::error!(%error, "attempts that were cut off could not be taken up");
                    break;
                }
            };
            if found.taken > 0 {
                tracing::info!(deliveries = found.taken, "attempts were cut off; they are made again");
                self.tally().interrupted += found.taken as u64;
            }
            let is_end = found.taken == 0 && found.stuck.is_empty();
            for (delivery, error) in found.stuck {
                stuck += 1;
                self.stuck.put(delivery, self.clock().now());
                one_of_them.get_or_insert((delivery, error));
            }
            if is_end {
                break;
            }
        }
        if let Some((delivery, error)) = one_of_them {
            tracing::error!(
                count = stuck,
                delivery.row = delivery,
                error,
                "attempts that were cut off could not be taken up; their deliveries are left as they are for a minute"
            );
        }
        Ok(())
    }
}

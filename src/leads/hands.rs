//! Which leads this process is telling the broker of right now. The file says who may send; this says that our own send
//! is still under way, whatever the clock does: a clock that jumps makes a claim old, and not the call behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The leads in hand; clones share them. The worker holds a lead from its claim until its result is recorded, and a
/// claim of the RPC surface is refused meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands(Arc<Mutex<HashMap<String, usize>>>);

/// A lead in hand, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Hold {
    hands: Hands,
    lead_id: String,
}

impl Hold {
    /// The lead's id.
    pub(crate) fn lead_id(&self) -> &str {
        &self.lead_id
    }
}

impl Hands {
    /// Takes a lead in hand. Twice is possible, and then it is in hand until both are dropped.
    pub(crate) fn hold(&self, lead_id: &str) -> Hold {
        *self.held().entry(lead_id.to_owned()).or_default() += 1;
        Hold { hands: self.clone(), lead_id: lead_id.to_owned() }
    }

    /// Whether the lead is in hand.
    pub(crate) fn holds(&self, lead_id: &str) -> bool {
        self.held().contains_key(lead_id)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.hands.held();
        if let Some(times) = held.get_mut(&self.lead_id) {
            *times -= 1;
            if *times == 0 {
                held.remove(&self.lead_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hands;

    #[test]
    fn a_lead_is_in_hand_until_its_last_hold_is_dropped() {
        let hands = Hands::default();
        let (first, second) = (hands.hold("a"), hands.clone().hold("a"));
        drop(first);
        assert!(hands.holds("a") && !hands.holds("b"));
        drop(second);
        assert!(!hands.holds("a"));
    }
}

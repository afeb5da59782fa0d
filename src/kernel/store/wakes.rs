//! Who is woken when a topic's transaction has been committed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use super::Wake;

#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<&'static str, Vec<Weak<Notify>>>>);

impl Wakes {
    /// A signal that holds one permit: work committed while its owner was busy is not missed. It is forgotten once its
    /// owner has dropped it.
    pub(super) fn subscribe(&self, topic: Wake) -> Arc<Notify> {
        let signal = Arc::new(Notify::new());
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let signals = topics.entry(topic.0).or_default();
        signals.retain(|known| known.strong_count() > 0);
        signals.push(Arc::downgrade(&signal));
        signal
    }

    pub(super) fn fire(&self, topics: &[Wake]) {
        if topics.is_empty() {
            return;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.iter().filter_map(|topic| known.get(topic.0)).for_each(|signals| ring(signals));
    }

    /// Another process has committed something; what it was is not known.
    pub(super) fn fire_all(&self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().for_each(|signals| ring(signals));
    }
}

fn ring(signals: &[Weak<Notify>]) {
    signals.iter().filter_map(Weak::upgrade).for_each(|signal| signal.notify_one());
}

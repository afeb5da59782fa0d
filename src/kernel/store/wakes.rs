//! Who is woken when a topic's transaction has been committed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::Wake;

#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<&'static str, Vec<Arc<Notify>>>>);

impl Wakes {
    /// A signal that holds one permit: work committed while its owner was busy is not missed.
    pub(super) fn subscribe(&self, topic: Wake) -> Arc<Notify> {
        let signal = Arc::new(Notify::new());
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic.0).or_default().push(Arc::clone(&signal));
        signal
    }

    pub(super) fn fire(&self, topics: &[Wake]) {
        if topics.is_empty() {
            return;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.iter().filter_map(|topic| known.get(topic.0)).flatten().for_each(|signal| signal.notify_one());
    }

    /// Another process has committed something; what it was is not known.
    pub(super) fn fire_all(&self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().flatten().for_each(|signal| signal.notify_one());
    }
}

//! To which hosts connections are kept open. The client bounds what is idle for each host and not how many hosts there
//! are: without this, a thousand endpoints would take the descriptors that the process needs for its own callers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Hosts whose connections are kept; others get a new one each time. Few send so much to so many at once that they
/// notice.
pub(super) const MOST: usize = 64;

/// The hosts, each until when one of its connections may be open.
#[derive(Debug, Default)]
pub(super) struct Warm(Mutex<HashMap<String, Instant>>);

impl Warm {
    /// Whether the connection of a request to `host` that begins now may be kept after it. It is open for `longest` at
    /// most if nothing else is sent there.
    pub(super) fn may_keep(&self, host: &str, longest: Duration) -> bool {
        let now = Instant::now();
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = hosts.get_mut(host) {
            *until = now + longest;
            return true;
        }
        if hosts.len() >= MOST {
            hosts.retain(|_, until| *until > now);
        }
        let is_free = hosts.len() < MOST;
        if is_free {
            hosts.insert(host.to_owned(), now + longest);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_hosts_stay_warm_and_others_take_their_place_once_they_are_cold() {
        let (warm, long) = (Warm::default(), Duration::from_secs(60));
        for n in 0..MOST {
            assert!(warm.may_keep(&format!("{n}.example"), if n == 0 { Duration::ZERO } else { long }));
        }
        assert!(warm.may_keep("5.example", long), "one that is warm stays so");
        assert!(warm.may_keep("new.example", long), "the place of one that is cold");
        assert!(!warm.may_keep("newer.example", long));
        assert!(!warm.may_keep("0.example", long));
    }
}

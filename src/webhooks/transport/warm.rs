//! Which connections are kept open after their request. The client bounds what is idle at each host, and not how many
//! hosts there are: without this, a thousand endpoints would take the descriptors that the process needs for its own
//! callers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that may be open although nothing is sent on them, to all hosts together. Beside the 512 of our own
/// callers that leaves room below the usual limit of 1024 descriptors. With more, requests to further hosts are made on
/// connections of their own.
pub(super) const MOST: usize = 256;

/// What is known of each host.
#[derive(Debug, Default)]
pub(super) struct Warm(Mutex<Hosts>);

#[derive(Debug, Default)]
struct Hosts {
    of_name: HashMap<String, Host>,
    /// The sum of their peaks.
    open: usize,
}

#[derive(Debug)]
struct Host {
    /// Until when one of its connections may be open.
    until: Instant,
    under_way: usize,
    /// The most that were under way at once since it was cold: no more of its connections can be open.
    peak: usize,
}

/// A request whose connection is kept, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Kept<'a> {
    warm: &'a Warm,
    host: String,
}

impl Warm {
    /// Whether the connection of a request to `host` that begins now may be kept after it. It is open for `longest` at
    /// most if nothing else is sent there.
    pub(super) fn keep(&self, host: &str, longest: Duration) -> Option<Kept<'_>> {
        let now = Instant::now();
        let mut hosts = self.hosts();
        if hosts.room_for(host) == 0 {
            hosts.forget_cold(now);
            if hosts.room_for(host) == 0 {
                return None;
            }
        }
        let known = match hosts.of_name.get_mut(host) {
            Some(known) => known,
            None => hosts.of_name.entry(host.to_owned()).or_insert(Host { until: now, under_way: 0, peak: 0 }),
        };
        known.until = now + longest;
        known.under_way += 1;
        let is_more = known.under_way > known.peak;
        known.peak = known.peak.max(known.under_way);
        hosts.open += usize::from(is_more);
        Some(Kept { warm: self, host: host.to_owned() })
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hosts {
    /// How many more connections may be opened if one to this host has to be.
    fn room_for(&self, host: &str) -> usize {
        let spare = self.of_name.get(host).map_or(0, |known| known.peak - known.under_way);
        spare + MOST.saturating_sub(self.open)
    }

    fn forget_cold(&mut self, now: Instant) {
        self.of_name.retain(|_, known| known.under_way > 0 || known.until > now);
        self.open = self.of_name.values().map(|known| known.peak).sum();
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.warm.hosts().of_name.get_mut(&self.host) {
            known.under_way = known.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn so_many_connections_stay_open_and_others_take_the_place_of_cold_ones() {
        let warm = Warm::default();
        for n in 0..MOST {
            let kept = warm.keep(&format!("{n}.example"), if n == 0 { Duration::ZERO } else { LONG });
            assert!(kept.is_some());
        }
        assert!(warm.keep("5.example", LONG).is_some(), "one that is warm stays so");
        assert!(warm.keep("new.example", LONG).is_some(), "the place of one that is cold");
        assert!(warm.keep("newer.example", LONG).is_none());
        assert!(warm.keep("0.example", LONG).is_none());
    }

    #[test]
    fn a_host_counts_as_many_times_as_it_had_requests_at_once() {
        let warm = Warm::default();
        for _ in 0..2 {
            let at_once: Vec<_> = (0..MOST).map(|_| warm.keep("one.example", LONG).unwrap()).collect();
            assert!(warm.keep("one.example", LONG).is_none() && warm.keep("two.example", LONG).is_none());
            drop(at_once);
        }
        assert!(warm.keep("two.example", LONG).is_none(), "its connections are open still");
        assert!(warm.keep("one.example", LONG).is_some());
    }
}

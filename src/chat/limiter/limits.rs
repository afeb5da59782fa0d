//! The rules of the sending budget, as plain counting over given instants.
//!
//! A window is a sliding one: a start counts for exactly the window's length, and a reserved slot counts as if it
//! started now. So wherever a window is laid, it holds no more starts than the limit.

use std::collections::VecDeque;
use std::time::Duration;

use super::{NoSlot, millis};
use crate::chat::kind::Lane;
use crate::kernel::clock::UnixMs;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60_000;

/// How much may be sent. Zero counts as one: a limit slows down, it does not switch off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Starts per second over all chats (25: below the 30 that Telegram names, since both clocks and the network
    /// move them).
    pub(crate) per_second: usize,
    /// Starts per second in the bulk lane (20).
    pub(crate) bulk_per_second: usize,
    /// Between two starts in one chat (1 s).
    pub(crate) chat_interval: Duration,
    /// Starts per minute in one group (20).
    pub(crate) group_per_minute: usize,
    /// Sends in flight at one time; the bulk lane gets three quarters of them, so that a hanging broadcast leaves
    /// room for answers.
    pub(crate) max_in_flight: usize,
}

impl Limits {
    fn bulk_in_flight(&self) -> usize {
        (self.max_in_flight * 3 / 4).max(1)
    }
}

/// What is used of the budget that all chats share.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    all: Window,
    bulk: Window,
    in_flight: usize,
    bulk_in_flight: usize,
}

impl Budget {
    /// Whether one more of this lane may be reserved now.
    pub(crate) fn room(&mut self, limits: &Limits, lane: Lane, now: UnixMs) -> Result<(), NoSlot> {
        if self.in_flight >= limits.max_in_flight.max(1) {
            return Err(NoSlot::All(None));
        }
        self.all.room(limits.per_second, SECOND_MS, now).map_err(NoSlot::All)?;
        if lane == Lane::Bulk {
            if self.bulk_in_flight >= limits.bulk_in_flight() {
                return Err(NoSlot::Lane(None));
            }
            self.bulk.room(limits.bulk_per_second, SECOND_MS, now).map_err(NoSlot::Lane)?;
        }
        Ok(())
    }

    pub(crate) fn reserve(&mut self, lane: Lane) {
        self.in_flight += 1;
        self.all.reserved += 1;
        if lane == Lane::Bulk {
            self.bulk_in_flight += 1;
            self.bulk.reserved += 1;
        }
    }

    /// A reserved one starts.
    pub(crate) fn start(&mut self, limits: &Limits, lane: Lane, now: UnixMs) {
        self.all.start(limits.per_second, now);
        if lane == Lane::Bulk {
            self.bulk.start(limits.bulk_per_second, now);
        }
    }

    /// A reserved one will not start.
    pub(crate) fn give_back(&mut self, lane: Lane) {
        self.all.reserved = self.all.reserved.saturating_sub(1);
        if lane == Lane::Bulk {
            self.bulk.reserved = self.bulk.reserved.saturating_sub(1);
        }
    }

    /// One that was reserved is over, started or not.
    pub(crate) fn finish(&mut self, lane: Lane) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if lane == Lane::Bulk {
            self.bulk_in_flight = self.bulk_in_flight.saturating_sub(1);
        }
    }

    pub(crate) fn clamp(&mut self, now: UnixMs) {
        self.all.clamp(now);
        self.bulk.clamp(now);
    }
}

/// What one chat uses.
#[derive(Debug, Default)]
pub(crate) struct ChatUse {
    busy: bool,
    last_start: Option<UnixMs>,
    minute: Window,
}

impl ChatUse {
    /// Reserves the chat: one send at a time, an interval between starts, and for a group so many a minute.
    pub(crate) fn reserve(&mut self, limits: &Limits, chat_id: i64, now: UnixMs) -> Result<(), Option<UnixMs>> {
        if self.busy {
            return Err(None);
        }
        let free_at = self.last_start.map_or(now, |last| last.saturating_add(millis(limits.chat_interval)));
        if free_at > now {
            return Err(Some(free_at));
        }
        if is_group(chat_id) {
            self.minute.room(limits.group_per_minute, MINUTE_MS, now)?;
        }
        self.busy = true;
        Ok(())
    }

    pub(crate) fn start(&mut self, chat_id: i64, now: UnixMs) {
        self.last_start = Some(now);
        if is_group(chat_id) {
            self.minute.starts.push_back(now);
        }
    }

    pub(crate) fn release(&mut self) {
        self.busy = false;
    }

    /// Whether forgetting it changes nothing.
    pub(crate) fn is_idle(&self, limits: &Limits, now: UnixMs) -> bool {
        let matters_for = if self.minute.starts.is_empty() { 0 } else { MINUTE_MS }.max(millis(limits.chat_interval));
        !self.busy && self.last_start.is_none_or(|last| now.saturating_sub(last) >= matters_for)
    }

    pub(crate) fn clamp(&mut self, now: UnixMs) {
        self.last_start = self.last_start.map(|last| last.min(now));
        self.minute.clamp(now);
    }
}

/// Telegram numbers people upwards from one and groups downwards from minus one.
fn is_group(chat_id: i64) -> bool {
    chat_id < 0
}

/// Starts within a sliding window, and the slots that may start at any moment.
#[derive(Debug, Default)]
struct Window {
    starts: VecDeque<UnixMs>,
    reserved: usize,
}

impl Window {
    /// Whether there is room for one more, else from when on (`None`: once a reserved one is given back or starts).
    fn room(&mut self, limit: usize, length_ms: i64, now: UnixMs) -> Result<(), Option<UnixMs>> {
        let limit = limit.max(1);
        while self.starts.front().is_some_and(|&start| now.saturating_sub(start) >= length_ms) {
            self.starts.pop_front();
        }
        let used = self.starts.len() + self.reserved;
        if used < limit {
            return Ok(());
        }
        // So many of the oldest starts have to leave the window before there is room.
        Err(self.starts.get(used - limit).map(|&start| start.saturating_add(length_ms)))
    }

    fn start(&mut self, limit: usize, now: UnixMs) {
        self.reserved = self.reserved.saturating_sub(1);
        self.starts.push_back(now);
        // Older starts cannot decide anything; this bounds the memory when nobody asks for room.
        while self.starts.len() > limit.max(1) {
            self.starts.pop_front();
        }
    }

    fn clamp(&mut self, now: UnixMs) {
        self.starts.iter_mut().for_each(|start| *start = (*start).min(now));
    }
}

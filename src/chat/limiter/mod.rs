//! One budget for everything that this process sends to Telegram: overall, per chat, per group, and the pauses that
//! Telegram imposes.
//!
//! A [`Slot`] is taken before a message is claimed and counts against the budget from then on, so that nothing
//! claimed ever waits. What is limited is the start of a send: never more than N of them in any window of that length.
//! Dropping a slot gives back what is left of it. The rules are in `limits.rs`; here is the sharing of them.
//!
//! Instants in the state are the wall clock's. When that is set back they move with it, so that nobody waits longer than
//! what was asked for (`src/chat/limiter/tests.rs::a_clock_set_back_lengthens_no_wait`).

mod limits;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

pub(crate) use self::limits::Limits;
use self::limits::{Budget, ChatUse};
use super::kind::Lane;
use crate::kernel::clock::{Clock, UnixMs};

/// Added to every wait that Telegram asks for: it is a minimum, counted on another clock.
const SLACK_MS: i64 = 500;

/// The wait after a 429 that names none.
const UNNAMED_WAIT: Duration = Duration::from_secs(5);

/// The longest pause that is believed; beyond it the number is taken for an error.
const LONGEST_PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Two chats limited within this time mean that the bot as a whole sends too much.
const TWO_CHATS_WITHIN_MS: i64 = 1_000;

/// The chat id under which a pause of all chats is kept; no chat has it.
pub(crate) const ALL_CHATS: i64 = 0;

/// Nothing may be sent to this chat (or to any, [`ALL_CHATS`]) before the instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Whom it holds.
    pub(crate) chat_id: i64,
    /// When it ends.
    pub(crate) until: UnixMs,
}

/// Why there is no slot now, and when to ask again; `None` means once another slot is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// This chat has to wait; another one may have a slot.
    Chat(Option<UnixMs>),
    /// This lane has to wait, whatever the chat.
    Lane(Option<UnixMs>),
    /// Everything has to wait.
    All(Option<UnixMs>),
}

impl NoSlot {
    /// When to ask again; `None` means once another slot is given back.
    pub(crate) const fn again_at(self) -> Option<UnixMs> {
        match self {
            Self::Chat(at) | Self::Lane(at) | Self::All(at) => at,
        }
    }
}

/// The budget, shared by everybody who sends.
#[derive(Debug)]
pub(crate) struct Limiter {
    clock: Clock,
    limits: Limits,
    state: Mutex<State>,
    released: Notify,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    chats: HashMap<i64, ChatUse>,
    /// How many chats may be remembered before those without a claim on the budget are forgotten.
    remember: usize,
    pauses: HashMap<i64, UnixMs>,
    /// The last 429: whose, when, and until when it holds.
    last_refusal: Option<(i64, UnixMs, UnixMs)>,
    /// When the clock was last read; an earlier reading means that it was set back.
    seen: UnixMs,
}

/// The right to start one send to one chat.
#[derive(Debug)]
pub(crate) struct Slot {
    limiter: Arc<Limiter>,
    chat_id: i64,
    lane: Lane,
    started: bool,
}

impl Limiter {
    /// A limiter without a past; see [`Limiter::restore`].
    pub(crate) fn new(limits: Limits, clock: Clock) -> Arc<Self> {
        let state = State {
            budget: Budget::default(),
            chats: HashMap::new(),
            remember: 1024,
            pauses: HashMap::new(),
            last_refusal: None,
            seen: clock.now(),
        };
        Arc::new(Self { clock, limits, state: Mutex::new(state), released: Notify::new() })
    }

    /// Takes over the pauses that were stored before a restart.
    pub(crate) fn restore(&self, pauses: impl IntoIterator<Item = Pause>) {
        let (mut state, now) = self.state_now();
        let latest = now.saturating_add(millis(LONGEST_PAUSE));
        for pause in pauses {
            state.hold(Pause { until: pause.until.min(latest), ..pause });
        }
    }

    /// Takes a slot for a message of `lane` to `chat_id`.
    ///
    /// # Errors
    /// [`NoSlot`] says who has to wait, and until when.
    pub(crate) fn take(self: &Arc<Self>, chat_id: i64, lane: Lane) -> Result<Slot, NoSlot> {
        let (mut state, now) = self.state_now();
        if let Some(until) = state.paused_until(ALL_CHATS, now) {
            return Err(NoSlot::All(Some(until)));
        }
        state.budget.room(&self.limits, lane, now)?;
        if let Some(until) = state.paused_until(chat_id, now) {
            return Err(NoSlot::Chat(Some(until)));
        }
        state.chats.entry(chat_id).or_default().reserve(&self.limits, chat_id, now).map_err(NoSlot::Chat)?;
        state.budget.reserve(lane);
        drop(state);
        Ok(Slot { limiter: Arc::clone(self), chat_id, lane, started: false })
    }

    /// Notes that Telegram answered 429 for this chat. Returns the pauses that follow, to be stored.
    pub(crate) fn rate_limited(&self, chat_id: i64, retry_after: Option<Duration>) -> Vec<Pause> {
        let (mut state, now) = self.state_now();
        let until = pause_end(now, retry_after);
        let mut pauses = vec![Pause { chat_id, until }];
        if let Some((other, at, other_until)) = state.last_refusal
            && other != chat_id
            && now.saturating_sub(at) < TWO_CHATS_WITHIN_MS
        {
            pauses.push(Pause { chat_id: ALL_CHATS, until: until.max(other_until) });
        }
        state.last_refusal = Some((chat_id, now, until));
        for pause in &pauses {
            state.hold(*pause);
        }
        pauses
    }

    /// Holds everything for a while, for a reason that has no chat. Returns the pause, to be stored.
    pub(crate) fn hold_all(&self, wait: Duration) -> Pause {
        let (mut state, now) = self.state_now();
        let pause = Pause { chat_id: ALL_CHATS, until: now.saturating_add(millis(wait)) };
        state.hold(pause);
        pause
    }

    /// Resolves when a slot is given back. To miss none, create it (and `enable` it) before asking for slots.
    pub(crate) fn released(&self) -> tokio::sync::futures::Notified<'_> {
        self.released.notified()
    }

    /// The state, and the instant for which it holds. The clock is read under the lock, so that instants in the state
    /// never run backwards by a race.
    fn state_now(&self) -> (MutexGuard<'_, State>, UnixMs) {
        let mut state = self.state();
        let now = self.clock.now();
        state.follow(now);
        (state, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is one assignment or a push; a panic between them leaves counts that are only too high.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn paused_until(&mut self, chat_id: i64, now: UnixMs) -> Option<UnixMs> {
        let until = *self.pauses.get(&chat_id)?;
        if until > now {
            return Some(until);
        }
        self.pauses.remove(&chat_id);
        None
    }

    /// A pause is only ever made longer: a late answer must not end one early.
    fn hold(&mut self, pause: Pause) {
        let until = self.pauses.entry(pause.chat_id).or_insert(pause.until);
        *until = pause.until.max(*until);
    }

    /// After the wall clock was set back, sends of "later" count as of now and pauses keep their length: otherwise they
    /// would block until the clock has caught up.
    fn follow(&mut self, now: UnixMs) {
        let back = self.seen.saturating_sub(now);
        self.seen = now;
        if back <= 0 {
            return;
        }
        self.budget.clamp(now);
        self.chats.values_mut().for_each(|chat| chat.clamp(now));
        self.pauses.values_mut().for_each(|until| *until = until.saturating_sub(back));
        self.last_refusal = self.last_refusal.map(|(chat, at, until)| (chat, at - back, until.saturating_sub(back)));
    }

    fn forget_idle_chats(&mut self, limits: &Limits, now: UnixMs) {
        if self.chats.len() >= self.remember {
            self.chats.retain(|_, chat| !chat.is_idle(limits, now));
            self.remember = (self.chats.len() * 2).max(1024);
        }
    }
}

impl Slot {
    /// The send starts now. Until then the slot counts as if it started in this very moment.
    pub(crate) fn start(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        let (mut state, now) = self.limiter.state_now();
        state.forget_idle_chats(&self.limiter.limits, now);
        state.budget.start(&self.limiter.limits, self.lane, now);
        state.chats.entry(self.chat_id).or_default().start(self.chat_id, now);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        if !self.started {
            state.budget.give_back(self.lane);
        }
        state.budget.finish(self.lane);
        if let Some(chat) = state.chats.get_mut(&self.chat_id) {
            chat.release();
        }
        drop(state);
        self.limiter.released.notify_waiters();
    }
}

/// When a chat that was limited at `now` may be tried again.
pub(crate) fn pause_end(now: UnixMs, retry_after: Option<Duration>) -> UnixMs {
    let wait = retry_after.unwrap_or(UNNAMED_WAIT).min(LONGEST_PAUSE);
    now.saturating_add(millis(wait)).saturating_add(SLACK_MS)
}

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

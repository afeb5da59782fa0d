//! The line of writes that wait for the one writer: first come, first served, and bounded for new work.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{StoreError, Tx};

/// Whether a write may be refused to protect the ones that finish things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// New work: refused while the queue is full or the disk low.
    Intake,
    /// The finishing of work that is under way: never refused by either.
    Settle,
}

/// A write that waits, with its types hidden.
pub(super) trait Queued: Send {
    /// Runs the closure; whether what it wrote is to be kept.
    fn run(&mut self, tx: &Tx<'_>) -> Verdict;
    /// Tells the caller, after the commit or instead of it.
    fn answer(self: Box<Self>, commit: Result<(), StoreError>);
}

/// What the writer does with a closure's savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Undo,
}

/// What a caller gets back: its closure, so that a settle can try again, and what became of it.
pub(super) struct Answer<F, T, E> {
    pub(super) work: F,
    pub(super) outcome: Outcome<T, E>,
}

pub(super) enum Outcome<T, E> {
    /// Committed if `Ok`; taken back, with its neighbours untouched, if `Err`.
    Ran(Result<T, E>),
    /// The closure panicked and was taken back; the panic belongs to its caller.
    Panicked(Box<dyn std::any::Any + Send>),
    /// Nothing was committed, through no fault of the closure.
    Store(StoreError),
}

/// Where the answer arrives, after the commit.
pub(super) type Reply<F, T, E> = oneshot::Receiver<Answer<F, T, E>>;

pub(super) struct Write<F, T, E> {
    work: F,
    ran: Option<std::thread::Result<Result<T, E>>>,
    reply: oneshot::Sender<Answer<F, T, E>>,
}

impl<F, T, E> Write<F, T, E>
where
    F: FnMut(&Tx<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(work: F) -> (Self, Reply<F, T, E>) {
        let (reply, answer) = oneshot::channel();
        (Self { work, ran: None, reply }, answer)
    }
}

impl<F, T, E> Queued for Write<F, T, E>
where
    F: FnMut(&Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> Verdict {
        let ran = catch_unwind(AssertUnwindSafe(|| (self.work)(tx)));
        let verdict = if matches!(ran, Ok(Ok(_))) { Verdict::Keep } else { Verdict::Undo };
        self.ran = Some(ran);
        verdict
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        let outcome = match (commit, self.ran) {
            (Err(error), _) => Outcome::Store(error),
            (Ok(()), Some(Ok(result))) => Outcome::Ran(result),
            (Ok(()), Some(Err(panic))) => Outcome::Panicked(panic),
            (Ok(()), None) => Outcome::Store(StoreError::Closed),
        };
        // A caller that went away does not want to know.
        let _ = self.reply.send(Answer { work: self.work, outcome });
    }
}

/// How long the writer stays awake with nothing to do; about what a sleep and a waking cost.
const LINGER: Duration = Duration::from_micros(40);

/// The queue itself.
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    cap: usize,
    lingers: bool,
}

struct State {
    waiting: VecDeque<Box<dyn Queued>>,
    /// The writer sleeps and wants to be notified; while it works, a notification would be a wasted system call.
    parked: bool,
    /// The writer comes from a batch, not from a nap.
    served: bool,
    closing: bool,
}

/// What the writer finds when it looks.
pub(super) enum Taken {
    Writes(VecDeque<Box<dyn Queued>>),
    Idle,
    Closed,
}

impl Queue {
    pub(super) fn new(cap: usize) -> Self {
        let lingers = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
        let state = State { waiting: VecDeque::new(), parked: false, served: false, closing: false };
        Self { state: Mutex::new(state), arrived: Condvar::new(), cap, lingers }
    }

    pub(super) fn push(&self, class: Class, write: Box<dyn Queued>) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.closing {
            return Err(StoreError::Closed);
        }
        if class == Class::Intake && state.waiting.len() >= self.cap {
            return Err(StoreError::QueueFull);
        }
        state.waiting.push_back(write);
        if state.parked {
            state.parked = false;
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Everything that waits; sleeps up to `nap` when nothing does.
    pub(super) fn take(&self, nap: Duration) -> Taken {
        self.linger();
        let mut state = self.lock();
        if state.waiting.is_empty() && !state.closing {
            state.parked = true;
            let woken = self.arrived.wait_timeout_while(state, nap, |s| s.waiting.is_empty() && !s.closing);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.parked = false;
        }
        state.served = !state.waiting.is_empty();
        match (state.waiting.is_empty(), state.closing) {
            (false, _) => Taken::Writes(std::mem::take(&mut state.waiting)),
            (true, false) => Taken::Idle,
            (true, true) => Taken::Closed,
        }
    }

    /// Waits a moment for the next write before going to sleep: whoever has just been answered often has another, and
    /// both would pay for the sleep and the waking. On a machine with one processor it would only be in their way.
    fn linger(&self) {
        let begun = Instant::now();
        while self.lingers && begun.elapsed() < LINGER {
            let state = self.lock();
            if !state.served || !state.waiting.is_empty() || state.closing {
                return;
            }
            drop(state);
            for _ in 0..32 {
                std::hint::spin_loop();
            }
        }
    }

    /// What has come since, without waiting.
    pub(super) fn take_more(&self) -> VecDeque<Box<dyn Queued>> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// How many writes wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Refuses further writes; those that wait are still done.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half way, so a poisoned lock still guards a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

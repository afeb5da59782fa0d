//! One attempt to bring a lead's summary to the broker's chat: it ends when the message was accepted, refused for good,
//! or nobody knows.
//!
//! A 429, a connection that was never made and a chat that has moved are proofs that nothing arrived. So the attempt goes
//! on after them, for a while: each further call waits for a slot of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::Post;
use super::code::code_of;
use crate::chat::{
    Class, FailureCode, Format, Keyboard, Lane, Outcome, Preview, Rendered, Slot, UNAUTHORIZED_WAIT, millis,
};
use crate::kernel::clock::UnixMs;
use crate::kernel::retry::doubled;
use crate::leads::ErrorCode;

/// How long an attempt may wait in all: far less than the 15 minutes after which others take the lead for abandoned.
const PATIENCE_MS: i64 = 30_000;
/// The pauses after connections that were not made; on the injected clock.
const FIRST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 8_000;
/// A chat moves once in its life; more within one attempt are a circle.
const MOST_MOVES: u32 = 2;

/// An attempt under way.
struct Attempt {
    message: Rendered,
    moves: u32,
    unconnected: i64,
}

/// What follows from one call.
enum Next {
    Arrived,
    Failed,
    /// It certainly did not arrive: another call may, not before this instant.
    Again(UnixMs),
}

/// Until when an attempt may wait. A clock that is set back does not make that longer.
struct Patience {
    until: UnixMs,
    seen: UnixMs,
}

impl Patience {
    fn new(now: UnixMs) -> Self {
        Self { until: now.saturating_add(PATIENCE_MS), seen: now }
    }

    /// Its end, seen from this instant.
    fn until(&mut self, now: UnixMs) -> UnixMs {
        self.until = self.until.saturating_sub(self.seen.saturating_sub(now).max(0));
        self.seen = now;
        self.until
    }
}

impl Post {
    /// Sends a text that is no lead's.
    ///
    /// # Errors
    /// The code of what was in the way.
    pub(crate) async fn say(&self, text: String) -> Result<(), ErrorCode> {
        let now = self.clock.now();
        match self.wait_for_slot(self.recipient.chat_id(), now, &mut Patience::new(now)).await {
            Some(slot) => self.attempt(text, slot).await,
            None => Err(ErrorCode::NOTIFICATION_FAILED),
        }
    }

    /// Sends `text`, beginning with `slot`.
    ///
    /// # Errors
    /// The code of what was in the way.
    pub(super) async fn attempt(&self, text: String, mut slot: Slot) -> Result<(), ErrorCode> {
        let mut patience = Patience::new(self.clock.now());
        let (chat_id, keyboard) = (self.recipient.chat_id(), Keyboard::default());
        let message = Rendered { chat_id, text, format: Format::Plain, keyboard, edit: None, preview: Preview::Off };
        let mut attempt = Attempt { message, moves: 0, unconnected: 0 };
        loop {
            slot.start();
            let outcome = self.call(&attempt.message).await;
            self.access.learn(&outcome);
            let next = self.draw(&mut attempt, &outcome).await;
            // Given back before the next one is asked for: a chat has one at a time.
            drop(slot);
            let not_before = match next {
                Next::Arrived => return Ok(()),
                Next::Failed => return Err(code_of(&outcome)),
                Next::Again(not_before) => not_before,
            };
            match self.wait_for_slot(attempt.message.chat_id, not_before, &mut patience).await {
                Some(next) => slot = next,
                None => return Err(code_of(&outcome)),
            }
        }
    }

    /// One call. A panic in it leaves its outcome unknown.
    async fn call(&self, message: &Rendered) -> Outcome {
        let call = async { self.messenger.send(message).await };
        let outcome = AssertUnwindSafe(call).catch_unwind().await;
        outcome.unwrap_or(Outcome::Unknown { code: FailureCode::Crashed })
    }

    /// Draws the consequences of a call, for this attempt and for everybody else who sends.
    async fn draw(&self, attempt: &mut Attempt, outcome: &Outcome) -> Next {
        let Outcome::Refused { class, code } = outcome else {
            let has_arrived = matches!(outcome, Outcome::Delivered { .. });
            return if has_arrived { Next::Arrived } else { Next::Failed };
        };
        match *class {
            Class::RateLimited { retry_after } => {
                // The pauses stay in memory: the file knows no chat of leads.
                self.limiter.rate_limited(attempt.message.chat_id, retry_after);
                if let Some(wait) = retry_after.filter(|wait| millis(*wait) > PATIENCE_MS) {
                    tracing::warn!(
                        wait_s = wait.as_secs(),
                        "Telegram asks for a long wait before the next message to the chat of leads; they wait for it"
                    );
                }
                Next::Again(self.clock.now())
            }
            Class::MovedTo(to) if attempt.moves < MOST_MOVES => {
                attempt.moves += 1;
                attempt.message.chat_id = to;
                self.follow(to).await;
                Next::Again(self.clock.now())
            }
            Class::Later if *code == FailureCode::Connect => {
                let pause = doubled(FIRST_PAUSE_MS, attempt.unconnected, LONGEST_PAUSE_MS);
                attempt.unconnected += 1;
                Next::Again(self.clock.now().saturating_add(pause))
            }
            Class::Unauthorized => {
                self.limiter.hold_all(UNAUTHORIZED_WAIT);
                Next::Failed
            }
            _ => Next::Failed,
        }
    }

    /// Remembers the chat's new id; neither of them is told to the log.
    async fn follow(&self, to: i64) {
        let recipient = Arc::clone(&self.recipient);
        let kept = tokio::task::spawn_blocking(move || recipient.moved_to(to)).await;
        match kept {
            Ok(Ok(())) => tracing::warn!("the chat of leads has another id now; it is kept beside the database"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the chat of leads has another id now, which holds until the next start only");
            }
            Err(_) => tracing::error!("the new id of the chat of leads could not be kept"),
        }
    }

    /// The next slot of the chat; `None` if none comes in time.
    async fn wait_for_slot(&self, chat_id: i64, not_before: UnixMs, patience: &mut Patience) -> Option<Slot> {
        loop {
            let released = self.limiter.released();
            tokio::pin!(released);
            // Listen before looking, so that a slot given back in between is not missed.
            released.as_mut().enable();
            let now = self.clock.now();
            let until = patience.until(now);
            if now > until {
                return None;
            }
            let at = match not_before > now {
                true => Some(not_before),
                false => match self.limiter.take(chat_id, Lane::Transactional) {
                    Ok(slot) => return Some(slot),
                    Err(no_slot) => no_slot.again_at(),
                },
            };
            match at {
                // Longer than there is left to wait.
                Some(at) if at > until => return None,
                Some(at) => self.clock.nap_until(at).await,
                None => tokio::select! {
                    () = released => {}
                    () = self.clock.nap_until(until.saturating_add(1)) => {}
                },
            }
        }
    }
}

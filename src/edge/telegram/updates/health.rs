//! Whether updates come in: what was met last, and for how long nothing was heard. Real time: a moved clock proves
//! nothing about a network.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What stands in the way of updates, until it is seen not to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another program fetches this bot's updates.
    Conflict,
    /// Another program's webhook takes them; its host, if it has one.
    ForeignWebhook(String),
    /// The token is not accepted.
    Unauthorized,
    /// Telegram has updates and cannot bring them to our webhook.
    Undelivered,
}

impl Trouble {
    fn told(&self) -> String {
        match self {
            Self::Conflict => "another program fetches this bot's updates; end it, or give this installation a bot \
                 of its own"
                .to_owned(),
            Self::ForeignWebhook(host) => format!(
                "another program's webhook is set (host {host}), and is left alone; take it away there, or give this \
                 installation a bot of its own"
            ),
            Self::Unauthorized => "Telegram does not accept the token; see telegram.token".to_owned(),
            Self::Undelivered => {
                "Telegram cannot bring updates to telegram.webhook_url; see that it answers from outside".to_owned()
            }
        }
    }
}

/// The state of one intake.
pub(crate) struct IntakeHealth {
    /// Longer than this without an answer of Telegram is silence.
    silence: Duration,
    seen: Mutex<Seen>,
}

struct Seen {
    trouble: Option<Trouble>,
    heard: Instant,
}

impl IntakeHealth {
    pub(super) fn new(silence: Duration, now: Instant) -> Self {
        Self { silence, seen: Mutex::new(Seen { trouble: None, heard: now }) }
    }

    /// Telegram answered, and nothing is wrong.
    pub(super) fn heard(&self) {
        *self.seen() = Seen { trouble: None, heard: Instant::now() };
    }

    /// Something stands in the way; true if that was not known.
    pub(super) fn met(&self, trouble: Trouble) -> bool {
        let mut seen = self.seen();
        let is_new = seen.trouble.as_ref() != Some(&trouble);
        seen.trouble = Some(trouble);
        is_new
    }

    /// Whether the token was refused here.
    pub(super) fn is_unauthorized(&self) -> bool {
        self.seen().trouble == Some(Trouble::Unauthorized)
    }

    /// Whether updates come in, as far as is known at `now`.
    ///
    /// # Errors
    /// What a person should do about it.
    pub(crate) fn verdict(&self, now: Instant) -> Result<(), String> {
        let seen = self.seen();
        if let Some(trouble) = &seen.trouble {
            return Err(trouble.told());
        }
        let silence = now.saturating_duration_since(seen.heard);
        if silence > self.silence {
            return Err(format!("Telegram has not been heard for {} s; see the log", silence.as_secs()));
        }
        Ok(())
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_bot_that_is_answered_is_well_and_silence_is_not() {
        let begun = Instant::now();
        let health = IntakeHealth::new(Duration::from_secs(90), begun);
        assert_eq!(health.verdict(begun + Duration::from_secs(90)), Ok(()));
        let told = health.verdict(begun + Duration::from_secs(91)).unwrap_err();
        assert!(told.contains("91 s"), "{told}");
        health.heard();
        assert_eq!(health.verdict(Instant::now() + Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn a_trouble_is_told_at_once_and_until_telegram_is_heard_again() {
        let now = Instant::now();
        let health = IntakeHealth::new(Duration::from_secs(90), now);
        for (trouble, word) in [
            (Trouble::Conflict, "another program fetches"),
            (Trouble::ForeignWebhook("bot.example".to_owned()), "host bot.example"),
            (Trouble::Unauthorized, "telegram.token"),
            (Trouble::Undelivered, "telegram.webhook_url"),
        ] {
            assert!(health.met(trouble.clone()) && !health.met(trouble), "new once");
            assert!(health.verdict(now).unwrap_err().contains(word), "{word}");
        }
        health.heard();
        assert_eq!(health.verdict(now), Ok(()));
    }
}

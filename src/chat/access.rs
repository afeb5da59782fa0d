//! Whether the messenger accepts the bot's token: one state for everybody who sends with it, told once when it changes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::outcome::{Class, Outcome};

/// What is known of the token; it is taken for accepted until an answer says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Access {
    is_denied: AtomicBool,
}

impl Access {
    /// Whether the token is accepted, as far as is known.
    pub(crate) fn is_granted(&self) -> bool {
        !self.is_denied.load(Ordering::Relaxed)
    }

    /// Draws from an outcome what it says of the token. An attempt without an answer says nothing.
    pub(crate) fn learn(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Refused { class: Class::Unauthorized, .. } => {
                if !self.is_denied.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "Telegram does not accept the bot's token; sending waits, and is tried once a minute"
                    );
                }
            }
            Outcome::Refused { class: Class::Later | Class::RateLimited { .. }, .. } | Outcome::Unknown { .. } => {}
            Outcome::Delivered { .. } | Outcome::Refused { .. } => self.is_denied.store(false, Ordering::Relaxed),
        }
    }
}

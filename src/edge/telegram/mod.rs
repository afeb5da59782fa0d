//! Telegram's Bot API: its types and payloads are teloxide's, the calls are our own.
//!
//! teloxide's own `send` drops the status of an answer and sleeps for ten seconds on any 5xx, so it is not used: what
//! the queue does next depends on the status, the parameters, and the phase in which a call failed.

mod classify;
mod client;
#[cfg(test)]
mod client_tests;
mod render;
mod updates;

pub(crate) use client::{Client, TelegramSettings};
pub(crate) use updates::{Intake, IntakeHealth, IntakeParts, Unwelcome, UpdateReader, WebhookDoor};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use teloxide::payloads::GetMe;

use self::render::Outgoing;
use crate::chat::{Class, FailureCode, Messenger, Outcome, Rendered};

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It certainly had no effect.
    Refused {
        /// What can be done about it.
        class: Class,
        /// The reason, fit to be stored.
        code: FailureCode,
    },
    /// It may have had its effect.
    Unknown {
        /// How the answer was lost.
        code: FailureCode,
    },
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { class, code } => Self::Refused { class, code },
            Failure::Unknown { code } => Self::Unknown { code },
        }
    }
}

impl Messenger for Client {
    fn send<'a>(&'a self, message: &'a Rendered) -> BoxFuture<'a, Outcome> {
        async move {
            let sent = match render::outgoing(message) {
                Ok(Outgoing::Send(payload)) => self.call::<_, serde_json::Value>(&payload).await,
                Ok(Outgoing::Edit(payload)) => self.call::<_, serde_json::Value>(&payload).await,
                Err(failure) => Err(failure),
            };
            if let (Some(edited), Err(Failure::Refused { code: FailureCode::NotModified, .. })) = (message.edit, &sent)
            {
                // The chat shows it already, be it from an attempt whose answer was lost.
                return Outcome::Delivered { message_id: Some(edited) };
            }
            // Only the id is read: a message of a newer Bot API, or none at all, was accepted nevertheless.
            let id = |sent: serde_json::Value| sent.get("message_id").and_then(serde_json::Value::as_i64);
            sent.map_or_else(Outcome::from, |sent| Outcome::Delivered { message_id: id(sent) })
        }
        .boxed()
    }

    fn introduce(&self) -> BoxFuture<'_, Outcome> {
        async move {
            let answer = self.call::<_, serde_json::Value>(&GetMe::new()).await;
            answer.map_or_else(Outcome::from, |_| Outcome::Delivered { message_id: None })
        }
        .boxed()
    }
}

//! Answers to taps: at once, without a text, and outside the queue, so that no button goes on spinning. Nobody waits for
//! them, and one that is lost is lost: the spinner ends by itself.

use std::sync::Arc;

use teloxide::payloads::AnswerCallbackQuery;
use teloxide::types::CallbackQueryId;
use tokio::sync::Semaphore;

use crate::chat::FailureCode;
use crate::edge::telegram::{Client, Failure};

/// Answers under way at the same time. More would only wait for the same connections.
const MOST: usize = 64;

/// Whoever answers taps.
#[derive(Clone)]
pub(super) struct Taps {
    client: Arc<Client>,
    seats: Arc<Semaphore>,
}

impl Taps {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self { client, seats: Arc::new(Semaphore::new(MOST)) }
    }

    /// Begins to answer a tap, if there is a seat for it.
    pub(super) fn answer(&self, id: &str) {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            count("dropped");
            return;
        };
        let (client, payload) = (Arc::clone(&self.client), AnswerCallbackQuery::new(CallbackQueryId(id.to_owned())));
        tokio::spawn(async move {
            let answered = client.call::<_, serde_json::Value>(&payload).await;
            count(outcome(&answered));
            drop(seat);
        });
    }
}

fn outcome<T>(answered: &Result<T, Failure>) -> &'static str {
    match answered {
        Ok(_) => "answered",
        // Telegram has ended the spinner by itself.
        Err(Failure::Refused { code: FailureCode::QueryTooOld, .. }) => "too_old",
        Err(_) => "failed",
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("pillarbox_telegram_taps_total", "outcome" => outcome).increment(1);
}

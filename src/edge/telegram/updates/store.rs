//! The store's side of the intake: a batch is stored before anybody is told that we have it, then its taps are answered.

use metrics::counter;

use super::taps::Taps;
use crate::chat::inbox::{self, Received, Standing};
use crate::kernel::store::{Db, StoreError};

/// Kinds that have a count of their own.
const KINDS: [&str; 3] = ["message", "callback_query", "my_chat_member"];

/// Where updates of one bot are stored.
#[derive(Clone)]
pub(super) struct Store {
    pub(super) db: Db,
    /// The number before the token's colon.
    pub(super) bot_id: i64,
    pub(super) taps: Taps,
}

impl Store {
    /// Where the reading stands.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn standing(&self) -> Result<Standing, StoreError> {
        let bot_id = self.bot_id;
        self.db.read(move |tx| inbox::standing(tx, bot_id)).await
    }

    /// Stores a batch, and answers the taps of those that were new.
    ///
    /// # Errors
    /// The store's: then nothing of the batch may be acknowledged.
    pub(super) async fn take(&self, batch: Vec<Received>, next_offset: Option<i64>) -> Result<(), StoreError> {
        let bot_id = self.bot_id;
        let stored = self.db.write(move |tx| {
            let fresh = inbox::store(tx, bot_id, &batch, next_offset)?;
            Ok::<_, StoreError>((batch, fresh))
        });
        let (batch, fresh) = stored.await?;
        for (at, received) in batch.iter().enumerate() {
            let is_new = fresh.contains(&at);
            count(&received.kind, if is_new { "stored" } else { "known" }, 1);
            if let Some(tap) = received.tap.as_deref().filter(|_| is_new) {
                self.taps.answer(tap);
            }
        }
        Ok(())
    }

    /// Remembers which webhook is ours.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn note_webhook(&self, url: Option<String>) -> Result<(), StoreError> {
        let bot_id = self.bot_id;
        self.db.settle(move |tx| inbox::note_webhook(tx, bot_id, url.as_deref())).await
    }
}

pub(super) fn count(kind: &str, outcome: &'static str, by: u64) {
    let kind = KINDS.into_iter().find(|known| *known == kind).unwrap_or("other");
    counter!("pillarbox_telegram_updates_total", "kind" => kind, "outcome" => outcome).increment(by);
}

//! The worker of one process: whose updates are in hand, and the way of one from its row to its commit.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Arrived;
use crate::chat::inbox::{self, Due, Fate, UPDATES, Waiting, Why};
use crate::chat::{Input, Reader};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError, Tx};
use crate::onboarding::dialog::{self, Dialog, Facts, command_of, gather};
use crate::onboarding::{BackendError, Error};

/// Chats in hand at the same time. Their commits are shared; more would only wait for the same writer.
const MOST_IN_HAND: usize = 32;
/// How long a pass waits for updates that hang before it reports; they go on by themselves.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the end waits for updates in hand. What is left then was not.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Applies an update. A field of the worker, so that a test can put one that fails in its place.
pub(super) type Handle = fn(&Tx<'_>, &Dialog, &Arrived<'_>) -> Result<(), Error>;

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Their effects are in the file.
    pub(crate) handled: u64,
    /// They wait for another attempt.
    pub(crate) again: u64,
    /// They were given up.
    pub(crate) dead: u64,
    /// When the next head becomes due, as far as is known; the wake [`UPDATES`] may come before.
    pub(crate) next: Option<UnixMs>,
}

/// The one worker of a process.
pub(crate) struct Worker {
    hands: Arc<Hands>,
    stored: Arc<Notify>,
    passing: tokio::sync::Mutex<()>,
}

struct Hands {
    db: Db,
    dialog: Arc<Dialog>,
    reader: Arc<dyn Reader>,
    handle: Handle,
    chats: Mutex<HashSet<i64>>,
    put_down: Notify,
    tally: Mutex<Report>,
}

/// A chat that is in hand until this is dropped, be it by a panic.
struct InHand {
    hands: Arc<Hands>,
    chat_id: i64,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.hands.chats().remove(&self.chat_id);
        self.hands.put_down.notify_waiters();
    }
}

/// What is applied.
struct Prepared {
    input: Input,
    facts: Facts,
}

impl Worker {
    pub(crate) fn new(db: Db, dialog: Arc<Dialog>, reader: Arc<dyn Reader>) -> Self {
        Self::with(db, dialog, reader, dialog::handle)
    }

    pub(super) fn with(db: Db, dialog: Arc<Dialog>, reader: Arc<dyn Reader>, handle: Handle) -> Self {
        let stored = db.subscribe(UPDATES);
        let (chats, put_down, tally) = Default::default();
        let hands = Arc::new(Hands { db, dialog, reader, handle, chats, put_down, tally });
        Self { hands, stored, passing: tokio::sync::Mutex::new(()) }
    }

    /// Handles what is due and what comes meanwhile, until nothing of that is left, `stop` is cancelled, or a few
    /// seconds have passed; updates that still hang then go on by themselves.
    ///
    /// # Errors
    /// The store's. What was begun before it ends by itself.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let _single = self.passing.lock().await;
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        while !stop.is_cancelled() {
            let put_down = self.hands.put_down.notified();
            tokio::pin!(put_down);
            // Listen before looking, so that a chat put down in between is not missed.
            put_down.as_mut().enable();
            self.hands.take_up().await?;
            if self.hands.chats().is_empty() {
                break;
            }
            tokio::select! {
                () = put_down => {}
                () = self.stored.notified() => {}
                () = stop.cancelled() => {}
                () = &mut patience => break,
            }
        }
        let next = self.hands.db.read(inbox::next_due).await?;
        Ok(Report { next, ..std::mem::take(&mut *self.hands.tally()) })
    }

    /// Waits until no update is in hand, but not for ever: what is left then was not, and comes at the next start.
    pub(crate) async fn drain(&self) {
        let patience = tokio::time::sleep(DRAIN_WITHIN);
        tokio::pin!(patience);
        loop {
            let put_down = self.hands.put_down.notified();
            tokio::pin!(put_down);
            put_down.as_mut().enable();
            let left = self.hands.chats().len();
            if left == 0 {
                return;
            }
            tokio::select! {
                () = put_down => {}
                () = &mut patience => {
                    tracing::warn!(updates = left, "updates were still being handled at the end; they come again");
                    return;
                }
            }
        }
    }
}

impl Hands {
    fn chats(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tally(&self) -> MutexGuard<'_, Report> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with the heads that are due and whose chat is not in hand.
    async fn take_up(self: &Arc<Self>) -> Result<(), StoreError> {
        let taken = self.chats().len();
        if taken >= MOST_IN_HAND {
            return Ok(());
        }
        // Those in hand may be among them.
        let heads = self.db.read(move |tx| inbox::due(tx, MOST_IN_HAND + taken)).await?;
        for head in heads {
            let mut chats = self.chats();
            if chats.len() >= MOST_IN_HAND {
                return Ok(());
            }
            if chats.insert(head.chat_id) {
                drop(chats);
                let held = InHand { hands: Arc::clone(self), chat_id: head.chat_id };
                tokio::spawn(async move { held.hands.see_to(head).await });
            }
        }
        Ok(())
    }

    /// One attempt at one update.
    async fn see_to(&self, head: Due) {
        let found = self.db.read(move |tx| inbox::find_head(tx, head.id)).await;
        let waiting = match found {
            Ok(Some(waiting)) => waiting,
            // Another attempt has ended meanwhile.
            Ok(None) => return,
            Err(error) => return tracing::debug!(%error, "an update could not be read from the store"),
        };
        let prepared = AssertUnwindSafe(self.prepare(head.chat_id, &waiting)).catch_unwind().await;
        let prepared = prepared.unwrap_or(Err(Error::Panicked));
        let done = match prepared {
            Ok(prepared) => self.apply(&waiting, prepared).await,
            Err(error) => self.put_off(&waiting, &error).await,
        };
        match done {
            Ok(fate) => self.count(&waiting, fate),
            Err(error) => tracing::warn!(update = head.id, %error, "an update was not handled; it comes again"),
        }
    }

    /// Reads an update and asks the backend for what its handling needs, outside any transaction.
    async fn prepare(&self, chat_id: i64, waiting: &Waiting) -> Result<Prepared, Error> {
        let input = self.reader.read(&waiting.raw).map_err(|_| Error::Unreadable)?;
        let (command, _) = command_of(&input);
        let facts = gather(self.dialog.backend.as_ref(), &command, chat_id).await.map_err(Error::Backend)?;
        Ok(Prepared { input, facts })
    }

    /// Applies an update and marks it. `None` when it is handled.
    async fn apply(&self, waiting: &Waiting, prepared: Prepared) -> Result<Option<Fate>, StoreError> {
        let (dialog, handle) = (Arc::clone(&self.dialog), self.handle);
        let (id, attempts, received_at) = (waiting.id, waiting.attempts, waiting.received_at);
        let settled = self.db.settle(move |tx| {
            // Fenced before anything is done, so that effects and mark are of the same attempt.
            if inbox::find_head(tx, id)?.is_none_or(|head| head.attempts != attempts) {
                return Ok::<_, StoreError>((Some(Fate::Overtaken), None));
            }
            let Prepared { input, facts } = &prepared;
            let arrived = Arrived { update: id, received_at, input, facts };
            let done = tx.attempt(|| Error::Panicked, || handle(tx, &dialog, &arrived))?;
            let Err(error) = done else {
                let is_ours = inbox::mark_handled(tx, id, attempts)?;
                return Ok(((!is_ours).then_some(Fate::Overtaken), None));
            };
            let code = error.code();
            let fate = inbox::put_off(tx, id, attempts, why(&error))?;
            Ok((Some(fate), Some(code)))
        });
        let (fate, code) = settled.await?;
        tell(id, fate, code);
        Ok(fate)
    }

    async fn put_off(&self, waiting: &Waiting, error: &Error) -> Result<Option<Fate>, StoreError> {
        let (id, attempts, why) = (waiting.id, waiting.attempts, why(error));
        let fate = self.db.settle(move |tx| inbox::put_off(tx, id, attempts, why)).await?;
        tell(id, Some(fate), Some(error.code()));
        Ok(Some(fate))
    }

    fn count(&self, waiting: &Waiting, fate: Option<Fate>) {
        let mut tally = self.tally();
        let outcome = match fate {
            None => {
                tally.handled += 1;
                "handled"
            }
            Some(Fate::Waits(_)) => {
                tally.again += 1;
                "again"
            }
            Some(Fate::Dead) => {
                tally.dead += 1;
                "dead"
            }
            Some(Fate::Overtaken) => return,
        };
        metrics::counter!("pillarbox_updates_handled_total", "outcome" => outcome).increment(1);
        if fate.is_none() {
            let took_ms = self.db.clock().now().saturating_sub(waiting.received_at).max(0);
            let took = Duration::from_millis(took_ms.unsigned_abs());
            metrics::histogram!("pillarbox_update_to_reply_seconds").record(took.as_secs_f64());
        }
    }
}

/// What a failed attempt means for its update. The same bytes are read the same way the next time; and a backend that
/// cannot be asked now may be asked later, for however long that takes.
fn why(error: &Error) -> Why<'static> {
    match error {
        Error::Unreadable => Why::Hopeless(error.code()),
        Error::Backend(
            BackendError::Unreachable(_)
            | BackendError::Unauthorized
            | BackendError::ConsumedThere
            | BackendError::Store(_),
        ) => Why::BackendAway,
        _ => Why::Failed(error.code()),
    }
}

/// Says once what failed: ids and codes only.
fn tell(id: i64, fate: Option<Fate>, code: Option<&'static str>) {
    let code = code.unwrap_or_default();
    match fate {
        Some(Fate::Dead) => {
            tracing::error!(update = id, code, "an update is dead; see `pillarbox updates show` and `replay`");
        }
        Some(Fate::Waits(_)) => tracing::warn!(update = id, code, "an update failed and its chat waits for the retry"),
        Some(Fate::Overtaken) | None => {}
    }
}

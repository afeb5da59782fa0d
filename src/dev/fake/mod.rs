//! A fake Telegram Bot API: strict where the real server is strict, so that what passes here is not refused there.
//!
//! **What.** `/bot{token}/{method}` for the ten methods Pillarbox uses ([`call::Method`]), method names in any case,
//! parameters as JSON, form, multipart or query; `/dev/telegram/*` to see what was accepted, to send updates as a person
//! would, and to make it fail. Any token of the right form is taken, and all tokens are one bot with one queue.
//!
//! **States.** An update is queued until a `getUpdates` with a higher offset, or the webhook's 2xx, takes it away.
//! A fault is armed until it has answered `times` calls.
//!
//! **Guarantees.** A message that was answered `ok` is in the log and has an id no other message has, through SIGKILL
//! (`src/dev/fake/tests/persistence.rs`). Updates go to a webhook in order, one at a time, until each has its 2xx (`src/dev/fake/tests/webhook.rs`).
//!
//! **Windows.** See `dev`: the log is written before the answer.
//!
//! **Not here.** Rate limits (arm a 429), expiry of queued updates (24 h; a tap that is older than 150 s cannot be
//! answered, but it comes), entities of Markdown (the text is
//! taken as it is), one webhook queue per chat (here one for all), basic-group rights.

mod call;
mod commands;
mod control;
mod faults;
mod html;
mod markup;
mod messages;
mod params;
mod polling;
mod refusal;
#[cfg(test)]
mod tests;
mod webhook;
mod world;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::faults::Faults;
use self::refusal::Refusal;
use self::world::{Entry, World};
use super::journal::Journal;
use super::{Error, create_dir};
use crate::kernel::clock::Clock;

/// The fake; clones share it.
#[derive(Clone)]
pub(crate) struct Fake(Arc<Inner>);

struct Inner {
    clock: Clock,
    shutdown: CancellationToken,
    kept: Mutex<Kept>,
    faults: Mutex<Faults>,
    /// An update came, a poll began or ended, the webhook changed: whoever waits looks again.
    changed: Arc<Notify>,
    /// The webhook was set or deleted: no reason to wait for the old one.
    redirected: Arc<Notify>,
}

/// What survives a restart, beside the log it is replayed from.
struct Kept {
    world: World,
    journal: Journal,
    /// Which poll may go on; a newer one, or a webhook, ends the others.
    newest_poll: u64,
    webhook_error: Option<webhook::LastError>,
}

impl Fake {
    /// Continues the fake whose log is in `dir`, or begins one. Needs a running tokio runtime.
    ///
    /// # Errors
    /// See [`super::fake_router`].
    pub(crate) fn open(dir: &Path, clock: Clock, shutdown: CancellationToken) -> Result<Self, Error> {
        create_dir(dir)?;
        let mut world = World::default();
        let journal = Journal::open(dir.join("telegram.ndjson"), |entry| world.apply(entry))?;
        let kept = Mutex::new(Kept { world, journal, newest_poll: 0, webhook_error: None });
        let (faults, changed, redirected) = (Mutex::default(), Arc::default(), Arc::default());
        let fake = Self(Arc::new(Inner { clock, shutdown, kept, faults, changed, redirected }));
        webhook::spawn_delivery(&fake, webhook::client()?);
        Ok(fake)
    }

    /// The Bot API and `/dev/telegram/*`.
    pub(crate) fn router(&self) -> Router {
        Router::new().merge(call::router()).merge(control::router()).with_state(self.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // The log is written before the world changes, so a panic between leaves nothing half done.
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.0.changed.notify_waiters();
    }
}

impl Kept {
    /// Writes the entry to the log, then makes it so.
    fn commit(&mut self, entry: Entry) -> std::io::Result<()> {
        self.journal.append(&entry)?;
        self.world.apply(entry);
        Ok(())
    }

    /// [`Kept::commit`] for a Bot API method, whose caller is told what a failing server tells.
    fn accept(&mut self, entry: Entry) -> Result<(), Refusal> {
        self.commit(entry).map_err(|error| {
            tracing::error!(error = %error, "the fake Bot API could not write its log");
            Refusal::internal()
        })
    }
}

/// The bot as `getMe` and the messages' `from` show it.
fn bot_user() -> Value {
    json!({"id": 7_000_000_001_i64, "is_bot": true, "first_name": "Pillarbox", "username": "pillarbox_fake_bot"})
}

fn me() -> Value {
    let mut me = bot_user();
    for (field, value) in [
        ("can_join_groups", true),
        ("can_read_all_group_messages", false),
        ("supports_inline_queries", false),
        ("can_connect_to_business", false),
        ("has_main_web_app", false),
    ] {
        me[field] = value.into();
    }
    me
}

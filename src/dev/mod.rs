//! What `pillarbox dev` and `pillarbox fake` add: a fake Telegram Bot API, a webhook sink and a clock that can be moved.
//!
//! Everything speaks HTTP, so that the real client, the real webhook transport and the real server are what is tried.
//!
//! **What.** Three routers that may share one directory: [`fake::Fake`] (`/bot{token}/{method}` and
//! `/dev/telegram/*`), [`sink::Sink`] (`/dev/sink/*`) and [`clock::router`] (`/dev/clock`). [`fake_router`] is all of
//! them; [`serve::serve_fake`] serves that as a process of its own, which outlives the server that a crash test kills.
//!
//! **Who may call.** Programs on this machine, and pages that it serves itself: `guard.rs`.
//!
//! **Guarantees.** What was answered with success is in a log file before the answer leaves, so a SIGKILL loses nothing
//! that a client was told (`src/dev/fake/tests/persistence.rs`). Errors of `/dev/*` are `application/problem+json`.
//!
//! **Windows.** Killed between the log and the answer: accepted, and the client does not know; that is the same as
//! `drop_response`. Killed between a webhook's 2xx and the log: that update is delivered once more, as by Telegram.
//!
//! **Not here.** No fsync: a power cut may lose the tail of a log, and this is a double. Faults are not kept either.

pub(crate) mod clock;
pub(crate) mod demo;
pub(crate) mod fake;
mod guard;
pub(crate) mod jobs;
mod journal;
pub(crate) mod keys;
pub(crate) mod listen;
mod problem;
pub(crate) mod rehearsal;
pub(crate) mod serve;
pub(crate) mod signature;
pub(crate) mod sink;

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use axum::Router;
use tokio_util::sync::CancellationToken;

use crate::kernel::clock::Clock;

/// Why a part of `dev` could not be opened or served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The fake accepts any token and anyone's commands: it is for this machine only.
    #[error("{listen} is not a loopback address; dev and fake listen on 127.0.0.1 or [::1] only")]
    NotLoopback { listen: SocketAddr },
    #[error("cannot listen on {listen}: {source}")]
    Bind { listen: SocketAddr, source: io::Error },
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is held by another process; give this one a directory of its own", path.display())]
    InUse { path: PathBuf },
    #[error("{}, line {line}: not an entry that this version wrote: {source}", path.display())]
    Journal { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("cannot prepare the client that delivers updates: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the fake stopped serving: {0}")]
    Serve(io::Error),
}

/// Everything that `pillarbox fake` serves, continued from `dir`, which is created when missing.
///
/// Needs a running tokio runtime: updates go to a webhook from a task. `shutdown` ends that task and answers the long
/// polls that wait, so that a graceful stop is not held up by them.
///
/// # Errors
/// When `dir` cannot be read and written, is used by another process, or holds a log of another version.
pub(crate) fn fake_router(dir: &Path, clock: Clock, shutdown: CancellationToken) -> Result<Router, Error> {
    let fake = fake::Fake::open(dir, clock.clone(), shutdown)?;
    let sink = sink::Sink::open(dir, clock.clone())?;
    Ok(guard::local_only(Router::new().merge(fake.router()).merge(sink.router()).merge(clock::router(clock, dir))))
}

/// Replaces `path` in one step: a reader finds the old content or the new one, never a part. For its owner only, since
/// keys and the ready file hold secrets.
fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Error> {
    let named = |source| Error::File { path: path.to_owned(), source };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).map_err(named)?;
    file.write_all(content).map_err(named)?;
    std::fs::rename(&beside, path).map_err(named)
}

/// Makes `dir`, and the data directory above it, for their owner only; those that are there are left as they are.
///
/// # Errors
/// [`Error::File`].
pub(crate) fn create_dir(dir: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| Error::File { path: dir.to_owned(), source })
}

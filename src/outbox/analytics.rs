//! The analytics consumer: every event as a line of a file, one file a UTC day, for whoever counts.
//!
//! **What.** A page of events is one write to `DIR/YYYY-MM-DD.ndjson` and one flush; then they are accepted. A line is
//! `{"event_id", "type", "version", "tenant", "aggregate", "occurred_at", "data"}`, `data` as it came.
//!
//! **Guarantees.**
//! - What is accepted is on the disk, a line for each event: `src/outbox/tests/analytics.rs::every_event_is_a_line_of_its_day`.
//! - What is refused has left no line, also where only the names of file and directory could not be made to last:
//!   `src/outbox/tests/analytics.rs::names_that_cannot_be_made_to_last_leave_no_line`,
//!   `src/outbox/tests/analytics.rs::a_full_disk_refuses_and_leaves_no_part_of_a_line`.
//! - A line that a crash has cut off spoils no other: `src/outbox/tests/analytics.rs::a_torn_line_is_left_alone_and_a_new_one_begun`.
//! - Nobody else may read the files: `src/outbox/tests/analytics.rs::the_files_are_nobody_elses_to_read`.
//!
//! **Windows.** Between the flush and the record of the acceptance a crash makes the lines come again: the same `event_id`
//! twice is one event (`src/outbox/tests/outside.rs::a_crash_between_acceptance_and_record_hands_it_over_again`).
//!
//! **Not here.** Removing old files: whoever takes them away knows when they have been counted. The writer opens its file
//! anew for every page, so that they may be moved at any time.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use super::consumer::{Consumer, Outside, Refusal, Shape, StoredEvent};
use crate::kernel::clock::{Clock, rfc3339};

/// Appends events to the file of the day.
pub(crate) struct Analytics {
    dir: PathBuf,
    clock: Clock,
    /// The file whose name is known to last. Held by the write that is under way, perhaps one that nobody waits for any
    /// more.
    lasting: Arc<Mutex<Option<PathBuf>>>,
    /// What makes the names in a directory last.
    sync_names: SyncNames,
}

type SyncNames = fn(&Path) -> io::Result<()>;

impl Analytics {
    /// The directory is made when the first event comes.
    pub(crate) fn new(dir: PathBuf, clock: Clock) -> Self {
        Self { dir, clock, lasting: Arc::default(), sync_names }
    }

    /// The same on a disk that does that so.
    #[cfg(test)]
    pub(super) fn with_names(self, sync_names: SyncNames) -> Self {
        Self { sync_names, ..self }
    }

    async fn append(&self, events: &[StoredEvent]) -> Result<(), &'static str> {
        // On a disk that hangs, every further write would take another thread and hang too.
        let Ok(mut lasting) = Arc::clone(&self.lasting).try_lock_owned() else { return Err("still_writing") };
        let today = rfc3339(self.clock.now()).chars().take(10).collect::<String>();
        let (dir, path) = (self.dir.clone(), self.dir.join(format!("{today}.ndjson")));
        let (lines, sync_names) = (lines(events), self.sync_names);
        let written = tokio::task::spawn_blocking(move || {
            let (file, length) = open(&dir, &path)?;
            // Before the first line: were the names found wanting after it, every attempt would add the same lines.
            if length == 0 || lasting.as_ref() != Some(&path) {
                last(&dir, sync_names)?;
                *lasting = Some(path);
            }
            append(&file, length, lines.as_bytes())
        });
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::warn!(%error, "events could not be written to the files of analytics");
                Err(code(&error))
            }
            Err(_) => Err("stopped"),
        }
    }
}

impl Consumer for Analytics {
    fn name(&self) -> &'static str {
        "analytics"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Outside(self)
    }
}

impl Outside for Analytics {
    fn accept<'a>(&'a self, events: &'a [StoredEvent]) -> BoxFuture<'a, Vec<Result<(), Refusal>>> {
        Box::pin(async move {
            let written = self.append(events).await;
            events.iter().map(|_| written.map_err(Refusal::Code)).collect()
        })
    }
}

fn lines(events: &[StoredEvent]) -> String {
    let mut lines = String::with_capacity(events.iter().map(|event| event.payload.len() + 300).sum());
    for event in events {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        // Writing to a String cannot fail.
        let _ = write!(
            lines,
            r#"{{"event_id":{},"type":{},"version":{},"tenant":{},"aggregate":{{"type":{},"id":{}}},"occurred_at":{},"data":"#,
            text(&event.event_id),
            text(&event.event_type),
            event.version,
            text(event.tenant.as_str()),
            text(&event.aggregate_type),
            text(&event.aggregate_id),
            text(&rfc3339(event.occurred_at)),
        );
        // In JSON a line break can only be white space between tokens; in this file it would end the line.
        lines.extend(event.payload.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }));
        lines.push_str("}\n");
    }
    lines
}

/// The file, with its directory, and how long it is.
fn open(dir: &Path, path: &Path) -> io::Result<(File, u64)> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The names of a new file and of a new directory have to last, too.
fn last(dir: &Path, sync_names: SyncNames) -> io::Result<()> {
    for place in [Some(dir), dir.parent()].into_iter().flatten().filter(|place| !place.as_os_str().is_empty()) {
        match sync_names(place) {
            // A file system on which that cannot be asked for keeps names by means of its own, or not at all.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Appends to a file and flushes it. What could not be written whole is taken back, as far as the disk lets it.
fn append(file: &File, length: u64, lines: &[u8]) -> io::Result<()> {
    let mut writer = file;
    let written = begin_line(file, length).and_then(|()| writer.write_all(lines)).and_then(|()| file.sync_data());
    if written.is_err() {
        // A disk that is full would be filled a little more by every attempt.
        let _ = file.set_len(length);
    }
    written
}

/// Ends the line that a crash has cut off.
fn begin_line(mut file: &File, length: u64) -> io::Result<()> {
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == [b'\n'] { Ok(()) } else { file.write_all(b"\n") }
}

fn code(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk_full",
        io::ErrorKind::PermissionDenied => "not_permitted",
        io::ErrorKind::ReadOnlyFilesystem => "read_only",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => "not_a_directory",
        _ => "io",
    }
}

//! `members import`: a file of members, some hundred lines a transaction, beside whatever else writes.
//!
//! How far it has come is stored with the members, under the digest of the whole file. So an import that was killed goes
//! on behind the last line that is stored, and a file that was imported whole is not imported a second time unasked. What is
//! wrong with a line is told once its batch is stored; a kill in between takes the words, and the count stays.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{FileFormat, ImportArgs};
use super::lines::{Fault, Line, Lines, Reader, Said};
use super::progress::Progress;
use crate::backend::{self, members};
use crate::edge::cli::Exit;
use crate::edge::cli::print::{Printer, note};
use crate::kernel::store::{Db, StoreError, Tx};

/// Lines of one transaction: others write in between.
const BATCH: usize = 500;
/// The file is read in parts of this size.
const READ_AT_ONCE: usize = 64 << 10;

/// A line of a batch; `None` for one that says nothing.
type Entry = (i64, Option<Result<Said, Fault>>);

pub(super) async fn import(db: &Db, args: ImportArgs) -> anyhow::Result<Exit> {
    let stop = stopped_by_signals()?;
    let format = format_of(&args)?;
    let path = &args.file;
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (digest, bytes) = digest_of(&mut file).with_context(|| format!("cannot read {}", path.display()))?;
    let (key, again) = (digest.clone(), args.again);
    let begin = move |tx: &Tx<'_>| match again {
        true => members::import::begin_again(tx, &key),
        false => members::import::begin(tx, &key),
    };
    let at = db.write(begin).await?;
    if at.finished_at.is_some() {
        note("this file was imported before, and nothing is done; --again imports it anew");
        return report(&args, &at);
    }
    if at.lines_done > 0 {
        note(&format!("going on behind line {}", at.lines_done));
    }
    let lines = Lines::new(BufReader::with_capacity(READ_AT_ONCE, file));
    let progress = Progress::of(bytes, args.errors.as_deref())?;
    let mut running = Running { db, digest, lines, at, progress };
    let done = running.run(format, &stop).await;
    let Running { at, progress, .. } = running;
    progress.end();
    if let Err(error) = done {
        return Err(error.context(format!("stopped behind line {}; the same command goes on there", at.lines_done)));
    }
    let exit = report(&args, &at)?;
    Ok(if at.bad > 0 { Exit::Failure } else { exit })
}

/// Cancelled by SIGINT and SIGTERM; what is under way is finished.
fn stopped_by_signals() -> io::Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let heard = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        heard.cancel();
    });
    Ok(stop)
}

fn format_of(args: &ImportArgs) -> anyhow::Result<FileFormat> {
    let named = |path: &Path| path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    match (args.format, named(&args.file).as_deref()) {
        (Some(format), _) => Ok(format),
        (None, Some("csv")) => Ok(FileFormat::Csv),
        (None, Some("ndjson" | "jsonl")) => Ok(FileFormat::Ndjson),
        (None, _) => bail!("the name ends in neither .csv nor .ndjson; say which it is with --format"),
    }
}

/// The file's SHA-256 in hexadecimal and its length, and it stands at its beginning again.
fn digest_of(file: &mut File) -> io::Result<(String, u64)> {
    let (mut hash, mut part, mut bytes) = (Sha256::new(), vec![0; READ_AT_ONCE], 0);
    loop {
        let read = file.read(&mut part)?;
        if read == 0 {
            break;
        }
        hash.update(&part[..read]);
        bytes += read as u64;
    }
    file.rewind()?;
    Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), bytes))
}

/// An import under way.
struct Running<'a> {
    db: &'a Db,
    digest: String,
    lines: Lines<BufReader<File>>,
    /// How far it has come, as it is stored.
    at: members::import::Progress,
    progress: Progress,
}

impl Running<'_> {
    async fn run(&mut self, format: FileFormat, stop: &CancellationToken) -> anyhow::Result<()> {
        let Some(reader) = self.open(format)? else { return self.finish().await };
        while !stop.is_cancelled() {
            let batch = self.read_batch(&reader)?;
            if batch.is_empty() {
                return self.finish().await;
            }
            self.store(batch).await?;
        }
        bail!("interrupted")
    }

    /// Reads up to where the import stands; `None` if the file is empty.
    fn open(&mut self, format: FileFormat) -> anyhow::Result<Option<Reader>> {
        let behind = self.at.lines_done;
        let first = match format {
            FileFormat::Ndjson => Vec::new(),
            FileFormat::Csv => match self.lines.next()? {
                Some(Line::Whole(line)) => line,
                Some(Line::TooLong) => bail!("the first line is no header"),
                None => return Ok(None),
            },
        };
        let reader = Reader::new(format, &first)?;
        while self.lines.number < behind && self.lines.next()?.is_some() {}
        Ok(Some(reader))
    }

    fn read_batch(&mut self, reader: &Reader) -> anyhow::Result<Vec<Entry>> {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let said = match self.lines.next().context("cannot read on")? {
                Some(Line::Whole(line)) => reader.read(&line),
                Some(Line::TooLong) => Some(Err(Line::TOO_LONG)),
                None => break,
            };
            batch.push((self.lines.number, said));
        }
        Ok(batch)
    }

    async fn store(&mut self, batch: Vec<Entry>) -> anyhow::Result<()> {
        let (from, digest) = (self.at, self.digest.clone());
        let stored = self.db.write(move |tx| store(tx, &digest, &from, batch)).await.map_err(told)?;
        self.at = stored.at;
        for (line, fault) in stored.bad {
            self.progress.bad(&format!("line {line}: {fault}"))?;
        }
        self.progress.moved(self.lines.bytes, self.at.lines_done);
        Ok(())
    }

    async fn finish(&mut self) -> anyhow::Result<()> {
        let digest = self.digest.clone();
        Ok(self.db.write(move |tx| members::import::finish(tx, &digest)).await?)
    }
}

fn told(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::NoRow => anyhow!("another import of the same file is under way"),
        error => error.into(),
    }
}

/// What one transaction stored.
struct Stored {
    at: members::import::Progress,
    bad: Vec<(i64, Fault)>,
}

/// Stores a batch, each line by itself, and how far the import has come with it.
fn store(tx: &Tx<'_>, digest: &str, from: &members::import::Progress, batch: Vec<Entry>) -> Result<Stored, StoreError> {
    let mut stored = Stored { at: *from, bad: Vec::new() };
    for (line, said) in batch {
        stored.at.lines_done = line;
        let put = match said {
            None => continue,
            Some(Err(fault)) => Err(fault),
            Some(Ok((uid, change))) => {
                let panicked = || backend::Error::Store(StoreError::NoRow);
                tx.attempt(panicked, || members::put(tx, uid, &change))?.map_err(|error| Fault::of_error(&error))
            }
        };
        match put {
            Ok(put) if put.is_changed => stored.at.stored += 1,
            Ok(_) => stored.at.unchanged += 1,
            Err(fault) => {
                stored.at.bad += 1;
                stored.bad.push((line, fault));
            }
        }
    }
    members::import::advance(tx, digest, from.lines_done, &stored.at)?;
    Ok(stored)
}

/// What became of a file, as it is printed.
#[derive(Serialize)]
struct ImportBody {
    lines: i64,
    stored: i64,
    unchanged: i64,
    bad: i64,
}

fn report(args: &ImportArgs, at: &members::import::Progress) -> anyhow::Result<Exit> {
    let body = ImportBody { lines: at.lines_done, stored: at.stored, unchanged: at.unchanged, bad: at.bad };
    let text = format!("{} stored, {} unchanged, {} bad of {} lines", at.stored, at.unchanged, at.bad, at.lines_done);
    Printer::stdout(args.printed).one(&body, &text)?;
    Ok(Exit::Ok)
}

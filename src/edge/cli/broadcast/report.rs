//! `broadcast report`: every recipient and what became of them, in pages, so that a million take no more memory.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use csv::{Terminator, WriterBuilder};

use crate::edge::cli::Exit;
use crate::edge::cli::leads::output::NewFile;
use crate::edge::cli::print::note;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::onboarding::broadcast::report::{self, Recipient};

const COLUMNS: [&str; 6] = ["telegram_id", "lang", "status", "code", "finished_at", "telegram_message_id"];

pub(super) async fn report(db: &Db, id: i64, out: Option<&Path>) -> anyhow::Result<Exit> {
    db.read(move |tx| report::load(tx, id)).await?;
    let Some(path) = out else {
        write(db, id, BufWriter::new(io::stdout())).await?;
        return Ok(Exit::Ok);
    };
    let mut file = NewFile::begin(path)?;
    let written = write(db, id, &mut file).await.with_context(|| format!("{} was not written", path.display()))?;
    file.finish().with_context(|| format!("{} was not written", path.display()))?;
    note(&format!("{written} recipients in {}", path.display()));
    Ok(Exit::Ok)
}

/// Writes page after page; how many recipients.
async fn write(db: &Db, id: i64, out: impl Write) -> anyhow::Result<u64> {
    let mut table = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
    table.write_record(COLUMNS).map_err(io_error)?;
    let (mut after, mut written) = (i64::MIN, 0);
    loop {
        let page = db.read(move |tx| report::recipients(tx, id, after)).await?;
        for recipient in &page {
            table.write_record(cells(recipient)).map_err(io_error)?;
            written += 1;
        }
        match page.last() {
            Some(last) => after = last.telegram_id,
            None => break,
        }
    }
    table.flush()?;
    Ok(written)
}

/// Numbers, words of ours and instants: nothing that a spreadsheet would take for a formula.
fn cells(recipient: &Recipient) -> [String; 6] {
    [
        recipient.telegram_id.to_string(),
        recipient.lang.clone(),
        recipient.status.clone(),
        recipient.code.clone().unwrap_or_default(),
        recipient.finished_at.map(rfc3339).unwrap_or_default(),
        recipient.telegram_message_id.map(|id| id.to_string()).unwrap_or_default(),
    ]
}

/// The kind of the output's own error is kept: a closed pipe is what `| head` wants.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

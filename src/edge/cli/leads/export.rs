//! `leads export`: every column of every lead, in pages, so that it takes no more memory for a million of them.
//!
//! Each page is one consistent look; what comes or goes between two pages is in it or not. A page begins behind the last
//! lead of the one before, so none is written twice.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use anyhow::{Context, anyhow};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{ExportArgs, FileFormat};
use super::csv::Table;
use super::output::NewFile;
use crate::edge::cli::Exit;
use crate::edge::cli::print::{escaped, note};
use crate::kernel::store::Db;
use crate::leads::inspect::{self, Filter, Record};

/// Leads that are in memory at once.
const PAGE: i64 = 200;

pub(super) async fn export(db: &Db, args: ExportArgs) -> anyhow::Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Whoever interrupts it drops it, and with it the file that is not whole.
    tokio::select! {
        done = write(db, args) => done,
        _ = interrupt.recv() => Err(anyhow!("interrupted before the export was whole")),
        _ = terminate.recv() => Err(anyhow!("interrupted before the export was whole")),
    }
}

async fn write(db: &Db, args: ExportArgs) -> anyhow::Result<Exit> {
    let filter = args.which.filter(PAGE)?;
    let delimiter = args.delimiter.bytes().next().unwrap_or(b',');
    let Some(path) = &args.output else {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            note("leads are personal data; --output FILE keeps them off the terminal");
        }
        let written = pages(db, filter, Sink::begin(args.format, delimiter, BufWriter::new(stdout))).await;
        written.map_err(|error| anyhow!("the export is not whole: {error:#}"))?;
        return Ok(Exit::Ok);
    };
    let mut file = NewFile::begin(path)?;
    let written = pages(db, filter, Sink::begin(args.format, delimiter, &mut file)).await;
    let written = written.with_context(|| format!("{} was not written", path.display()))?;
    file.finish().with_context(|| format!("{} was not written", path.display()))?;
    let leads = if written == 1 { "lead" } else { "leads" };
    note(&format!("{written} {leads} in {}", path.display()));
    Ok(Exit::Ok)
}

/// Writes page after page; how many leads.
async fn pages<W: Write>(db: &Db, mut filter: Filter, sink: io::Result<Sink<W>>) -> anyhow::Result<u64> {
    let (mut sink, mut written) = (sink.map_err(closed_early)?, 0_u64);
    loop {
        let wanted = filter.clone();
        let page = db.read(move |tx| inspect::export_page(tx, &wanted)).await?;
        for lead in &page {
            sink.row(lead).map_err(closed_early)?;
            written += 1;
        }
        match page.into_iter().next_back() {
            Some(last) => filter.after = Some(last.position),
            None => break,
        }
    }
    sink.finish().map_err(closed_early)?;
    Ok(written)
}

/// A closed pipe is what `| head` wants of a list; of an export it means that somebody has a part and thinks it whole.
fn closed_early(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => anyhow!("whoever reads it went away"),
        _ => error.into(),
    }
}

/// What leads are written to.
enum Sink<W: Write> {
    Csv(Box<Table<W>>),
    Ndjson(W),
}

impl<W: Write> Sink<W> {
    fn begin(format: FileFormat, delimiter: u8, out: W) -> io::Result<Self> {
        match format {
            FileFormat::Csv => Ok(Self::Csv(Box::new(Table::begin(out, delimiter)?))),
            FileFormat::Ndjson => Ok(Self::Ndjson(out)),
        }
    }

    fn row(&mut self, lead: &Record) -> io::Result<()> {
        match self {
            Self::Csv(table) => table.row(lead),
            Self::Ndjson(out) => writeln!(out, "{}", escaped(&serde_json::to_string(lead)?)),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(table) => table.finish(),
            Self::Ndjson(mut out) => out.flush(),
        }
    }
}

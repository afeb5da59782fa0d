//! How far an import has come, for the person who waits: a bar on a terminal, else a line for every tenth of the file.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::edge::cli::print::note;

/// What is told of an import while it runs.
pub(super) struct Progress {
    shown: Shown,
    total_bytes: u64,
    errors: Option<File>,
}

enum Shown {
    Bar(ProgressBar),
    /// Up to which tenth it has been told.
    Lines(u64),
}

impl Progress {
    /// Of a file of so many bytes; what is wrong with its lines goes to `errors` if that is a file.
    ///
    /// # Errors
    /// The system's, with the file's name.
    pub(super) fn of(total_bytes: u64, errors: Option<&Path>) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.with_context(|| format!("cannot write {}", path.display()))
        };
        let errors = errors.map(open).transpose()?;
        let shown = if io::stderr().is_terminal() { Shown::Bar(bar(total_bytes)) } else { Shown::Lines(0) };
        Ok(Self { shown, total_bytes, errors })
    }

    /// So many bytes and lines are dealt with.
    pub(super) fn moved(&mut self, bytes: u64, lines: i64) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(bytes);
                bar.set_message(format!("{lines} lines"));
            }
            Shown::Lines(told) => {
                let tenth = bytes.saturating_mul(10) / self.total_bytes.max(1);
                if tenth > *told {
                    *told = tenth;
                    note(&format!("{} %, {lines} lines", tenth * 10));
                }
            }
        }
    }

    /// Tells what is wrong with a line.
    ///
    /// # Errors
    /// The system's, if that cannot be written.
    pub(super) fn bad(&mut self, what: &str) -> anyhow::Result<()> {
        if let Some(file) = &mut self.errors {
            return writeln!(file, "{what}").context("what is wrong with a line cannot be written");
        }
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| note(what)),
            Shown::Lines(_) => note(what),
        }
        Ok(())
    }

    /// The bar is taken away.
    pub(super) fn end(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(total_bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}  {eta} left");
    let bar = ProgressBar::new(total_bytes);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

//! How verbs print: data on stdout, as a table or as one JSON object a line; everything else on stderr.
//!
//! What comes from the file may hold anything, so no control character of it reaches a terminal in either form.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::Form;
use super::args::Printed;
use crate::config::one_line;

/// Longer values are cut in a table, so that a row stays a line; JSON has them whole.
const WIDEST_CELL: usize = 80;
/// The column of names beside values has at least this width.
const NARROWEST_NAME: usize = 16;

/// One row of a list. Serialized it is the JSON line.
pub(super) trait Row: Serialize {
    /// The table's columns.
    const HEADER: &'static [&'static str];

    /// Its cells, as many as there are columns.
    fn cells(&self) -> Vec<String>;
}

/// Where data go, and in which form.
pub(super) struct Printer<W> {
    form: Form,
    out: W,
}

impl Printer<BufWriter<StdoutLock<'static>>> {
    /// Stdout: a table on a terminal, unless JSON was asked for.
    pub(super) fn stdout(printed: Printed) -> Self {
        let stdout = io::stdout().lock();
        let form = if printed.json || !stdout.is_terminal() { Form::Json } else { Form::Table };
        Self { form, out: BufWriter::new(stdout) }
    }
}

impl<W: Write> Printer<W> {
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Prints a list. An empty one prints nothing, and says so to whoever reads a table.
    pub(super) fn list<R: Row>(&mut self, rows: &[R], nothing: &str) -> io::Result<()> {
        match self.form {
            Form::Json => rows.iter().try_for_each(|row| self.json(row))?,
            Form::Table if rows.is_empty() => note(nothing),
            Form::Table => self.table(R::HEADER, rows.iter().map(Row::cells))?,
        }
        self.out.flush()
    }

    /// Prints rows under a header.
    pub(super) fn table<H: AsRef<str>>(
        &mut self,
        header: &[H],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header.iter().map(|name| one_line(name.as_ref())));
        for row in rows {
            table.add_row(row.iter().map(|text| cell(text)));
        }
        writeln!(self.out, "{}", table.trim_fmt())
    }

    /// Prints one thing: as `text` to a reader, whole as a JSON line to a program.
    pub(super) fn one<T: Serialize>(&mut self, thing: &T, text: &str) -> io::Result<()> {
        match self.form {
            Form::Json => self.json(thing)?,
            Form::Table => writeln!(self.out, "{}", one_line(text))?,
        }
        self.out.flush()
    }

    /// Prints one thing: whole as a JSON line to a program, as lines of those fields that it has to a reader.
    pub(super) fn fields<T: Serialize>(&mut self, thing: &T, fields: &[(&str, Option<String>)]) -> io::Result<()> {
        match self.form {
            Form::Json => self.json(thing)?,
            Form::Table => {
                let longest = fields.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name.len()).max();
                let width = longest.unwrap_or_default().max(NARROWEST_NAME);
                for (name, value) in fields {
                    if let Some(value) = value {
                        writeln!(self.out, "{name:<width$} {}", one_line(value))?;
                    }
                }
            }
        }
        self.out.flush()
    }

    /// Prints a text as its lines, in either form.
    pub(super) fn lines(&mut self, text: &str) -> io::Result<()> {
        text.lines().try_for_each(|line| writeln!(self.out, "{}", one_line(line)))?;
        self.out.flush()
    }

    /// Prints one JSON line.
    pub(super) fn json<T: Serialize>(&mut self, thing: &T) -> io::Result<()> {
        let line = escaped(&serde_json::to_string(thing)?);
        writeln!(self.out, "{line}")
    }

    /// Hands everything on to the reader.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// JSON leaves the control characters above ASCII as they are. They occur in its strings only, where an escape means
/// the same.
pub(super) fn escaped(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() { line.push_str(&format!("\\u{:04x}", u32::from(c))) } else { line.push(c) }
    }
    line
}

fn cell(text: &str) -> String {
    let start: String = text.chars().take(WIDEST_CELL).collect();
    let end = if start.len() < text.len() { "…" } else { "" };
    one_line(&start) + end
}

/// Says something to the person, beside the data. A closed stderr is nobody who listens.
pub(super) fn note(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(stderr, "{}", one_line(line));
    }
}

/// Says how to go on when a page is full.
pub(super) fn note_next(rows: usize, limit: i64, last: Option<i64>) {
    if let Some(last) = last.filter(|_| i64::try_from(rows).is_ok_and(|rows| rows >= limit)) {
        note(&format!("cut at {limit}; go on with --after {last}"));
    }
}

/// A value that may be missing, as a cell.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Said {
        id: i64,
        what: &'static str,
    }

    impl Row for Said {
        const HEADER: &'static [&'static str] = &["ID", "WHAT"];

        fn cells(&self) -> Vec<String> {
            vec![self.id.to_string(), self.what.to_owned()]
        }
    }

    fn printed(form: Form, rows: &[Said]) -> String {
        let mut printer = Printer { form, out: Vec::new() };
        printer.list(rows, "nothing").expect("memory takes everything");
        String::from_utf8(printer.out).expect("the CLI writes UTF-8")
    }

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let rows = [Said { id: 1, what: "a\u{1b}[2Jb\r\n\u{9b}31mc\u{7f}" }];
        let table = printed(Form::Table, &rows);
        assert_eq!(table.lines().count(), 2, "{table}");
        let json = printed(Form::Json, &rows);
        for text in [&table, &json] {
            assert!(!text.trim_end_matches('\n').replace('\n', "").chars().any(char::is_control), "{text:?}");
        }
        let back: serde_json::Value = serde_json::from_str(&json).expect("it is still JSON");
        assert_eq!(back["what"], rows[0].what);
    }

    #[test]
    fn a_long_value_is_cut_in_a_table_only() {
        let rows = [Said {
            id: 1,
            what: "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234",
        }];
        assert!(printed(Form::Table, &rows).contains("6789…"));
        assert!(printed(Form::Json, &rows).contains(rows[0].what));
    }

    #[test]
    fn an_empty_list_prints_nothing() {
        assert_eq!(printed(Form::Json, &[]), "");
        assert_eq!(printed(Form::Table, &[]), "");
    }
}

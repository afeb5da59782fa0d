//! Leads as CSV that a spreadsheet opens as text: UTF-8 with a byte order mark, CRLF, and no cell that it would take for
//! a formula.
//!
//! Who writes a lead chooses its texts, and who opens the export trusts it. A cell that begins with `=`, `+`, `-`, `@`
//! (also full-width), a tab or a line break has an apostrophe before it. Phones are no exception: a spreadsheet would
//! count with `+7 900 123-45-67` and lose it, and `phone_normalized` has the digits alone. Numbers of our own are cells
//! of digits. Whoever reads by program takes NDJSON, where nothing is changed.

use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};
use serde_json::Value;

use crate::leads::inspect::{COLUMNS, Record};

/// Without it a spreadsheet takes the file for one of its own old encodings.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// What a formula begins with, for one spreadsheet or another.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Few cells are longer; one of 50 MB then takes a second and not minutes.
const LARGE_CELL: usize = 1 << 20;

/// A table of leads being written.
pub(super) struct Table<W: Write> {
    writer: Writer<W>,
}

impl<W: Write> Table<W> {
    /// A table with its header.
    ///
    /// # Errors
    /// The output's.
    pub(super) fn begin(mut out: W, delimiter: u8) -> io::Result<Self> {
        out.write_all(BYTE_ORDER_MARK)?;
        let mut builder = WriterBuilder::new();
        // The writer looks for the next quote in all that is left of a cell each time that its buffer is full.
        let builder = builder.buffer_capacity(LARGE_CELL).delimiter(delimiter);
        let mut writer = builder.terminator(Terminator::CRLF).from_writer(out);
        writer.write_record(COLUMNS).map_err(io_error)?;
        Ok(Self { writer })
    }

    /// Writes a lead.
    ///
    /// # Errors
    /// The output's.
    pub(super) fn row(&mut self, lead: &Record) -> io::Result<()> {
        self.writer.write_record(lead.values.iter().map(cell)).map_err(io_error)
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// The output's.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The kind of the output's own error is kept: a full disk is told as such.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => guarded(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        // JSON begins with a bracket.
        Value::Array(_) | Value::Object(_) => printable(&value.to_string()),
    }
}

fn guarded(text: &str) -> String {
    let text = printable(text);
    if text.starts_with(FORMULA) { format!("'{text}") } else { text }
}

/// The text with its tabs and line breaks and without other control characters, at which some readers end a file.
fn printable(text: &str) -> String {
    let is_kept = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\n');
    text.chars().map(|c| if is_kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::leads::inspect::Position;

    fn written(values: &[(&str, Value)], delimiter: u8) -> String {
        let value = |column: &&str| values.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone());
        let position = Position { created_at: 1, id: "a".into() };
        let lead =
            Record { position, values: COLUMNS.iter().map(|column| value(column).unwrap_or_default()).collect() };
        let mut out = Vec::new();
        let mut table = Table::begin(&mut out, delimiter).unwrap();
        table.row(&lead).unwrap();
        table.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The cells of the only row, as a reader has them.
    fn read(text: &str, delimiter: u8) -> Vec<String> {
        let text = text.strip_prefix('\u{feff}').unwrap();
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), COLUMNS);
        let row = reader.records().next().unwrap().unwrap();
        row.iter().map(str::to_owned).collect()
    }

    fn at(cells: &[String], column: &str) -> String {
        cells[COLUMNS.iter().position(|name| *name == column).unwrap()].clone()
    }

    #[test]
    fn no_cell_of_text_is_a_formula_and_numbers_stay_numbers() {
        for hostile in
            ["=1+1", "+7 (900) 123-45-67", "-2", "@SUM(A1)", "\t=1", "\r\n=1", "\n=1", "＝1", "＋1", "－1", "＠a"]
        {
            let cells = read(&written(&[("client_name", json!(hostile))], b','), b',');
            assert_eq!(at(&cells, "client_name"), format!("'{hostile}"));
        }
        for harmless in ["79001234567", "Анна", "a=1", " =1", "'=1", "", "🏠"] {
            let cells = read(&written(&[("client_name", json!(harmless))], b','), b',');
            assert_eq!(at(&cells, "client_name"), harmless);
        }
        let cells = read(&written(&[("property_price", json!(-5)), ("has_matkapital", json!(true))], b','), b',');
        assert_eq!((at(&cells, "property_price"), at(&cells, "has_matkapital")), ("-5".into(), "true".into()));
    }

    #[test]
    fn whatever_is_in_a_cell_stays_in_it() {
        for delimiter in [b',', b';'] {
            let nasty = "a,b;c \"d\"\r\ne\tf";
            let payload = json!({"text": "x,y;\"z\"\n"});
            let text = written(&[("comment", json!(nasty)), ("raw_payload", payload.clone())], delimiter);
            assert!(text.starts_with("\u{feff}id"), "{text}");
            assert!(text.ends_with("\r\n"), "{text}");
            let cells = read(&text, delimiter);
            assert_eq!(at(&cells, "comment"), nasty);
            let back: Value = serde_json::from_str(&at(&cells, "raw_payload")).unwrap();
            assert_eq!(back, payload);
        }
        let cells = read(&written(&[("comment", json!("a\0\u{1b}[2Jb"))], b','), b',');
        assert_eq!(at(&cells, "comment"), "a\u{fffd}\u{fffd}[2Jb");
    }
}

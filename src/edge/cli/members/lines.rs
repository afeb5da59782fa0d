//! From a line of a file to a change of a member, or to what is wrong with it: the field and what it must be, and nothing of
//! what stands there, since that is personal.
//!
//! A record is one line in both formats, since no field can hold a line break. So a quote that is not closed spoils its
//! own line only, lines can be counted, and memory does not depend on the file.

use std::fmt;
use std::io::{self, BufRead, Read};

use anyhow::bail;
use serde_json::{Map, Value};

use super::args::FileFormat;
use crate::backend;
use crate::backend::members::MemberChange;
use crate::edge::http::{MEMBER_FIELDS, read_member};

/// The longest line that is read, in bytes; a member has less than a tenth of it.
const LONGEST_LINE: u64 = 64 << 10;
/// What a cell says that is to be cleared, as databases export NULL.
const NULL: &str = r"\N";
const UID: &str = "uid";
const UID_WORDS: &str = "must be a whole number above 0";

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    field: Option<&'static str>,
    what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

impl Fault {
    const fn of_line(what: &'static str) -> Self {
        Self { field: None, what }
    }

    /// Why a change that could be read was not stored.
    pub(super) fn of_error(error: &backend::Error) -> Self {
        match error {
            backend::Error::OwnParent => Self { field: Some("parent_uid"), what: "is the member's own id" },
            backend::Error::NoParent => Self { field: Some("parent_uid"), what: "is no member yet" },
            backend::Error::LinkTaken => Self { field: Some("link"), what: "is another member's" },
            backend::Error::ChatTaken => Self { field: Some("telegram_id"), what: "is bound to another member" },
            _ => Self::of_line("the database refuses it"),
        }
    }
}

/// A change of the member of that id.
pub(super) type Said = (i64, MemberChange);

/// How the lines of a file are read.
#[derive(Debug)]
pub(super) enum Reader {
    Ndjson,
    /// The names of the columns.
    Csv(Vec<&'static str>),
}

impl Reader {
    /// The reader of a file that begins with this line.
    ///
    /// # Errors
    /// A header that names what members do not have: then every line would be misread.
    pub(super) fn new(format: FileFormat, first: &[u8]) -> anyhow::Result<Self> {
        match format {
            FileFormat::Ndjson => Ok(Self::Ndjson),
            FileFormat::Csv => header(first).map(Self::Csv),
        }
    }

    /// What a line says; `None` for an empty one.
    pub(super) fn read(&self, line: &[u8]) -> Option<Result<Said, Fault>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let fields = match self {
            Self::Ndjson => object(line),
            Self::Csv(columns) => record(columns, line),
        };
        Some(fields.and_then(change))
    }
}

fn header(line: &[u8]) -> anyhow::Result<Vec<&'static str>> {
    let names = || std::iter::once(UID).chain(MEMBER_FIELDS.into_iter().map(|(name, _)| name));
    let Ok(cells) = cells(line) else { bail!("the first line is no header in UTF-8") };
    let mut columns = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let all = || names().collect::<Vec<_>>().join(", ");
        let Some(name) = names().find(|name| *name == cell.trim()) else {
            bail!("column {} of the first line is none of {}; a CSV begins with a header", at + 1, all());
        };
        if columns.contains(&name) {
            bail!("the header has {name} twice");
        }
        columns.push(name);
    }
    if !columns.contains(&UID) {
        bail!("the header has no uid");
    }
    Ok(columns)
}

/// The cells of a line.
fn cells(line: &[u8]) -> Result<Vec<String>, Fault> {
    if line.iter().filter(|byte| **byte == b'"').count() % 2 != 0 {
        return Err(Fault::of_line("has a quote that is not closed; a record is one line"));
    }
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(4096).from_reader(line);
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => Ok(record.iter().map(str::to_owned).collect()),
        Ok(false) => Ok(Vec::new()),
        Err(_) => Err(Fault::of_line("is not UTF-8")),
    }
}

fn record(columns: &[&'static str], line: &[u8]) -> Result<Map<String, Value>, Fault> {
    let cells = cells(line)?;
    if cells.len() != columns.len() {
        return Err(Fault::of_line("has another number of cells than the header"));
    }
    let said = columns.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty());
    Ok(said.map(|(name, cell)| ((*name).to_owned(), value(name, cell))).collect())
}

/// What a cell says, as JSON would. One that cannot be so stays a text, and is told as a fault of its field.
fn value(column: &str, cell: &str) -> Value {
    let text = || Value::String(cell.to_owned());
    match (column, cell) {
        (_, NULL) => Value::Null,
        ("lp1" | "lp2" | "registration_confirmed", "true" | "1") => Value::Bool(true),
        ("lp1" | "lp2" | "registration_confirmed", "false" | "0") => Value::Bool(false),
        (UID | "parent_uid", cell) => cell.parse::<i64>().map_or_else(|_| text(), Value::from),
        _ => text(),
    }
}

fn object(line: &[u8]) -> Result<Map<String, Value>, Fault> {
    serde_json::from_slice(line).map_err(|_| Fault::of_line("is not an object of JSON"))
}

fn change(mut fields: Map<String, Value>) -> Result<Said, Fault> {
    let uid = fields.remove(UID).and_then(|uid| uid.as_i64()).filter(|uid| *uid > 0);
    let uid = uid.ok_or(Fault { field: Some(UID), what: UID_WORDS })?;
    let change = read_member(fields).map_err(|at_fault| match at_fault {
        Some((field, what)) => Fault { field: Some(field), what },
        None => Fault::of_line("has a field that members do not have"),
    })?;
    Ok((uid, change))
}

/// The lines of a file, one in memory at a time.
pub(super) struct Lines<R> {
    from: R,
    /// Lines read so far.
    pub(super) number: i64,
    /// Bytes read so far.
    pub(super) bytes: u64,
}

/// A line as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl Line {
    /// What is wrong with one that was not read whole.
    pub(super) const TOO_LONG: Fault = Fault::of_line("is longer than 64 KiB");
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, number: 0, bytes: 0 }
    }

    /// The next line without its end; `None` behind the last one.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let read = self.from.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read as u64;
        if line.last() != Some(&b'\n') && read as u64 > LONGEST_LINE {
            self.skip()?;
            return Ok(Some(Line::TooLong));
        }
        while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
            line.pop();
        }
        if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        Ok(Some(Line::Whole(line)))
    }

    /// Passes over the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let part = self.from.fill_buf()?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(part.len(), |at| at + 1);
            self.from.consume(used);
            self.bytes += used as u64;
            if end.is_some() || used == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, FileFormat, Line, Lines, Reader};
    use crate::backend::members::{Field, MemberChange};

    fn csv(header: &str) -> Reader {
        Reader::new(FileFormat::Csv, header.as_bytes()).unwrap()
    }

    fn told(reader: &Reader, line: &[u8]) -> String {
        reader.read(line).unwrap().map_or_else(|fault: Fault| fault.to_string(), |_| "taken".to_owned())
    }

    #[test]
    fn csv_and_ndjson_say_the_same() {
        let columns = "uid,link,name,telegram_id,parent_uid,addr,lp1,lp2,time_active,registration_confirmed";
        let line = br#"7,anna,"Anna, ""A""",107,3,\N,1,false,2027-06-01T00:00:00Z,true"#;
        let json =
            br#"{"uid": 7, "link": "anna", "name": "Anna, \"A\"", "telegram_id": "107", "parent_uid": 3, "addr": null,
            "lp1": true, "lp2": false, "time_active": "2027-06-01T00:00:00Z", "registration_confirmed": true}"#;
        let expected = MemberChange {
            link: Field::Set("anna".into()),
            name: Field::Set("Anna, \"A\"".into()),
            telegram_id: Field::Set(107),
            parent_uid: Field::Set(3),
            addr: Field::Clear,
            lp1: Field::Set(true),
            lp2: Field::Set(false),
            time_active: Field::Set(1_811_808_000_000),
            registration_confirmed: Field::Set(true),
            ..MemberChange::default()
        };
        assert_eq!(csv(columns).read(line).unwrap(), Ok((7, expected.clone())));
        assert_eq!(Reader::Ndjson.read(json).unwrap(), Ok((7, expected)));
        assert_eq!(csv("uid,name").read(b"7,").unwrap(), Ok((7, MemberChange::default())), "empty changes nothing");
        assert!(csv("uid").read(b"  ").is_none() && Reader::Ndjson.read(b"").is_none());
    }

    #[test]
    fn a_bad_line_is_told_by_its_field_and_nothing_of_its_value() {
        let reader = csv("uid,name,telegram_id,lp1,time_active");
        for (line, expected) in [
            (&b"x-17,,,,"[..], "uid: must be a whole number above 0"),
            (b"0,,,,", "uid: must be a whole number above 0"),
            (b",Anna,,,", "uid: must be a whole number above 0"),
            (b"7,,x-17,,", "telegram_id: must be a text of digits"),
            (b"7,,,yes,", "lp1: must be true or false"),
            (b"7,,,,x-17", "time_active: must be a time like 2027-01-15T08:00:00Z (RFC 3339)"),
            (b"7,Anna", "has another number of cells than the header"),
            (b"7,\"x-17,,,", "has a quote that is not closed; a record is one line"),
            (b"7,\xff,,,", "is not UTF-8"),
        ] {
            assert_eq!(told(&reader, line), expected);
        }
        for (line, expected) in [
            (&b"x-17"[..], "is not an object of JSON"),
            (b"[7]", "is not an object of JSON"),
            (br#"{"uid": 7, "x-17": 1}"#, "has a field that members do not have"),
            (br#"{"uid": "7"}"#, "uid: must be a whole number above 0"),
            (br#"{"uid": 7, "addr": 17}"#, "addr: must be a text of 1 to 200 characters without control characters"),
        ] {
            assert_eq!(told(&Reader::Ndjson, line), expected);
        }
    }

    #[test]
    fn a_header_that_would_have_every_line_misread_is_refused() {
        for (header, expected) in [
            ("uid,x-17", "column 2 of the first line is none of uid, link,"),
            ("name,link", "has no uid"),
            ("uid,name,uid", "uid twice"),
            ("", "has no uid"),
            ("7,Anna", "column 1"),
        ] {
            let refused = Reader::new(FileFormat::Csv, header.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(expected) && !refused.contains("x-17"), "{header}: {refused}");
        }
    }

    #[test]
    fn lines_are_counted_and_a_long_one_is_passed_over() {
        let text = format!("\u{feff}first\r\n\n{}\nlast, ", "x".repeat(200_000));
        let mut lines = Lines::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line);
        }
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(all, [whole("first"), whole(""), Line::TooLong, whole("last, ")]);
        assert_eq!((lines.number, lines.bytes), (4, text.len() as u64));
    }
}

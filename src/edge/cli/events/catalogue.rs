//! `events catalogue`: what Pillarbox itself publishes, for whoever subscribes to it. It needs no installation.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::edge::cli::Exit;
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::{Printer, Row};
use crate::kernel::events::{CATALOGUE, Entry, catalogue_markdown};

/// A type as it is printed.
#[derive(Serialize)]
struct EntryBody {
    #[serde(rename = "type")]
    event_type: &'static str,
    version: i64,
    meaning: &'static str,
    aggregate: &'static str,
    source: &'static str,
    fields: Vec<FieldBody>,
    /// The data of one such event.
    example: Option<&'static RawValue>,
}

#[derive(Serialize)]
struct FieldBody {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    meaning: &'static str,
}

impl From<&'static Entry> for EntryBody {
    fn from(entry: &'static Entry) -> Self {
        let field = |field: &'static crate::kernel::events::Field| FieldBody {
            name: field.name,
            kind: field.kind,
            meaning: field.meaning,
        };
        Self {
            event_type: entry.name,
            version: entry.version,
            meaning: entry.meaning,
            aggregate: entry.aggregate,
            source: entry.source,
            fields: entry.fields.iter().map(field).collect(),
            example: serde_json::from_str(entry.example).ok(),
        }
    }
}

impl Row for EntryBody {
    const HEADER: &'static [&'static str] = &["TYPE", "VERSION", "ABOUT", "FIELDS", "WHAT HAS HAPPENED"];

    fn cells(&self) -> Vec<String> {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        vec![
            self.event_type.to_owned(),
            self.version.to_string(),
            self.aggregate.to_owned(),
            fields.join(", "),
            self.meaning.to_owned(),
        ]
    }
}

/// Prints the catalogue, or the document that is made of it.
///
/// # Errors
/// Stdout's.
pub(super) fn print(markdown: bool, printed: Printed) -> anyhow::Result<Exit> {
    if markdown {
        io::stdout().lock().write_all(catalogue_markdown().as_bytes())?;
        return Ok(Exit::Ok);
    }
    let entries: Vec<EntryBody> = CATALOGUE.iter().map(EntryBody::from).collect();
    Printer::stdout(printed).list(&entries, "nothing is published")?;
    Ok(Exit::Ok)
}

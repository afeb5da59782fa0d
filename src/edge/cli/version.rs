//! `pillarbox version` and `pillarbox completions`: what this binary is, and what a shell should know of it.

use std::io::{self, Write};

use clap::CommandFactory;
use serde::Serialize;

use super::Exit;
use super::args::{Line, Location, Printed};
use crate::kernel::store::{newest_schema, schema_of, sqlite_version};

#[derive(Serialize)]
struct Version {
    version: &'static str,
    /// The schema version this binary writes.
    schema: i64,
    sqlite: &'static str,
    /// The schema version of the file, if a directory was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_schema: Option<i64>,
}

/// Prints the versions: text, since people paste it, unless JSON is asked for.
///
/// # Errors
/// The named directory has no database of ours, or stdout cannot be written.
pub(super) fn version(location: &Location, printed: Printed) -> anyhow::Result<Exit> {
    let file_schema = location.data_dir.as_deref().map(schema_of).transpose()?;
    let version =
        Version { version: env!("CARGO_PKG_VERSION"), schema: newest_schema(), sqlite: sqlite_version(), file_schema };
    let mut out = io::stdout().lock();
    if printed.json {
        writeln!(out, "{}", serde_json::to_string(&version)?)?;
        return Ok(Exit::Ok);
    }
    writeln!(out, "pillarbox {}\nschema {}\nsqlite {}", version.version, version.schema, version.sqlite)?;
    if let Some(found) = file_schema {
        writeln!(out, "file's schema {found}")?;
    }
    Ok(Exit::Ok)
}

/// Prints the completions of `shell`.
///
/// # Errors
/// Stdout cannot be written.
pub(super) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "pillarbox", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Ok)
}

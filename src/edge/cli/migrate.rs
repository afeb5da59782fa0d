//! `pillarbox migrate`: the schema brought up to date by hand, or its versions told.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Exit;
use super::args::{Location, MigrateArgs};
use super::beside::take;
use super::print::Printer;
use crate::config::{Config, StoreConfig};
use crate::kernel::store::{Access, OpenError, Shell, newest_schema};

/// The versions, before and after.
#[derive(Serialize)]
struct Migrated {
    /// The database's directory.
    data_dir: PathBuf,
    /// `null` when there was no database.
    from: Option<i64>,
    to: i64,
    /// The copy of the file as it was before.
    copy: Option<PathBuf>,
}

/// The versions, as they are.
#[derive(Serialize)]
struct Status {
    data_dir: PathBuf,
    /// The file's; `null` when there is no database.
    found: Option<i64>,
    /// This binary's.
    known: i64,
}

/// Migrates, or says what there is to migrate.
///
/// # Errors
/// The configuration's, or [`OpenError`], whose text says what to do.
pub(super) async fn run(location: &Location, args: MigrateArgs) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(&args.overrides.set))?;
    let (found, known) = (found_version(&config.store)?, newest_schema());
    let data_dir = config.store.data_dir.clone();
    let mut printer = Printer::stdout(args.printed);
    if args.status {
        let text = status_text(&data_dir, found, known);
        printer.one(&Status { data_dir, found, known }, &text)?;
        return Ok(Exit::Ok);
    }
    let db = take(&config, "migrate")?;
    let copy = db.migration_copy().map(Path::to_path_buf);
    db.close().await;
    let text = match (found, &copy) {
        (None, _) => format!("made a database in {} at schema version {known}", data_dir.display()),
        (Some(from), _) if from == known => format!("nothing to do: the schema is at version {known} already"),
        (Some(from), Some(copy)) => {
            format!("schema version {from} -> {known}; a copy of the file before that is {}", copy.display())
        }
        (Some(from), None) => format!("schema version {from} -> {known}"),
    };
    printer.one(&Migrated { data_dir, from: found, to: known, copy }, &text)?;
    Ok(Exit::Ok)
}

fn status_text(data_dir: &Path, found: Option<i64>, known: i64) -> String {
    match found {
        None => format!("no database in {} yet; this binary makes schema version {known}", data_dir.display()),
        Some(found) if found == known => format!("schema version {found}, as this binary has it; nothing to do"),
        Some(found) => format!("schema version {found}, this binary has {known}; `pillarbox migrate` brings it there"),
    }
}

/// The schema version of the file; `None` if there is none.
pub(super) fn found_version(store: &StoreConfig) -> Result<Option<i64>, OpenError> {
    match Shell::open(&store.data_dir, Access::Read, store.busy_timeout) {
        Ok(shell) => shell.schema_version().map(Some),
        Err(OpenError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

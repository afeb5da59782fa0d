//! The schema's history: numbered files, applied in order, each in one transaction, counted by `user_version`.
//!
//! Append only. Before the first pending one of an existing file a copy of it is kept in `backups/`, since a schema
//! cannot be taken back.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::open::explain;
use super::{OpenError, StoreError, private};
use crate::kernel::clock::UnixMs;

/// Every migration there is. The number of the last one is the schema version this binary writes.
const ALL: &[M<'static>] = &[
    M::up(include_str!("../../../schema/0001_bot.sql")),
    M::up(include_str!("../../../schema/0002_chat.sql")),
    M::up(include_str!("../../../schema/0003_backend_calls.sql")),
    M::up(include_str!("../../../schema/0004_housekeeping.sql")),
    M::up(include_str!("../../../schema/0005_leads.sql")),
    M::up(include_str!("../../../schema/0006_webhooks.sql")),
    M::up(include_str!("../../../schema/0007_bot.sql")),
];

/// The schema version this binary writes.
pub fn newest() -> i64 {
    i64::try_from(ALL.len()).unwrap_or(i64::MAX)
}

/// Brings the file up to [`newest`]. Returns the copy that was made before, if one was needed.
pub(super) fn apply(conn: &mut Connection, file: &Path, now: UnixMs) -> Result<Option<PathBuf>, OpenError> {
    apply_all(ALL, conn, file, now)
}

fn apply_all(all: &[M<'_>], conn: &mut Connection, file: &Path, now: UnixMs) -> Result<Option<PathBuf>, OpenError> {
    let from = version(conn).map_err(|error| explain(error, file))?;
    let newest = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if from >= newest {
        return Ok(None);
    }
    let copy = if from > 0 { Some(keep_copy(conn, file, from, now)?) } else { None };
    let migrations = Migrations::from_slice(all);
    for step in from + 1..=newest {
        let target = usize::try_from(step).unwrap_or(usize::MAX);
        migrations.to_version(conn, target).map_err(|error| OpenError::Migration { step, error: Box::new(error) })?;
    }
    Ok(copy)
}

/// The schema version of an open file.
pub(super) fn version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// `VACUUM INTO` reads one snapshot and needs no pause of writers; a stepped backup restarts at every write. The copy
/// has its name only once it is whole, and is as private as the file it was made of. What is left of copies that a
/// process did not live to finish goes first: each is as large as the database.
fn keep_copy(conn: &Connection, file: &Path, from: i64, now: UnixMs) -> Result<PathBuf, OpenError> {
    let backups = file.with_file_name("backups");
    let unusable = |error| OpenError::unusable(&backups, error);
    private::make_directory(&backups).and_then(|()| remove_unfinished(&backups)).map_err(unusable)?;
    let copy = backups.join(format!("before-{:04}-{now}.db", from + 1));
    let unfinished = copy.with_extension("tmp");
    let made = private::make_file(&unfinished).map_err(unusable).and_then(|()| {
        let copied = conn.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()]);
        copied.map_err(|error| explain(error.into(), &unfinished))?;
        std::fs::File::open(&unfinished).and_then(|file| file.sync_all()).map_err(unusable)?;
        std::fs::rename(&unfinished, &copy).map_err(unusable)
    });
    if made.is_err() {
        // Half a copy helps nobody, and the disk may be full because of it.
        let _ = std::fs::remove_file(&unfinished);
    }
    made.map(|()| copy)
}

/// With the journals that SQLite keeps beside them. Whoever is here holds the process lock: nobody is making one.
fn remove_unfinished(backups: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(backups)? {
        let path = entry?.path();
        let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("before-"));
        if is_ours && path.extension().is_some_and(|end| end.to_string_lossy().starts_with("tmp")) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use rusqlite::Connection;
    use rusqlite_migration::M;

    use super::{OpenError, apply_all, version};

    const FIRST: &str = "CREATE TABLE notes (body TEXT NOT NULL) STRICT;";

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn at_version_one(dir: &Path) -> Connection {
        let mut conn = Connection::open(dir.join("pillarbox.db")).unwrap();
        assert_eq!(
            apply_all(&[M::up(FIRST)], &mut conn, &dir.join("pillarbox.db"), 7).unwrap(),
            None,
            "there was nothing to copy"
        );
        conn.execute("INSERT INTO notes (body) VALUES ('kept')", []).unwrap();
        conn
    }

    #[test]
    fn a_private_copy_is_kept_before_an_existing_file_is_migrated() {
        let dir = tempfile::tempdir().unwrap();
        let mut conn = at_version_one(dir.path());
        let all = [M::up(FIRST), M::up("ALTER TABLE notes ADD COLUMN at INTEGER"), M::up("CREATE TABLE more (a)")];
        std::fs::create_dir(dir.path().join("backups")).unwrap();
        std::fs::set_permissions(dir.path().join("backups"), std::fs::Permissions::from_mode(0o700)).unwrap();
        let unfinished = ["tmp", "tmp-journal"].map(|end| dir.path().join(format!("backups/before-0002-5.{end}")));
        for left in &unfinished {
            std::fs::write(left, "half a copy of a process that was ended").unwrap();
        }
        let copy = apply_all(&all, &mut conn, &dir.path().join("pillarbox.db"), 7).unwrap().unwrap();
        assert_eq!(copy, dir.path().join("backups/before-0002-7.db"));
        assert_eq!((mode(&copy), mode(copy.parent().unwrap())), (0o600, 0o700));
        assert!(!unfinished.iter().any(|left| left.exists()));
        assert_eq!(version(&conn).unwrap(), 3);
        let copied = Connection::open(copy).unwrap();
        assert_eq!(version(&copied).unwrap(), 1);
        let body: String = copied.query_row("SELECT body FROM notes", [], |row| row.get(0)).unwrap();
        assert_eq!(body, "kept");
        assert_eq!(
            apply_all(&all, &mut conn, &dir.path().join("pillarbox.db"), 8).unwrap(),
            None,
            "there is nothing left to do"
        );
    }

    #[test]
    fn a_failing_migration_is_rolled_back_and_names_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let mut conn = at_version_one(dir.path());
        let all = [M::up(FIRST), M::up("CREATE TABLE half (a); CREATE TABLE notes (a);")];
        let failed = apply_all(&all, &mut conn, &dir.path().join("pillarbox.db"), 7).unwrap_err();
        assert!(matches!(failed, OpenError::Migration { step: 2, .. }), "{failed}");
        assert_eq!(version(&conn).unwrap(), 1);
        assert!(conn.prepare("SELECT 1 FROM half").is_err());
        assert!(dir.path().join("backups/before-0002-7.db").exists());
    }
}

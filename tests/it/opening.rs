//! Opening a data directory: what is made, what is refused, and that what is refused is left as it is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pillarbox::kernel::store::{OpenError, Role, StoreError, newest_schema};
use rusqlite::Connection;

use crate::data_dir::{database, emit, open, shell, try_open, uids};
use crate::store_faults::Mount;

const OWNER: Role = Role::Owner("test");

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn refusal(dir: &Path, role: Role) -> OpenError {
    match try_open(dir, role) {
        Err(error) => error,
        Ok(_) => panic!("it was opened"),
    }
}

fn sum(file: &Path) -> String {
    shell("sha256sum < \"$1\"", file)
}

/// A closed store with one event.
async fn used_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
    dir
}

#[tokio::test]
async fn a_new_directory_is_private_and_ready() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("new").join("data");
    let db = open(&dir);
    assert_eq!(mode(&dir), 0o700);
    for file in ["pillarbox.db", "pillarbox.db-wal", "pillarbox.db-shm"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
    assert_eq!(db.migration_copy(), None);
    let pragmas = db.read(|tx| {
        let sql = "SELECT auto_vacuum, user_version, application_id, journal_mode
                   FROM pragma_auto_vacuum, pragma_user_version, pragma_application_id, pragma_journal_mode";
        tx.query_one::<(i64, i64, i64, String)>(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)))
    });
    assert_eq!(pragmas.await.unwrap(), (2, newest_schema(), 0x504C_4258, "wal".into()));
    db.close().await;
}

#[tokio::test]
async fn rights_of_others_on_an_existing_file_are_taken_away() {
    let dir = used_directory().await;
    std::fs::set_permissions(database(dir.path()), std::fs::Permissions::from_mode(0o644)).unwrap();
    let db = open(dir.path());
    assert_eq!(mode(&database(dir.path())), 0o600);
    assert_eq!(mode(&dir.path().join("pillarbox.db-wal")), 0o600);
    db.close().await;
}

#[test]
fn the_linked_sqlite_has_no_wal_reset_fault() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[tokio::test]
async fn a_second_owner_is_told_who_holds_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let refused = refusal(dir.path(), OWNER);
    assert!(matches!(refused, OpenError::Held { .. }));
    let text = refused.to_string();
    assert!(text.contains(&format!("pillarbox test, process {}", std::process::id())), "{text}");
    db.close().await;
    open(dir.path()).close().await;
}

#[tokio::test]
async fn a_guest_reads_and_writes_beside_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    let guest = try_open(dir.path(), Role::Guest).unwrap();
    assert_eq!(uids(&guest).await, [1]);
    guest.write(|tx| emit(tx, 2)).await.unwrap();
    guest.close().await;
    db.write(|tx| emit(tx, 3)).await.unwrap();
    assert_eq!(uids(&db).await, [1, 2, 3]);
    db.close().await;
}

#[tokio::test]
async fn a_guest_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(refusal(&dir.path().join("none"), Role::Guest), OpenError::Missing { .. }));
    std::fs::write(database(dir.path()), b"").unwrap();
    assert!(matches!(refusal(dir.path(), Role::Guest), OpenError::Missing { .. }));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(database(dir.path())).unwrap().len(), 0);
}

#[tokio::test]
async fn a_guest_does_not_migrate() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(database(dir.path())).unwrap();
    conn.pragma_update(None, "application_id", 0x504C_4258).unwrap();
    drop(conn);
    let before = sum(&database(dir.path()));
    let refused = refusal(dir.path(), Role::Guest);
    assert!(matches!(refused, OpenError::Older { found: 0, .. }), "{refused}");
    assert_eq!(sum(&database(dir.path())), before);
    let db = open(dir.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
}

#[test]
fn the_file_of_another_program_is_refused_and_left_alone() {
    for (id, expected) in [(77, 77), (0, 0)] {
        let dir = tempfile::tempdir().unwrap();
        let conn = Connection::open(database(dir.path())).unwrap();
        conn.pragma_update(None, "application_id", id).unwrap();
        conn.execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);").unwrap();
        drop(conn);
        let before = sum(&database(dir.path()));
        for role in [OWNER, Role::Guest] {
            let refused = refusal(dir.path(), role);
            assert!(matches!(refused, OpenError::Foreign { id, .. } if id == expected), "{refused}");
        }
        assert_eq!(sum(&database(dir.path())), before);
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let dir = used_directory().await;
    let conn = Connection::open(database(dir.path())).unwrap();
    conn.pragma_update(None, "user_version", newest_schema() + 1).unwrap();
    drop(conn);
    let before = sum(&database(dir.path()));
    for role in [OWNER, Role::Guest] {
        let refused = refusal(dir.path(), role);
        assert!(matches!(refused, OpenError::Newer { .. }), "{refused}");
    }
    assert_eq!(sum(&database(dir.path())), before);
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_alone() {
    let vandals = [
        "head -c 40000 /dev/urandom > \"$1\"",
        "printf hello > \"$1\"",
        "truncate -s 20000 \"$1\"",
        "truncate -s 300 \"$1\"",
        "dd if=/dev/urandom of=\"$1\" bs=4096 count=1 conv=notrunc",
        "dd if=/dev/urandom of=\"$1\" bs=4096 seek=1 count=40 conv=notrunc",
    ];
    for vandal in vandals {
        let dir = used_directory().await;
        shell(vandal, &database(dir.path()));
        let before = sum(&database(dir.path()));
        for role in [OWNER, Role::Guest] {
            let refused = refusal(dir.path(), role);
            assert!(matches!(refused, OpenError::Damaged { .. }), "{vandal}: {refused}");
        }
        assert_eq!(sum(&database(dir.path())), before, "{vandal}");
    }
}

#[tokio::test]
async fn an_empty_file_is_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(database(dir.path()), b"").unwrap();
    let db = open(dir.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
}

#[tokio::test]
async fn a_wal_whose_database_is_gone_is_kept() {
    for vandal in ["rm \"$1\"", "truncate -s 0 \"$1\""] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        db.write(|tx| emit(tx, 1)).await.unwrap();
        let left = tempfile::tempdir().unwrap();
        shell(&format!("cp \"$1\" \"$1\"-wal {}", left.path().display()), &database(dir.path()));
        db.close().await;
        let (file, wal) = (database(left.path()), left.path().join("pillarbox.db-wal"));
        shell(vandal, &file);
        let before = sum(&wal);
        let refused = refusal(left.path(), OWNER);
        assert!(matches!(refused, OpenError::Damaged { .. }), "{vandal}: {refused}");
        assert_eq!(sum(&wal), before, "{vandal}");
    }
}

#[tokio::test]
async fn a_read_only_file_system_is_named() {
    let Some(mount) = Mount::tmpfs("8m") else { return };
    let db = open(mount.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
    mount.remount("ro");
    let refused = refusal(mount.path(), OWNER);
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused}");
    let refused = refusal(mount.path(), Role::Guest);
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused}");
    mount.remount("rw");
    let db = open(mount.path());
    assert_eq!(uids(&db).await, [1]);
    db.close().await;
}

#[tokio::test]
async fn what_cannot_be_a_data_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, b"x").unwrap();
    let refused = refusal(&file, OWNER);
    assert!(matches!(&refused, OpenError::Directory { path, .. } if *path == file), "{refused}");
    assert!(refused.to_string().contains("not a directory"), "{refused}");
    let dangling = dir.path().join("a-link");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    let refused = refusal(&dangling, OWNER);
    assert!(refused.to_string().contains("link to something that is not there"), "{refused}");
    std::fs::create_dir(database(dir.path())).unwrap();
    for role in [OWNER, Role::Guest, Role::Reader] {
        let refused = refusal(dir.path(), role).to_string();
        assert!(refused.contains("pillarbox.db: is a directory"), "{refused}");
    }
}

/// A journal of a change that had begun when its process died: of the very first, and of one to a whole database.
#[tokio::test]
async fn a_change_that_was_cut_off_is_taken_back_by_the_owner() {
    let first = tempfile::tempdir().unwrap();
    let journal = ["d9d505f920a163d7", "00000000", "12345678", "00000000", "00000200", "00001000"].concat();
    shell(
        &format!("printf {journal} | xxd -r -p > \"$1\"-journal; truncate -s 512 \"$1\"-journal"),
        &database(first.path()),
    );
    shell("head -c 4096 /dev/urandom > \"$1\"", &database(first.path()));
    let later = used_directory().await;
    let running = Connection::open(database(later.path())).unwrap();
    running.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN;").unwrap();
    for _ in 0..50 {
        let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid, payload)
                   VALUES ('registered', 2, json_object('filler', hex(zeroblob(8000))))";
        running.execute(sql, []).unwrap();
    }
    let left = tempfile::tempdir().unwrap();
    shell(&format!("cp \"$1\" \"$1\"-journal {}", left.path().display()), &database(later.path()));
    drop(running);
    for (dir, expected) in [(first.path(), vec![]), (left.path(), vec![1])] {
        for role in [Role::Guest, Role::Reader] {
            let refused = refusal(dir, role);
            assert!(matches!(refused, OpenError::Unfinished { .. }), "{refused}");
        }
        let db = open(dir);
        assert_eq!(uids(&db).await, expected);
        db.write(|tx| emit(tx, 3)).await.unwrap();
        db.close().await;
    }
}

#[tokio::test]
async fn a_database_with_two_names_is_refused() {
    for vandal in
        ["mv \"$1\" \"$1\".real; ln -s \"$1\".real \"$1\"", "ln \"$1\" \"$1\".second", "ln -sf nowhere \"$1\""]
    {
        let dir = used_directory().await;
        shell(vandal, &database(dir.path()));
        for role in [OWNER, Role::Guest, Role::Reader] {
            let refused = refusal(dir.path(), role);
            assert!(matches!(refused, OpenError::Linked { .. }), "{vandal}: {refused}");
        }
    }
}

async fn reads_and_refuses_writes(dir: &Path, expected: &[i64]) {
    let reader = try_open(dir, Role::Reader).unwrap();
    assert_eq!(uids(&reader).await, expected);
    assert!(matches!(reader.write(|tx| emit(tx, 9)).await, Err(StoreError::ReadOnly)));
    assert!(matches!(reader.settle(|tx| emit(tx, 9)).await, Err(StoreError::ReadOnly)));
    assert!(matches!(reader.probe().await, Err(StoreError::ReadOnly)));
    reader.close().await;
}

#[tokio::test]
async fn a_reader_needs_neither_room_nor_the_right_to_write() {
    let Some(mount) = Mount::tmpfs("8m") else { return };
    let db = open(mount.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    let filler = mount.fill("filler", 0);
    reads_and_refuses_writes(mount.path(), &[1]).await;
    db.close().await;
    let files = || shell("ls -A \"${1%/*}\"", &database(mount.path()));
    let before = files();
    reads_and_refuses_writes(mount.path(), &[1]).await;
    mount.remount("ro");
    reads_and_refuses_writes(mount.path(), &[1]).await;
    assert_eq!(files(), before, "it makes nothing");
    mount.remount("rw");
    std::fs::remove_file(filler).unwrap();
}

/// What a server that died has left, on a file system that its kernel has made read-only.
#[tokio::test]
async fn a_reader_reads_the_wal_of_a_dead_server_on_a_read_only_disk() {
    let Some(mount) = Mount::tmpfs("8m") else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    shell(&format!("cp \"$1\" \"$1\"-wal \"$1\"-shm {}", mount.path().display()), &database(dir.path()));
    db.close().await;
    mount.remount("ro");
    reads_and_refuses_writes(mount.path(), &[1]).await;
}

/// A reader that holds no lock must not answer what it read beside somebody who writes.
#[tokio::test]
async fn a_reader_of_a_resting_file_notices_who_opens_it() {
    let dir = used_directory().await;
    let reader = try_open(dir.path(), Role::Reader).unwrap();
    assert_eq!(uids(&reader).await, [1]);
    let db = open(dir.path());
    db.write(|tx| emit(tx, 2)).await.unwrap();
    let read = reader.read(|tx| tx.query_one::<i64>("SELECT 1", [], |row| row.get(0))).await;
    assert!(matches!(read, Err(StoreError::Busy)), "{read:?}");
    reader.close().await;
    reads_and_refuses_writes(dir.path(), &[1, 2]).await;
    db.close().await;
}

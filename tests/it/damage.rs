//! Files that somebody else changed, moved or removed under a running store: it writes no more, says so, and leaves them
//! as they are.

use std::path::Path;
use std::time::Duration;

use pillarbox::kernel::store::{Db, OpenError, Role, StoreError};

use crate::data_dir::{bytes_of, commits_in_wal, database, emit, emit_large, open, shell, try_open, uids, until};

fn sum(file: &Path) -> String {
    shell("sha256sum < \"$1\"", file)
}

/// Enough that most of it has been moved from the WAL into the file.
async fn filled(dir: &Path) -> Db {
    let db = open(dir);
    for uid in 0..200 {
        db.write(move |tx| (0..4).try_for_each(|n| emit_large(tx, uid * 4 + n))).await.unwrap();
    }
    let in_file = async || std::fs::metadata(database(dir)).unwrap().len() > 4 << 20;
    until("a checkpoint has moved the events into the file", in_file).await;
    // The writer checkpoints between two batches, so once it answers, the checkpoint has ended: one that still ran would
    // write over the damage.
    db.probe().await.unwrap();
    db
}

/// Lets the vandal at the file, and looks at what the store does then.
async fn survives(vandal: &str) {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    shell(vandal, &database(dir.path()));
    refuses_everything_and_leaves(vandal, dir.path(), db, is_damaged).await;
}

/// The same of a vandal who leaves every file whole, but not where it was.
async fn survives_without(vandal: &str) {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    shell(vandal, &database(dir.path()));
    refuses_everything_and_leaves(vandal, dir.path(), db, is_displaced).await;
}

fn is_damaged(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged)
}

fn is_displaced(error: &StoreError) -> bool {
    matches!(error, StoreError::Displaced)
}

async fn refuses_everything_and_leaves(vandal: &str, dir: &Path, db: Db, is_it: fn(&StoreError) -> bool) {
    let file = database(dir);
    let left = file.exists().then(|| sum(&file));
    // Under load, which would checkpoint soon.
    let took = until(vandal, async || db.write(|tx| emit(tx, 1)).await.is_err_and(|error| is_it(&error))).await;
    assert!(took < Duration::from_secs(2), "{vandal}: {took:?}");
    assert!(db.probe().await.is_err_and(|error| is_it(&error)), "{vandal}");
    let settled = tokio::time::timeout(Duration::from_secs(2), db.settle(|tx| emit(tx, 2))).await.unwrap();
    assert!(settled.is_err_and(|error| is_it(&error)), "{vandal}");
    let wal = dir.join("pillarbox.db-wal");
    let wal_before = wal.exists().then(|| bytes_of(&wal));
    db.close().await;
    drop(db);
    assert_eq!(file.exists().then(|| sum(&file)), left, "{vandal}: the file was touched");
    assert_eq!(wal.exists().then(|| bytes_of(&wal)), wal_before, "{vandal}: the WAL was touched");
    if wal_before.is_some() {
        assert!(commits_in_wal(dir) > 0, "{vandal}");
    }
}

#[tokio::test]
async fn a_file_cut_to_half() {
    survives("truncate -s $(( $(stat -c %s \"$1\") / 2 )) \"$1\"").await;
}

#[tokio::test]
async fn a_file_cut_by_one_page() {
    survives("truncate -s -4096 \"$1\"").await;
}

#[tokio::test]
async fn a_file_cut_to_nothing() {
    survives("truncate -s 0 \"$1\"").await;
}

#[tokio::test]
async fn a_file_overwritten_with_garbage() {
    survives("dd if=/dev/urandom of=\"$1\" bs=4096 count=$(( $(stat -c %s \"$1\") / 4096 )) conv=notrunc").await;
}

#[tokio::test]
async fn a_file_with_garbage_in_its_middle() {
    survives("dd if=/dev/urandom of=\"$1\" bs=4096 seek=400 count=200 conv=notrunc").await;
}

#[tokio::test]
async fn a_file_with_garbage_in_its_first_page() {
    survives("dd if=/dev/urandom of=\"$1\" bs=4096 count=1 conv=notrunc").await;
}

#[tokio::test]
async fn a_file_that_another_was_copied_over() {
    survives("head -c 9000000 /dev/zero > \"$1\".other; cat \"$1\".other > \"$1\"").await;
}

#[tokio::test]
async fn a_file_that_was_moved_away() {
    survives_without("mv \"$1\" \"$1\".gone").await;
}

#[tokio::test]
async fn a_file_that_another_was_moved_over() {
    survives_without("cp \"$1\" \"$1\".other; mv \"$1\".other \"$1\"").await;
}

#[tokio::test]
async fn a_wal_that_was_removed() {
    survives_without("rm \"$1\"-wal").await;
}

#[tokio::test]
async fn a_shared_memory_that_was_removed() {
    survives_without("rm \"$1\"-shm").await;
}

#[tokio::test]
async fn a_lock_file_that_was_removed_or_replaced() {
    survives_without("rm \"${1%/*}/pillarbox.lock\"").await;
    survives_without("cd \"${1%/*}\"; cp pillarbox.lock other; mv other pillarbox.lock").await;
}

#[tokio::test]
async fn a_directory_that_was_moved_away() {
    let parent = tempfile::tempdir().unwrap();
    let (dir, gone) = (parent.path().join("data"), parent.path().join("gone"));
    let db = filled(&dir).await;
    std::fs::rename(&dir, &gone).unwrap();
    refuses_everything_and_leaves("mv", &dir, db, is_displaced).await;
    let db = open(&gone);
    assert!(uids(&db).await.len() >= 800, "all that was acknowledged went with it");
    db.close().await;
}

#[tokio::test]
async fn a_second_server_does_not_start_although_the_lock_file_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    shell("rm \"${1%/*}/pillarbox.lock\"", &database(dir.path()));
    let second = try_open(dir.path(), Role::Owner("second")).map(|_| ());
    assert!(matches!(second, Err(OpenError::Held { .. })), "{second:?}");
    db.close().await;
    open(dir.path()).close().await;
}

/// All of it is in the WAL as well, so SQLite itself would never meet the garbage, and write over it.
#[tokio::test]
async fn a_young_file_overwritten_with_garbage() {
    for vandal in [
        "dd if=/dev/urandom of=\"$1\" bs=4096 count=$(( $(stat -c %s \"$1\") / 4096 )) conv=notrunc",
        "dd if=/dev/urandom of=\"$1\" bs=4096 seek=1 count=$(( $(stat -c %s \"$1\") / 4096 - 1 )) conv=notrunc",
        "truncate -s 0 \"$1\"",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        db.write(|tx| emit(tx, 1)).await.unwrap();
        shell(vandal, &database(dir.path()));
        refuses_everything_and_leaves(vandal, dir.path(), db, is_damaged).await;
    }
}

/// Writes until a write is refused, and answers what one more is told.
async fn write_until_refused(db: Db, n: i64) -> Result<(), StoreError> {
    while db.write(move |tx| emit_large(tx, n)).await.is_ok() {}
    db.write(move |tx| emit(tx, n)).await
}

/// With checkpoints going on all the time. What is done while one runs may be written over by it, or be taken for its own
/// work: that is the window which the guard's doc names. So the vandal comes again, as decay of a disk would.
#[tokio::test]
async fn a_file_damaged_under_load() {
    for vandal in [
        "truncate -s $(( $(stat -c %s \"$1\") / 2 )) \"$1\"",
        "dd if=/dev/urandom of=\"$1\" bs=4096 count=1000 conv=notrunc",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(dir.path()).await;
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..4 {
            writers.spawn(write_until_refused(db.clone(), n));
        }
        let stopped = writers.join_all();
        tokio::pin!(stopped);
        let mut ended = None;
        for _ in 0..10 {
            let file = database(dir.path());
            tokio::task::spawn_blocking(move || shell(vandal, &file)).await.unwrap();
            if let Ok(answers) = tokio::time::timeout(Duration::from_secs(2), &mut stopped).await {
                ended = Some(answers);
                break;
            }
        }
        for last in ended.expect(vandal) {
            assert!(matches!(last, Err(StoreError::Damaged)), "{vandal}: {last:?}");
        }
        let left = sum(&database(dir.path()));
        db.close().await;
        drop(db);
        assert_eq!(sum(&database(dir.path())), left, "{vandal}");
    }
}

#[tokio::test]
async fn a_store_closed_right_after_the_damage_leaves_it_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    shell("dd if=/dev/urandom of=\"$1\" bs=4096 count=300 conv=notrunc", &database(dir.path()));
    let left = sum(&database(dir.path()));
    db.close().await;
    drop(db);
    assert_eq!(sum(&database(dir.path())), left);
    assert!(commits_in_wal(dir.path()) > 0);
}

#[tokio::test]
async fn a_store_dropped_after_the_damage_leaves_it_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    shell("dd if=/dev/urandom of=\"$1\" bs=4096 count=300 conv=notrunc", &database(dir.path()));
    let left = sum(&database(dir.path()));
    drop(db);
    until("the lock is free", async || {
        let lock = pillarbox::kernel::store::ProcessLock::acquire(dir.path(), "test");
        lock.is_ok()
    })
    .await;
    assert_eq!(sum(&database(dir.path())), left);
    assert!(commits_in_wal(dir.path()) > 0);
}

#[tokio::test]
async fn a_file_that_was_only_touched_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    shell("touch \"$1\"", &database(dir.path()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    db.write(|tx| emit(tx, -1)).await.unwrap();
    db.probe().await.unwrap();
    assert_eq!(uids(&db).await.len(), 801);
    db.close().await;
}

#[tokio::test]
async fn a_row_that_breaks_a_check_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    let unchecked = "PRAGMA ignore_check_constraints = ON;
        INSERT INTO broker_leads (phone, created_at, tracking, notification_attempt_count) VALUES ('1', -5, 'no', -1);";
    stranger.execute_batch(unchecked).unwrap();
    drop(stranger);
    // Its commit has been seen; the change of the file that follows is nobody's, so that it is read through.
    until("the row is seen", async || db.probe().await.is_ok()).await;
    shell("touch \"$1\"", &database(dir.path()));
    tokio::time::sleep(Duration::from_millis(250)).await;
    db.probe().await.unwrap();
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
}

#[tokio::test]
async fn a_checkpoint_of_a_stranger_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    for uid in 0..50 {
        db.write(move |tx| emit(tx, uid)).await.unwrap();
        stranger.execute("INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', 1)", []).unwrap();
        stranger.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    }
    drop(stranger);
    tokio::time::sleep(Duration::from_millis(250)).await;
    db.probe().await.unwrap();
    assert_eq!(uids(&db).await.len(), 900);
    db.close().await;
}

/// The file is shorter than before, and than the database needs by then: the rest is in the WAL.
#[tokio::test]
async fn a_vacuum_of_a_stranger_under_load_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path()).await;
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    stranger.busy_timeout(Duration::from_secs(5)).unwrap();
    stranger.execute_batch("DELETE FROM bot_event_outbox; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    for uid in 0..300 {
        db.write(move |tx| emit_large(tx, uid)).await.unwrap();
    }
    drop(stranger);
    tokio::time::sleep(Duration::from_millis(250)).await;
    db.probe().await.unwrap();
    assert_eq!(uids(&db).await.len(), 300);
    db.close().await;
}

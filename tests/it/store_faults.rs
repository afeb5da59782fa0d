//! What the world does to the store: a full disk, a disk that refuses writes, another process with the write lock.
//! Nothing that was acknowledged is lost, what is finished lands, and no restart is needed once the cause is gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pillarbox::kernel::store::{Db, Role, Settings, StoreError};
use tokio::task::JoinSet;

use crate::data_dir::{database, emit, emit_large, open, open_with, settings, shell, shell_can, uids, until};

const MIB: u64 = 1 << 20;

/// A small file system of its own, unmounted when dropped.
pub(crate) struct Mount {
    dir: tempfile::TempDir,
}

impl Mount {
    /// `None`, said on stderr, where mounting is not permitted.
    pub(crate) fn tmpfs(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = shell_can(&format!("mount -t tmpfs -o size={size},mode=700 tmpfs \"$1\""), dir.path());
        if !mounted {
            eprintln!("skipped: mounting a tmpfs is not permitted here");
        }
        mounted.then_some(Self { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn remount(&self, how: &str) {
        shell(&format!("mount -o remount,{how} \"$1\""), self.path());
    }

    /// Takes all but `spare` of the bytes that are free now, into a file of this name.
    pub(crate) fn fill(&self, name: &str, spare: u64) -> PathBuf {
        let filler = self.path().join(name);
        let free = "$(stat -f -c '%a * %S' \"${1%/*}\")";
        shell(&format!("head -c $(( {free} - {spare} )) /dev/zero > \"$1\" || true"), &filler);
        filler
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a test that failed may still have the database open.
        shell_can("umount --lazy \"$1\"", self.path());
    }
}

fn with_reserve() -> Settings {
    Settings { min_free: 8 * MIB, ballast: 4 * MIB, ..settings() }
}

async fn lay_ballast(dir: &Path) {
    let laid = async || std::fs::metadata(dir.join("ballast")).is_ok_and(|meta| meta.len() == 4 * MIB);
    until("the ballast is laid", laid).await;
}

/// Writes until that is refused; what was told to be stored, and the refusal.
async fn write_until_refused(db: &Db, from: i64) -> (Vec<i64>, StoreError) {
    let mut stored = Vec::new();
    for uid in from.. {
        match db.write(move |tx| emit(tx, uid)).await {
            Ok(()) => stored.push(uid),
            Err(error) => return (stored, error),
        }
    }
    unreachable!("the disk is finite")
}

#[tokio::test]
async fn a_full_disk_stops_intake_and_not_settles_and_heals_without_reopening() {
    let Some(mount) = Mount::tmpfs("48m") else { return };
    let db = open_with(mount.path(), &with_reserve());
    lay_ballast(mount.path()).await;
    // A little above the threshold; the writers come down to it themselves.
    let filler = [mount.fill("first", 9 * MIB), mount.path().join("rest")];
    let mut writers = JoinSet::new();
    for n in 1..=8 {
        let db = db.clone();
        writers.spawn(async move { write_until_refused(&db, n * 1_000_000).await });
    }
    let mut stored = Vec::new();
    while let Some(done) = writers.join_next().await {
        let (theirs, refused) = done.unwrap();
        assert!(matches!(refused, StoreError::DiskLow), "{refused:?}");
        stored.extend(theirs);
    }
    assert!(mount.path().join("ballast").exists());
    mount.fill("rest", 0);
    // The disk is full to the last byte. Settles fill what the WAL has left, then cost the ballast, and live on it.
    let ballast = mount.path().join("ballast");
    let mut after = 20;
    for uid in 0_i64..1_000 {
        let settled = db.settle(move |tx| emit_large(tx, uid));
        tokio::time::timeout(Duration::from_secs(10), settled).await.unwrap().unwrap();
        stored.push(uid);
        after -= i32::from(!ballast.exists());
        if after == 0 {
            break;
        }
    }
    assert!(!ballast.exists(), "the ballast was given up");
    // Longer than the writer takes to look around: the room that the ballast gave is not taken for free space.
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert!(db.is_low_on_disk());
    let refused = db.write(|tx| emit(tx, -1)).await;
    assert!(matches!(refused, Err(StoreError::DiskLow)), "{refused:?}");
    db.probe().await.unwrap();
    let kept = uids(&db).await;
    assert!(stored.iter().all(|uid| kept.contains(uid)), "what was acknowledged is there");
    filler.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    until("there is room again", async || db.write(|tx| emit(tx, -2)).await.is_ok()).await;
    lay_ballast(mount.path()).await;
    db.close().await;
    let db = open(mount.path());
    let kept = uids(&db).await;
    assert!(stored.iter().all(|uid| kept.contains(uid)), "also after a restart");
    assert_eq!(kept.len(), stored.len() + 1, "and nothing that was refused");
    db.close().await;
}

#[tokio::test]
async fn a_settle_outlives_a_disk_without_a_single_free_byte() {
    let Some(mount) = Mount::tmpfs("16m") else { return };
    let db = open(mount.path());
    db.write(|tx| emit(tx, 1)).await.unwrap();
    let filler = mount.fill("filler", 0);
    // No ballast here. The WAL cannot grow, nor can the database take what is in it.
    let (stored, refused) = write_until_refused(&db, 1_000).await;
    assert!(matches!(refused, StoreError::DiskFull | StoreError::Io), "{refused:?}");
    let settling = tokio::spawn({
        let db = db.clone();
        async move { db.settle(|tx| emit_large(tx, 2)).await }
    });
    until("the store is failing", async || db.probe().await.is_err()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!settling.is_finished());
    assert!(uids(&db).await.contains(&1), "reads go on");
    std::fs::remove_file(filler).unwrap();
    tokio::time::timeout(Duration::from_secs(10), settling).await.unwrap().unwrap().unwrap();
    until("intake works again", async || db.write(|tx| emit(tx, 3)).await.is_ok()).await;
    let mut expected = vec![1, 2, 3];
    expected.extend(stored);
    let mut kept = uids(&db).await;
    kept.sort_unstable();
    expected.sort_unstable();
    assert_eq!(kept, expected);
    db.close().await;
}

#[tokio::test]
async fn a_store_opens_on_a_full_disk_by_giving_up_the_ballast() {
    let Some(mount) = Mount::tmpfs("32m") else { return };
    let db = open_with(mount.path(), &with_reserve());
    lay_ballast(mount.path()).await;
    db.write(|tx| emit(tx, 1)).await.unwrap();
    db.close().await;
    let filler = mount.fill("filler", 0);
    let db = open_with(mount.path(), &with_reserve());
    db.settle(|tx| emit(tx, 2)).await.unwrap();
    assert!(matches!(db.write(|tx| emit(tx, 3)).await, Err(StoreError::DiskLow)));
    assert_eq!(uids(&db).await, [1, 2]);
    std::fs::remove_file(filler).unwrap();
    until("there is room again", async || db.write(|tx| emit(tx, 4)).await.is_ok()).await;
    db.close().await;
}

#[tokio::test]
async fn a_settle_that_cannot_land_ends_when_the_store_is_closed() {
    let Some(mount) = Mount::tmpfs("16m") else { return };
    let db = open(mount.path());
    mount.fill("filler", 0);
    let (_, refused) = write_until_refused(&db, 0).await;
    assert!(refused.is_transient());
    let settling = tokio::spawn({
        let db = db.clone();
        async move { db.settle(|tx| emit_large(tx, -1)).await }
    });
    until("the store is failing", async || db.probe().await.is_err()).await;
    tokio::time::timeout(Duration::from_secs(5), db.close()).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), settling).await.unwrap().unwrap();
    assert!(matches!(ended, Err(StoreError::Closed)), "{ended:?}");
}

/// Linux refuses to remount a file system read-only while files on it are open for writing. What a server then meets
/// is a file system that its kernel has turned read-only by itself; an immutable WAL is refused in the same call.
#[tokio::test]
async fn a_disk_that_refuses_writes_is_named_and_heals_without_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let wal = dir.path().join("pillarbox.db-wal");
    db.write(|tx| emit(tx, 1)).await.unwrap();
    if !shell_can("chattr +i \"$1\"", &wal) {
        eprintln!("skipped: files cannot be made immutable here");
        return;
    }
    let refused = db.write(|tx| emit(tx, 2)).await;
    let probed = db.probe().await;
    let settling = tokio::spawn({
        let db = db.clone();
        async move { db.settle(|tx| emit(tx, 3)).await }
    });
    let read = uids(&db).await;
    shell("chattr -i \"$1\"", &wal);
    if refused.is_ok() {
        eprintln!("skipped: this file system lets open files be written although they are immutable");
        return;
    }
    assert!(matches!(refused, Err(StoreError::Io | StoreError::ReadOnly)), "{refused:?}");
    assert!(matches!(probed, Err(StoreError::Io | StoreError::ReadOnly)), "{probed:?}");
    assert_eq!(read, [1], "reads go on");
    tokio::time::timeout(Duration::from_secs(10), settling).await.unwrap().unwrap().unwrap();
    db.write(|tx| emit(tx, 4)).await.unwrap();
    db.probe().await.unwrap();
    assert_eq!(uids(&db).await, [1, 3, 4]);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_with_the_write_lock_makes_writes_busy_in_bounded_time_and_settles_late() {
    let dir = tempfile::tempdir().unwrap();
    let busy_timeout = Duration::from_millis(300);
    let db = open_with(dir.path(), &Settings { busy_timeout, ..settings() });
    db.write(|tx| emit(tx, 1)).await.unwrap();
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let settling = tokio::spawn({
        let db = db.clone();
        async move { db.settle(|tx| emit(tx, 2)).await }
    });
    let begun = Instant::now();
    let refused = db.write(|tx| emit(tx, 3)).await;
    assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(matches!(db.probe().await, Err(StoreError::Busy)));
    assert_eq!(uids(&db).await, [1], "reads do not wait");
    assert!(!settling.is_finished());
    stranger.execute_batch("ROLLBACK").unwrap();
    settling.await.unwrap().unwrap();
    db.write(|tx| emit(tx, 4)).await.unwrap();
    assert_eq!(uids(&db).await, [1, 2, 4]);
    drop(stranger);
    db.close().await;
}

#[tokio::test]
async fn a_guest_leaves_the_ballast_to_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let settings = Settings { ballast: 4 * MIB, ..settings() };
    let clock = pillarbox::kernel::clock::Clock::system();
    let guest = Db::open(dir.path(), Role::Guest, &settings, clock, vec![]).unwrap();
    guest.write(|tx| emit(tx, 1)).await.unwrap();
    guest.close().await;
    assert!(!dir.path().join("ballast").exists());
    db.close().await;
}

/// The log of a full disk is the state as well: whoever changes it says so. Ten ticks of the writer are looked at.
#[tokio::test]
async fn a_disk_that_stays_full_is_taken_for_full_until_there_is_room() {
    let Some(mount) = Mount::tmpfs("16m") else { return };
    let db = open(mount.path());
    let filler = mount.fill("filler", 0);
    let (_, refused) = write_until_refused(&db, 0).await;
    assert!(matches!(refused, StoreError::DiskFull), "{refused:?}");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        assert!(db.is_low_on_disk());
        let refused = db.write(|tx| emit_large(tx, 1)).await;
        assert!(matches!(refused, Err(StoreError::DiskLow)), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    std::fs::remove_file(filler).unwrap();
    until("there is room again", async || db.write(|tx| emit(tx, 2)).await.is_ok()).await;
    db.close().await;
}

#[tokio::test]
async fn what_has_the_name_of_the_ballast_and_is_no_file_stops_nothing() {
    for vandal in ["mkdir \"$1\"", "mkfifo \"$1\""] {
        let dir = tempfile::tempdir().unwrap();
        shell(vandal, &dir.path().join("ballast"));
        let db = open_with(dir.path(), &Settings { ballast: 1000, ..settings() });
        db.write(|tx| emit(tx, 1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(250)).await;
        tokio::time::timeout(Duration::from_secs(5), db.probe()).await.unwrap().unwrap();
        db.close().await;
    }
}

//! The store's two doors: shared commits, savepoints, wakes, snapshots, closing.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use pillarbox::kernel::clock::Clock;
use pillarbox::kernel::store::{Db, Role, StoreError, Wake};
use tokio::task::JoinSet;

use crate::data_dir::{
    Held, TOPIC, commits_in_wal, database, emit, open, open_with, settings, shell, shell_can, try_open, uids, until,
};

#[tokio::test]
async fn a_failing_or_panicking_write_leaves_its_neighbours_alone() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let held = Held::hold(&db).await;
    let mut tasks = JoinSet::new();
    for n in 0..300_i64 {
        let db = db.clone();
        tasks.spawn(async move {
            db.write(move |tx| {
                emit(tx, n)?;
                match n % 3 {
                    0 => Ok(n),
                    1 => Err(StoreError::NoRow),
                    _ => panic!("on purpose, write {n}"),
                }
            })
            .await
        });
    }
    held.let_go().await;
    let (mut kept, mut refused, mut panicked) = (0, 0, 0);
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok(Ok(_)) => kept += 1,
            Ok(Err(StoreError::NoRow)) => refused += 1,
            Err(failed) => {
                let said = failed.into_panic().downcast::<String>().unwrap();
                assert!(said.starts_with("on purpose, write "), "a panic of its own caller");
                panicked += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((kept, refused, panicked), (100, 100, 100));
    let written = uids(&db).await;
    assert_eq!((written.len(), written.iter().filter(|uid| *uid % 3 == 0).count()), (100, 100));
    let lanes = db.read(|tx| tx.query_one("SELECT count(*) FROM bot_event_lanes", [], |r| r.get::<_, i64>(0))).await;
    assert_eq!(lanes.unwrap(), 100);
    db.close().await;
}

#[tokio::test]
async fn writes_that_wait_share_one_commit_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    // The first commit, so that the WAL's header is there to be read.
    db.write(|tx| emit(tx, -1)).await.unwrap();
    let before = commits_in_wal(dir.path());
    let held = Held::hold(&db).await;
    let mut tasks = Vec::new();
    for n in 0..50_i64 {
        let db = db.clone();
        tasks.push(tokio::spawn(async move { db.write(move |tx| emit(tx, n)).await }));
        tokio::task::yield_now().await;
    }
    held.let_go().await;
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(commits_in_wal(dir.path()) - before, 1, "fifty writes, one commit");
    assert_eq!(uids(&db).await, (-1..50).collect::<Vec<_>>(), "first come, first served");
    db.close().await;
}

#[tokio::test]
async fn a_wake_fires_after_the_commit_and_never_for_what_was_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let (signal, other) = (db.subscribe(TOPIC), db.subscribe(Wake("other")));
    let is_set = async |signal: &tokio::sync::Notify| {
        tokio::time::timeout(Duration::from_millis(20), signal.notified()).await.is_ok()
    };
    let failed: Result<(), _> = db.write(|tx| emit(tx, 1).and(Err(StoreError::NoRow))).await;
    assert!(failed.is_err());
    let inner = |tx: &pillarbox::kernel::store::Tx<'_>| {
        let tried = tx.attempt(|| StoreError::Closed, || emit(tx, 2).and(Err::<(), _>(StoreError::NoRow)))?;
        assert!(tried.is_err());
        Ok::<_, StoreError>(())
    };
    db.write(inner).await.unwrap();
    assert!(!is_set(&signal).await);
    let held = Held::hold(&db).await;
    let writing = tokio::spawn({
        let db = db.clone();
        async move { db.write(|tx| emit(tx, 3)).await }
    });
    assert!(!is_set(&signal).await, "not before the commit");
    held.let_go().await;
    writing.await.unwrap().unwrap();
    assert!(is_set(&signal).await);
    assert!(!is_set(&signal).await, "once");
    assert!(!is_set(&other).await, "only those of its topic");
    db.close().await;
}

#[tokio::test]
async fn a_commit_of_another_connection_wakes_everybody_soon() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let signals = [db.subscribe(TOPIC), db.subscribe(Wake("other"))];
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    let mut slowest = Duration::ZERO;
    for n in 0..5 {
        stranger
            .execute("INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', ?1)", [n])
            .unwrap();
        let committed = Instant::now();
        for signal in &signals {
            tokio::time::timeout(Duration::from_secs(5), signal.notified()).await.unwrap();
        }
        slowest = slowest.max(committed.elapsed());
    }
    assert!(slowest < Duration::from_millis(500), "a tick is 100 ms, the rest is a busy machine: {slowest:?}");
    drop(stranger);
    db.close().await;
}

#[tokio::test]
async fn a_commit_of_another_process_wakes_everybody_soon() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    if !shell_can("command -v sqlite3", dir.path()) {
        eprintln!("skipped: there is no sqlite3 here");
        return;
    }
    let signal = db.subscribe(TOPIC);
    for uid in 0..20 {
        db.write(move |tx| emit(tx, uid)).await.unwrap();
        tokio::time::timeout(Duration::from_secs(1), signal.notified()).await.unwrap();
        let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', 7);";
        shell(&format!("sqlite3 \"$1\" \"{sql} PRAGMA wal_checkpoint;\""), &database(dir.path()));
        tokio::time::timeout(Duration::from_secs(1), signal.notified()).await.unwrap();
    }
    db.probe().await.unwrap();
    assert_eq!(uids(&db).await.len(), 40);
    db.close().await;
}

#[tokio::test]
async fn a_full_queue_refuses_new_work_and_not_the_finishing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open_with(dir.path(), &pillarbox::kernel::store::Settings { queue: 3, ..settings() });
    let held = Held::hold(&db).await;
    let mut waiting = JoinSet::new();
    for n in 0..3_i64 {
        let db = db.clone();
        waiting.spawn(async move { db.write(move |tx| emit(tx, n)).await });
        tokio::task::yield_now().await;
    }
    let refused = db.write(|tx| emit(tx, 9)).await;
    assert!(matches!(refused, Err(StoreError::QueueFull)), "{refused:?}");
    for n in 10..15_i64 {
        let db = db.clone();
        waiting.spawn(async move { db.settle(move |tx| emit(tx, n)).await });
        tokio::task::yield_now().await;
    }
    held.let_go().await;
    while let Some(done) = waiting.join_next().await {
        done.unwrap().unwrap();
    }
    assert_eq!(uids(&db).await, [0, 1, 2, 10, 11, 12, 13, 14]);
    db.close().await;
}

#[tokio::test]
async fn an_attempt_takes_back_only_what_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.write(|tx| {
        emit(tx, 1)?;
        let failed = tx.attempt(|| "panicked", || emit(tx, 2).map_err(|_| "store").and(Err::<(), _>("own")))?;
        assert_eq!(failed, Err("own"));
        let panicked = tx.attempt(
            || "panicked",
            || -> Result<(), &str> {
                emit(tx, 3).map_err(|_| "store")?;
                panic!("on purpose")
            },
        )?;
        assert_eq!(panicked, Err("panicked"));
        let nested = tx.attempt(
            || StoreError::Closed,
            || {
                emit(tx, 4)?;
                let inner = tx.attempt(|| StoreError::Closed, || emit(tx, 5).and(Err::<(), _>(StoreError::NoRow)))?;
                assert!(inner.is_err());
                Ok(())
            },
        )?;
        nested?;
        emit(tx, 6)
    })
    .await
    .unwrap();
    assert_eq!(uids(&db).await, [1, 4, 6]);
    db.close().await;
}

#[tokio::test]
async fn a_transaction_has_one_now() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::stopped_at(1_000);
    let db = Db::open(dir.path(), Role::Owner("test"), &settings(), clock.clone(), vec![]).unwrap();
    let moving = clock.clone();
    let seen = db
        .write(move |tx| {
            let before = tx.now();
            moving.advance(Duration::from_secs(1));
            Ok::<_, StoreError>((before, tx.now()))
        })
        .await;
    assert_eq!(seen.unwrap(), (1_000, 1_000));
    assert_eq!(db.read(|tx| Ok::<_, StoreError>(tx.now())).await.unwrap(), 2_000);
    db.close().await;
}

#[tokio::test]
async fn a_read_sees_one_snapshot_and_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let count = "SELECT count(*) FROM bot_event_outbox";
    let ((looked, has_looked), (go_on, may_go_on)) = (tokio::sync::oneshot::channel(), mpsc::channel::<()>());
    let reading = tokio::spawn({
        let db = db.clone();
        async move {
            db.read(move |tx| {
                let before: i64 = tx.query_one(count, [], |row| row.get(0))?;
                let _ = looked.send(());
                let _ = may_go_on.recv();
                let after: i64 = tx.query_one(count, [], |row| row.get(0))?;
                Ok::<_, StoreError>((before, after))
            })
            .await
        }
    });
    has_looked.await.unwrap();
    db.write(|tx| emit(tx, 1)).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), (0, 0));
    assert_eq!(uids(&db).await, [1]);
    let refused = db.read(|tx| emit(tx, 2)).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly)), "{refused:?}");
    let panicked = tokio::spawn({
        let db = db.clone();
        async move { db.read(|_| -> Result<(), StoreError> { panic!("on purpose") }).await }
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(uids(&db).await, [1], "the connection is given back without its transaction");
    db.close().await;
}

#[tokio::test]
async fn closing_does_what_waits_and_refuses_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let held = Held::hold(&db).await;
    let waiting = tokio::spawn({
        let db = db.clone();
        async move { db.write(|tx| emit(tx, 1)).await }
    });
    tokio::task::yield_now().await;
    let closing = tokio::spawn({
        let db = db.clone();
        async move { db.close().await }
    });
    tokio::task::yield_now().await;
    assert!(matches!(db.write(|tx| emit(tx, 2)).await, Err(StoreError::Closed)));
    assert!(matches!(db.settle(|tx| emit(tx, 3)).await, Err(StoreError::Closed)));
    held.let_go().await;
    waiting.await.unwrap().unwrap();
    closing.await.unwrap();
    let read = db.read(|tx| emit(tx, 4)).await;
    assert!(matches!(read, Err(StoreError::Closed)), "{read:?}");
    let wal = std::fs::metadata(dir.path().join("pillarbox.db-wal")).map_or(0, |meta| meta.len());
    assert_eq!(wal, 0, "everything is in the file");
    let again = try_open(dir.path(), Role::Owner("test")).unwrap();
    assert_eq!(uids(&again).await, [1]);
    again.close().await;
}

#[tokio::test]
async fn a_dropped_store_lets_go_of_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    // The last handle may well be dropped by a closure, on the writer thread itself.
    let inside = db.clone();
    db.write(move |tx| emit(tx, inside.boot().len().try_into().unwrap_or(0))).await.unwrap();
    drop(db);
    let mut again = None;
    until("the lock is free", async || {
        again = try_open(dir.path(), Role::Owner("test")).ok();
        again.is_some()
    })
    .await;
    let again = again.unwrap();
    assert_eq!(uids(&again).await.len(), 1);
    again.close().await;
}

#[tokio::test]
async fn a_reader_that_stays_does_not_stop_the_writers() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let stranger = rusqlite::Connection::open(database(dir.path())).unwrap();
    stranger.execute_batch("BEGIN; SELECT count(*) FROM bot_event_outbox;").unwrap();
    let next = Arc::new(AtomicI64::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..16 {
        let (db, next) = (db.clone(), Arc::clone(&next));
        writers.spawn(async move {
            for _ in 0..40 {
                let uid = next.fetch_add(1, Ordering::Relaxed);
                db.write(move |tx| emit(tx, uid)).await.unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    stranger.execute_batch("ROLLBACK").unwrap();
    drop(stranger);
    assert_eq!(uids(&db).await.len(), 640);
    db.close().await;
}

//! A data directory for a test: opening it, writing to it, and looking at its files the way a stranger does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pillarbox::kernel::clock::Clock;
use pillarbox::kernel::store::{Db, OpenError, Role, Settings, StoreError, Synchronous, Tx, Wake};

/// What `emit` wakes.
pub(crate) const TOPIC: Wake = Wake("test");

/// Small, and without a reserve of disk space.
pub(crate) fn settings() -> Settings {
    Settings {
        synchronous: Synchronous::Full,
        readers: 2,
        queue: 1024,
        busy_timeout: Duration::from_secs(5),
        cache: 8 << 20,
        min_free: 0,
        ballast: 0,
    }
}

/// Opens the directory. Other tests of this binary start processes, and a process that is being started has every open
/// file of ours for a moment, a lock that was just let go of too: so a held one is asked for again for a second.
pub(crate) fn try_open_with(dir: &Path, role: Role, settings: &Settings) -> Result<Db, OpenError> {
    let begun = Instant::now();
    loop {
        match Db::open(dir, role, settings, Clock::system(), vec![]) {
            Err(OpenError::Held { .. }) if begun.elapsed() < Duration::from_secs(1) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

pub(crate) fn try_open(dir: &Path, role: Role) -> Result<Db, OpenError> {
    try_open_with(dir, role, &settings())
}

pub(crate) fn open_with(dir: &Path, settings: &Settings) -> Db {
    try_open_with(dir, Role::Owner("test"), settings).unwrap()
}

pub(crate) fn open(dir: &Path) -> Db {
    open_with(dir, &settings())
}

/// The database, as a stranger sees it.
pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join("pillarbox.db")
}

/// One event of member `uid`.
pub(crate) fn emit(tx: &Tx<'_>, uid: i64) -> Result<(), StoreError> {
    tx.execute("INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', ?1)", [uid])?;
    tx.wake(TOPIC);
    Ok(())
}

/// One event that takes 16 KiB.
pub(crate) fn emit_large(tx: &Tx<'_>, uid: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid, payload)
               VALUES ('registered', ?1, json_object('filler', hex(zeroblob(8000))))";
    tx.execute(sql, [uid]).map(|_| ())
}

/// Whose events are in the file, in the order in which they were written.
pub(crate) async fn uids(db: &Db) -> Vec<i64> {
    let sql = "SELECT magnet_uid FROM bot_event_outbox ORDER BY id";
    db.read(move |tx| tx.query_all::<i64>(sql, [], |row| row.get(0))).await.unwrap()
}

/// Keeps the writer thread in a write until it is let go, so that what is asked meanwhile waits together.
pub(crate) struct Held {
    go: mpsc::Sender<()>,
    write: tokio::task::JoinHandle<Result<(), StoreError>>,
}

impl Held {
    pub(crate) async fn hold(db: &Db) -> Self {
        let (go, gone) = mpsc::channel::<()>();
        let (tell, told) = tokio::sync::oneshot::channel();
        let db = db.clone();
        let write = tokio::spawn(async move {
            db.write(move |_| {
                let _ = tell.send(());
                let _ = gone.recv();
                // Longer than a batch may run, so that what waits is not in this one.
                std::thread::sleep(Duration::from_millis(6));
                Ok(())
            })
            .await
        });
        told.await.unwrap();
        Self { go, write }
    }

    pub(crate) async fn let_go(self) {
        self.go.send(()).unwrap();
        self.write.await.unwrap().unwrap();
    }
}

/// Runs a command of the shell; its output. A process of its own: opening the database's files in this one would drop
/// the locks SQLite has on them.
pub(crate) fn shell(script: &str, file: &Path) -> String {
    let run = Command::new("sh").arg("-euc").arg(script).arg("sh").arg(file).output().unwrap();
    assert!(run.status.success(), "{script}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).trim().to_owned()
}

/// Whether a command can be run here at all, as with a mount that needs privileges.
pub(crate) fn shell_can(script: &str, file: &Path) -> bool {
    Command::new("sh").arg("-euc").arg(script).arg("sh").arg(file).output().is_ok_and(|run| run.status.success())
}

/// The bytes of a file, read by another process.
pub(crate) fn bytes_of(file: &Path) -> Vec<u8> {
    Command::new("cat").arg(file).output().unwrap().stdout
}

/// How many commits are in the WAL: frames of the current salt whose header has the database's size.
pub(crate) fn commits_in_wal(dir: &Path) -> usize {
    let wal = bytes_of(&dir.join("pillarbox.db-wal"));
    let page = usize::try_from(u32::from_be_bytes(wal[8..12].try_into().unwrap())).unwrap();
    let salt = &wal[16..24];
    let frames = wal[32..].chunks_exact(page + 24);
    frames.take_while(|frame| &frame[8..16] == salt).filter(|frame| frame[4..8] != [0; 4]).count()
}

/// Looks again and again until `condition` holds; how long that took. Panics after ten seconds.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < Duration::from_secs(10), "not within ten seconds: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

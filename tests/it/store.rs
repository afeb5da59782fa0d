//! The store's two doors: shared commits, savepoints, wakes, refusals at opening.

use std::time::Duration;

use pillarbox::kernel::clock::Clock;
use pillarbox::kernel::store::{Db, Role, Settings, StoreError, Synchronous, Tx, Wake};

fn settings() -> Settings {
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

fn emit(tx: &Tx<'_>, uid: i64) -> Result<i64, StoreError> {
    tx.execute("INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', ?1)", [uid])?;
    tx.wake(Wake("test"));
    Ok(tx.last_insert_id())
}

#[tokio::test]
async fn a_failing_or_panicking_write_leaves_its_neighbours_alone() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Role::Owner("test"), &settings(), Clock::system(), vec![]).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..300_i64 {
        let db = db.clone();
        tasks.spawn(async move {
            db.write(move |tx| {
                emit(tx, n)?;
                match n % 3 {
                    0 => Ok(()),
                    1 => Err(StoreError::NoRow),
                    _ => panic!("on purpose"),
                }
            })
            .await
        });
    }
    let mut kept = 0;
    while let Some(done) = tasks.join_next().await {
        kept += usize::from(matches!(done, Ok(Ok(()))));
    }
    assert_eq!(kept, 100);
    let rows = db.read(|tx| tx.query_one("SELECT count(*) FROM bot_event_outbox", [], |r| r.get::<_, i64>(0))).await;
    assert_eq!(rows.unwrap(), 100);
    let lanes = db.read(|tx| tx.query_one("SELECT count(*) FROM bot_event_lanes", [], |r| r.get::<_, i64>(0))).await;
    assert_eq!(lanes.unwrap(), 100);
    db.close().await;
}

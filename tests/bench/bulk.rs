//! Reminders and digests over a million people: a sweep must cost what is due, and a digest must not hold up who writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pillarbox::measured::Measured;
use rusqlite::Connection;

use crate::rounds::{Run, median};
use crate::table::{Goal, Line};

const MANY: i64 = 1_000_000;
const FEW: i64 = 10_000;
/// Reminders that are due in a measured sweep, which may queue as many.
const DUE: i64 = 1_000;
const LEADERS: i64 = 1_000;
/// Between two writes of whoever writes beside the digest.
const BESIDE: Duration = Duration::from_millis(5);
/// What a write may wait for the writer, and what the flush of its own commit may take besides.
const SLOWEST_MS: f64 = 50.0 + 50.0;

/// People of whom the first so many are silent, and all others were here just now. Numbers: people, silent, now.
const PEOPLE: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_users (telegram_id, lang, stage, last_activity_at)
    SELECT i, 'en', 1 + i % 8, CASE WHEN i <= ?2 THEN 1700000000000 + i ELSE ?3 END FROM n";
/// Leaders, and the people whom they brought. Numbers: leaders; people.
const CARDS: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) SELECT 100000000 + i, i, 'en', 9 FROM n";
const BROUGHT: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_users (telegram_id, leader_uid, stage) SELECT i, 1 + i % ?2, 1 + i % 9 FROM n";

pub(crate) fn measure_reminders(run: &mut Run) -> anyhow::Result<()> {
    let (many_dir, few_dir) = (run.dir.path().join("remind-many"), run.dir.path().join("remind-few"));
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    for (dir, people) in [(&many_dir, MANY), (&few_dir, FEW)] {
        build(run, dir, &[(PEOPLE, &[people, DUE, now + 86_400_000])])?;
    }
    let many = run.runtime.block_on(Measured::open(&many_dir))?;
    let few = run.runtime.block_on(Measured::open(&few_dir))?;
    let (mut in_many, mut in_few, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let small = sweep_ms(run, &few)?;
        let large = sweep_ms(run, &many)?;
        in_few.push(small);
        in_many.push(large);
        ratios.push(large / small);
    }
    run.runtime.block_on(many.close());
    run.runtime.block_on(few.close());
    let what = format!("sweep of {DUE} reminders, {FEW} people");
    run.table.add(Line { what, unit: "ms", value: median(in_few), ratio: None, goal: Goal::Shown });
    let (what, ratio) = (format!("  the same, {MANY} people"), Some(median(ratios)));
    run.table.add(Line { what, unit: "ms", value: median(in_many), ratio, goal: Goal::AtMost(2.0) });
    Ok(std::fs::remove_dir_all(many_dir)?)
}

fn sweep_ms(run: &Run, store: &Measured) -> anyhow::Result<f64> {
    run.runtime.block_on(async {
        store.prepare("DELETE FROM telegram_messages", vec![]).await?;
        store.prepare("DELETE FROM bot_reminders_sent", vec![]).await?;
        store.prepare("UPDATE bot_users SET reminded_stage = 0 WHERE telegram_id <= ?1", vec![DUE]).await?;
        let (queued, took) = store.time_reminders().await?;
        anyhow::ensure!(queued == u64::try_from(DUE)?, "{queued} were reminded");
        Ok(took.as_secs_f64() * 1e3)
    })
}

pub(crate) fn measure_digest(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir.path().join("digest");
    build(run, &dir, &[(CARDS, &[LEADERS]), (BROUGHT, &[MANY, LEADERS])])?;
    let store = run.runtime.block_on(Measured::open(&dir))?;
    let (mut seconds, mut slowest) = (Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let (took, longest) = run.runtime.block_on(digest_beside_a_writer(&store))?;
        seconds.push(took);
        slowest.push(longest);
    }
    run.runtime.block_on(store.close());
    run.add_at_most(&format!("digest of {LEADERS} leaders, {MANY} people"), "s", median(seconds), 5.0);
    run.add_at_most("  the slowest write beside it", "ms", median(slowest), SLOWEST_MS);
    Ok(std::fs::remove_dir_all(dir)?)
}

/// How long the pass took in seconds, and the slowest write beside it in milliseconds.
async fn digest_beside_a_writer(store: &Measured) -> anyhow::Result<(f64, f64)> {
    store.prepare("DELETE FROM telegram_messages", vec![]).await?;
    store.prepare("DELETE FROM bot_digests_sent", vec![]).await?;
    let over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (store, over) = (store.clone(), Arc::clone(&over));
        async move {
            let mut slowest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let started = Instant::now();
                store.emit(1).await?;
                slowest = slowest.max(started.elapsed());
                tokio::time::sleep(BESIDE).await;
            }
            anyhow::Ok(slowest)
        }
    });
    let (queued, took) = store.time_digests().await?;
    over.store(true, Ordering::Relaxed);
    let slowest = writer.await??;
    anyhow::ensure!(queued == u64::try_from(LEADERS)?, "{queued} digests");
    Ok((took.as_secs_f64(), slowest.as_secs_f64() * 1e3))
}

/// Makes a file with these rows. Its durability while it is built is nobody's concern.
fn build(run: &Run, dir: &Path, rows: &[(&str, &[i64])]) -> anyhow::Result<()> {
    let made = run.runtime.block_on(Measured::open(dir))?;
    run.runtime.block_on(made.close());
    let conn = Connection::open(dir.join("pillarbox.db"))?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 20000;")?;
    for (sql, numbers) in rows {
        conn.execute(sql, rusqlite::params_from_iter(numbers.iter()))?;
    }
    Ok(conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?)
}

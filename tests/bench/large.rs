//! A file with a long history and a large backlog: a page must cost what it costs in a small one, and starting too.

use std::path::Path;
use std::time::Instant;

use pillarbox::measured::Measured;
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::process::{Events, Serve};
use crate::rounds::{Run, median};
use crate::table::{Goal, Line};

const PAGE: i64 = 100;
const READS_A_ROUND: usize = 200;
/// What the large file is compared with.
const FEW: i64 = 1_000;

const PROCESSED: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_event_outbox
      (event_type, telegram_id, magnet_uid, payload, created_at, subject, processed_at, outcome)
    SELECT 'new_partner', i, i, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', 1700000000000, 'uid:' || i,
           1700000000000, 'handled'
    FROM n";
/// The head of one subject failed and waits; everything else of it waits behind.
const BEHIND_ONE: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_event_outbox (event_type, magnet_uid, payload, created_at, subject, attempts, next_retry_at)
    SELECT 'new_partner', 1, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', 1700000000000, 'uid:1',
           i = 1, CASE WHEN i = 1 THEN 99999999999999 END
    FROM n";
const AT_RANDOM: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, created_at, subject)
    SELECT 'new_partner', uid, uid, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', 1700000000000, 'uid:' || uid
    FROM (SELECT 2 + (random() & 0x7FFFFFFF) % 1000000 AS uid FROM n)";
/// Rows of one transaction; more would only grow the WAL.
const CHUNK: i64 = 250_000;

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let (large_dir, small_dir) = (run.dir.path().join("large"), run.dir.path().join("small"));
    let waiting = run.rows / 10;
    build(&run.runtime, &large_dir, &[(PROCESSED, run.rows), (BEHIND_ONE, waiting / 2), (AT_RANDOM, waiting / 2)])?;
    build(&run.runtime, &small_dir, &[(AT_RANDOM, FEW)])?;
    compare_pages(run, &large_dir, &small_dir)?;
    measure_start(run, &large_dir)?;
    Ok(std::fs::remove_dir_all(large_dir)?)
}

fn compare_pages(run: &mut Run, large_dir: &Path, small_dir: &Path) -> anyhow::Result<()> {
    let large = run.runtime.block_on(Measured::open(large_dir))?;
    let small = run.runtime.block_on(Measured::open(small_dir))?;
    let (mut in_large, mut in_small, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let few = run.runtime.block_on(page_micros(&small))?;
        let many = run.runtime.block_on(page_micros(&large))?;
        in_small.push(few);
        in_large.push(many);
        ratios.push(many / few);
    }
    run.runtime.block_on(large.close());
    run.runtime.block_on(small.close());
    let what = "pending page of 100, 1,000 waiting rows".to_owned();
    run.table.add(Line { what, unit: "µs", value: median(in_small), ratio: None, goal: Goal::Shown });
    let what = format!("  the same, {} processed and {} waiting", run.rows, run.rows / 10);
    let ratio = Some(median(ratios));
    run.table.add(Line { what, unit: "µs", value: median(in_large), ratio, goal: Goal::AtMost(2.0) });
    Ok(())
}

/// The median over a round of reads.
async fn page_micros(store: &Measured) -> anyhow::Result<f64> {
    let mut micros = Vec::new();
    for _ in 0..READS_A_ROUND {
        let (events, took) = store.time_pending(PAGE).await?;
        anyhow::ensure!(events == usize::try_from(PAGE)?, "a page of {events} events");
        micros.push(took.as_secs_f64() * 1e6);
    }
    Ok(median(micros))
}

fn measure_start(run: &mut Run, dir: &Path) -> anyhow::Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "gigabytes")]
    let gigabytes = std::fs::metadata(dir.join("pillarbox.db"))?.len() as f64 / 1e9;
    let mut starts = Vec::new();
    for _ in 0..run.rounds {
        let serve = Serve::start(dir, Events::LeftAlone)?;
        starts.push(serve.ready_after.as_secs_f64() * 1000.0);
        serve.stop()?;
    }
    run.add_at_most(&format!("start to ready, file of {gigabytes:.1} GB"), "ms", median(starts), 200.0);
    Ok(())
}

/// Makes a file with these rows. Its durability while it is built is nobody's concern.
fn build(runtime: &Runtime, dir: &Path, rows: &[(&str, i64)]) -> anyhow::Result<()> {
    let made = runtime.block_on(Measured::open(dir))?;
    runtime.block_on(made.close());
    let started = Instant::now();
    let conn = Connection::open(dir.join("pillarbox.db"))?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 20000;")?;
    for (sql, count) in rows {
        let mut left = *count;
        let mut statement = conn.prepare(sql)?;
        while left > 0 {
            // In one piece where the first row is not like the others.
            let chunk = if *sql == BEHIND_ONE { left } else { left.min(CHUNK) };
            statement.execute([chunk])?;
            left -= chunk;
        }
    }
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?;
    eprintln!("bench:   built {} in {:.0} s", dir.display(), started.elapsed().as_secs_f64());
    Ok(())
}

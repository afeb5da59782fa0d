//! Emitting through the write door: alone, with others, and beside a million waiting rows.

use std::path::Path;

use pillarbox::measured::Measured;
use tokio::runtime::Runtime;

use crate::load::{Sample, drive};
use crate::rounds::Run;
use crate::table::Goal;

/// Waiting events with random subjects; the trigger makes their lanes.
const A_MILLION_WAIT: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, created_at, subject)
    SELECT 'new_partner', uid, uid, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', ?2, 'uid:' || uid
    FROM (SELECT 1 + (random() & 0x7FFFFFFF) % 1000000 AS uid FROM n)";
const CHUNK: i64 = 100_000;

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let small = open(run, "write")?;
    let alone = run.against_floor(|runtime| emit(runtime, &small, 1))?;
    run.add_rate("db.write of an event, 1 caller", &alone, Goal::AtLeast(0.35));
    let many = run.against_floor(|runtime| emit(runtime, &small, 64))?;
    run.add_rate("db.write of an event, 64 callers", &many, Goal::AtLeast(3.5));
    run.add_at_most("  its p99", "ms", many.p99_ms, 20.0);
    run.runtime.block_on(small.close());

    let large = open(run, "million")?;
    run.runtime.block_on(fill(&large))?;
    let many = run.against_floor(|runtime| emit(runtime, &large, 64))?;
    run.add_rate("the same beside 1 million waiting rows, 64 callers", &many, Goal::AtLeast(1.5));
    run.runtime.block_on(large.close());
    Ok(std::fs::remove_dir_all(run.dir.path().join("million"))?)
}

fn open(run: &Run, name: &str) -> anyhow::Result<Measured> {
    let dir: &Path = &run.dir.path().join(name);
    run.runtime.block_on(Measured::open(dir))
}

fn emit(runtime: &Runtime, store: &Measured, callers: usize) -> anyhow::Result<Sample> {
    let caller = || {
        let store = store.clone();
        move |uid| {
            let store = store.clone();
            async move { store.emit(uid).await.map(|_| ()) }
        }
    };
    runtime.block_on(drive((0..callers).map(|_| caller()).collect()))
}

async fn fill(store: &Measured) -> anyhow::Result<()> {
    for _ in 0..10 {
        store.prepare(A_MILLION_WAIT, vec![CHUNK, 1_700_000_000_000]).await?;
    }
    Ok(())
}

//! The relay in a file with a long history, pruning beside emits, and memory under a million waiting deliveries.

use std::path::Path;
use std::time::{Duration, Instant};

use pillarbox::measured::Measured;
use rusqlite::Connection;
use serde_json::json;

use crate::load::{Sample, drive};
use crate::process::Serve;
use crate::receiver::{Manner, Receiver};
use crate::rounds::{Run, median};
use crate::table::{Goal, Line};
use crate::webhooks::{create, wait_until};

const FEW: i64 = 1_000;
/// Events that are due in a measured pass.
const DUE: i64 = 100;
const PRUNED: i64 = 1_000_000;
const WAITING: i64 = 1_000_000;
/// Rows of one transaction.
const CHUNK: i64 = 250_000;
/// Emitters beside the prune: as many as a busy site has.
const EMITTERS: usize = 8;

/// Published ones as they lie in the file after years. Numbers: from, to.
const PUBLISHED: &str = "
    WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload, occurred_at, created_at,
                               published_at, acceptances)
    SELECT printf('%08x-0000-7000-8000-000000000000', i), 'order.paid', 'order', i, '{\"order_id\":1}',
           1700000000000 + i, 1700000000000 + i, 1700000000000 + i, '{\"webhooks\":1700000000000}'
    FROM n";
/// As the installation's own subsystems record them.
const FRESH: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
    SELECT printf('f%07x-%04x-7000-8000-%012x', abs(random() % 268435456), i, abs(random() % 281474976710656)), 'order.paid',
           'order', i, '{\"order_id\":1}'
    FROM n";
/// Deliveries that are due. Numbers: from which message, to which.
const DELIVERIES: &str = "
    INSERT INTO webhook_deliveries (message, endpoint, status, next_attempt_at, created_at)
    SELECT m.id, e.id, 'pending', 1700000000000, m.created_at FROM webhook_messages m, webhook_endpoints e
    WHERE m.id BETWEEN ?1 AND ?2";
const MESSAGES: &str = "
    WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO webhook_messages (id, tenant_id, event_id, type, body, created_at)
    SELECT 1000000000 + i, 'default', printf('%08x-0000-7000-8000-000000000000', i), 'order.paid',
           CAST('{\"type\":\"order.paid\",\"data\":{\"order_id\":1}}' AS BLOB), 1700000000000 FROM n";

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    compare_passes(run)?;
    measure_prune(run)?;
    measure_memory(run)
}

fn compare_passes(run: &mut Run) -> anyhow::Result<()> {
    let (many_dir, few_dir) = (run.dir.path().join("relay-many"), run.dir.path().join("relay-few"));
    build(run, &many_dir, run.rows)?;
    build(run, &few_dir, FEW)?;
    let many = run.runtime.block_on(Measured::open(&many_dir))?;
    let few = run.runtime.block_on(Measured::open(&few_dir))?;
    let (mut in_many, mut in_few, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds * 3 {
        let small = pass_micros(run, &few)?;
        let large = pass_micros(run, &many)?;
        in_few.push(small);
        in_many.push(large);
        ratios.push(large / small);
    }
    run.runtime.block_on(many.close());
    run.runtime.block_on(few.close());
    let what = format!("relay pass of {DUE} events, {FEW} published rows");
    run.table.add(Line { what, unit: "µs", value: median(in_few), ratio: None, goal: Goal::Shown });
    let (what, ratio) = (format!("  the same, {} published", run.rows), Some(median(ratios)));
    run.table.add(Line { what, unit: "µs", value: median(in_many), ratio, goal: Goal::AtMost(1.5) });
    Ok(std::fs::remove_dir_all(many_dir)?)
}

fn pass_micros(run: &Run, store: &Measured) -> anyhow::Result<f64> {
    run.runtime.block_on(async {
        store.prepare(FRESH, vec![DUE]).await?;
        let (published, took) = store.time_relay().await?;
        anyhow::ensure!(published >= u64::try_from(DUE)?, "{published} were published");
        Ok(took.as_secs_f64() * 1e6)
    })
}

fn measure_prune(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir.path().join("prune");
    build(run, &dir, PRUNED)?;
    let dev = Serve::start_dev(&dir)?;
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut before = Vec::new();
    for _ in 0..run.rounds {
        before.push(clients.block_on(emit(&dev))?.percentile_ms(99.0));
    }
    let key = dev.api_key.clone();
    let address = dev.address;
    let began = Instant::now();
    let pruning =
        std::thread::spawn(move || crate::process::ask(address, &key, "POST", "/dev/jobs/outbox-prune/run", ""));
    let mut during = Vec::new();
    while !pruning.is_finished() {
        during.push(clients.block_on(emit(&dev))?.percentile_ms(99.0));
    }
    let answer = pruning.join().map_err(|_| anyhow::anyhow!("the request panicked"))?;
    anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "not pruned: {answer}");
    let took = began.elapsed().as_secs_f64();
    let left: i64 = Connection::open(dir.join("pillarbox.db"))?.query_row(
        "SELECT count(*) FROM outbox_events WHERE created_at < 1710000000000",
        [],
        |row| row.get(0),
    )?;
    anyhow::ensure!(left == 0, "{left} old events are left");
    dev.stop()?;
    let (before, during) = (median(before), median(during));
    run.table.add(Line {
        what: format!("POST /v1/events, {EMITTERS} clients, p99"),
        unit: "ms",
        value: before,
        ratio: None,
        goal: Goal::Shown,
    });
    let what = format!("  the same while {PRUNED} events are pruned ({took:.0} s)");
    run.table.add(Line { what, unit: "ms", value: during, ratio: Some(during / before), goal: Goal::AtMost(3.0) });
    Ok(std::fs::remove_dir_all(dir)?)
}

async fn emit(dev: &Serve) -> anyhow::Result<Sample> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let (url, key) = (format!("http://{}/v1/events", dev.address), dev.api_key.clone());
    let callers = (0..EMITTERS).map(|_| {
        let (client, url, key) = (client.clone(), url.clone(), key.clone());
        move |number| {
            let body = json!({"type": "bench.emitted", "version": 1, "aggregate": {"type": "order", "id": "1"}, "data": {"n": number}});
            let request = client.post(&url).bearer_auth(&key).header("content-type", "application/json").body(body.to_string());
            async move { Ok(request.send().await?.error_for_status().map(|_| ())?) }
        }
    });
    drive(callers.collect()).await
}

fn measure_memory(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir.path().join("waiting");
    let dev = Serve::start_dev(&dir)?;
    let receiver = Receiver::start(Manner::Answers)?;
    for _ in 0..4 {
        create(&dev, &receiver, Some("order.none"))?;
    }
    dev.stop()?;
    let file = Connection::open(dir.join("pillarbox.db"))?;
    in_chunks(&file, MESSAGES, WAITING / 4)?;
    in_chunks(&file, &DELIVERIES.replace("?1 AND ?2", "1000000000 + ?1 AND 1000000000 + ?2"), WAITING / 4)?;
    drop(file);
    let dev = Serve::start_dev(&dir)?;
    let began = Instant::now();
    let mut greatest = 0.0_f64;
    wait_until("deliveries go on for ten seconds", || {
        greatest = greatest.max(dev.resident_mib()?);
        Ok(began.elapsed() > Duration::from_secs(10))
    })?;
    anyhow::ensure!(receiver.count() > 1_000, "only {} came", receiver.count());
    run.add_at_most("resident memory while a million deliveries wait and go", "MiB", greatest, 80.0);
    dev.stop()?;
    Ok(std::fs::remove_dir_all(dir)?)
}

/// Makes a file with so many published events. Its durability while it is built is nobody's concern.
fn build(run: &Run, dir: &Path, rows: i64) -> anyhow::Result<()> {
    let made = run.runtime.block_on(Measured::open(dir))?;
    run.runtime.block_on(made.close());
    in_chunks(&Connection::open(dir.join("pillarbox.db"))?, PUBLISHED, rows)
}

fn in_chunks(file: &Connection, sql: &str, rows: i64) -> anyhow::Result<()> {
    file.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 20000;")?;
    let mut statement = file.prepare(sql)?;
    let mut first = 1;
    while first <= rows {
        let last = rows.min(first + CHUNK - 1);
        statement.execute([first, last])?;
        first = last + 1;
    }
    drop(statement);
    Ok(file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?)
}

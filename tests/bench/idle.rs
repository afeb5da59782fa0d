//! An idle server: how soon it notices work, what it costs while there is none, and how large the binary is.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::http::Client;
use crate::load::{Dice, percentile_ms};
use crate::process::{BINARY, Events, Serve};
use crate::rounds::{Run, median};

const EVENTS_A_ROUND: usize = 40;
/// Long enough for everything that the event before set in motion to have come to rest.
const PAUSE: Duration = Duration::from_millis(40);
const LOOK_EVERY: Duration = Duration::from_micros(100);
const IDLE: Duration = Duration::from_secs(10);

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir.path().join("idle");
    let serve = Serve::start(&dir, Events::ConsumedThere)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = serve.processor_ms()?;
    std::thread::sleep(IDLE);
    // A thread that has ended since takes its time with it: one that waited for work and got none.
    let worked = serve.processor_ms()?.iter().map(|(thread, ms)| ms - before.get(thread).unwrap_or(&0.0)).sum();
    run.add_at_most("idle: processor time in 10 s", "ms", worked, 20.0);
    measure_latency(run, &serve, &dir)?;
    run.add_at_most("idle: resident memory", "MiB", serve.resident_mib()?, 40.0);
    serve.stop()?;
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let size = std::fs::metadata(BINARY)?.len() as f64 / 1024.0 / 1024.0;
    run.add_at_most("size of the release binary", "MiB", size, 25.0);
    Ok(())
}

/// From before the request is sent until the ledger's row of the event is visible to another process: more than from
/// commit to handler, since it includes the request, the commit itself, and the commit of the handler's effects. The
/// columns' times would not do: they have milliseconds, and are taken before their commits.
fn measure_latency(run: &mut Run, serve: &Serve, dir: &Path) -> anyhow::Result<()> {
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut client = clients.block_on(Client::connect(serve))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let ledger = Connection::open_with_flags(dir.join("pillarbox.db"), flags)?;
    ledger.busy_timeout(Duration::from_secs(1))?;
    let mut dice = Dice::new(0);
    let (mut p50s, mut p99s) = (Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let mut latencies = Vec::new();
        for _ in 0..EVENTS_A_ROUND {
            std::thread::sleep(PAUSE);
            let asked = Instant::now();
            let id = clients.block_on(client.emit(dice.subject()))?;
            while !is_handled(&ledger, id)? {
                anyhow::ensure!(asked.elapsed() < Duration::from_secs(30), "event {id} was not handled");
                std::thread::sleep(LOOK_EVERY);
            }
            latencies.push(asked.elapsed());
        }
        p50s.push(percentile_ms(&latencies, 50.0));
        p99s.push(percentile_ms(&latencies, 99.0));
    }
    run.add_at_most("idle: from request to handled, p50", "ms", median(p50s), 3.0);
    run.add_at_most("idle: from request to handled, p99", "ms", median(p99s), 20.0);
    Ok(())
}

fn is_handled(ledger: &Connection, id: i64) -> anyhow::Result<bool> {
    let mut statement =
        ledger.prepare_cached("SELECT 1 FROM bot_processed_events WHERE source = 'local' AND outbox_event_id = ?1")?;
    Ok(statement.exists([id])?)
}

//! Leads: taking them in over HTTP beside the rate of bot events, with Telegram hanging, and claiming one among many.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pillarbox::measured::Measured;
use rusqlite::Connection;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::http::{Client, emit};
use crate::load::{Sample, drive};
use crate::process::Serve;
use crate::rounds::{Run, median};
use crate::table::{Goal, Line};

const ORIGIN: &str = "https://site.example";
/// For whom Telegram hangs there are as many visitors as a campaign brings, not as many as the server can bear.
const MODERATE: usize = 8;
/// The least that may be set: between two rounds the attempt under way has to end.
const TELEGRAM_TIMEOUT: Duration = Duration::from_secs(1);

const MANY: i64 = 1_000_000;
const FEW: i64 = 1_000;
const CLAIMS_A_ROUND: i64 = 200;
/// Rows of one transaction.
const CHUNK: i64 = 50_000;
/// Sent ones as they lie in the file after years: ids in the order of time as the intake gives them, and a payload.
const SENT: &str = "
    WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO broker_leads (id, request_id, created_at, updated_at, announced_at, client_name, phone, city, scenario,
      raw_payload, notification_status, notification_attempt_count, notification_cycle_claims,
      notification_attempted_at, notification_sent_at)
    SELECT printf('%08x-0000-7000-8000-000000000000', i), printf('IP-20260101-%08X', i), i, i, i, 'Анна', '+7 999 000 11 22',
      'Казань', 'Покупка квартиры', json_object('pad', hex(zeroblob(250))), 'sent', 1, 1, i, i
    FROM n";
/// What was claimed is sent, and as many others wait, spread over the file. Numbers: how many rows, and how many of them.
const RESET: [&str; 2] = [
    "UPDATE broker_leads SET notification_status = 'sent', updated_at = updated_at + 1 WHERE notification_status = 'sending'",
    "UPDATE broker_leads
     SET notification_status = 'pending', notification_sent_at = NULL, notification_cycle_claims = 0,
         updated_at = updated_at + 1
     WHERE rowid IN (
       WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
       SELECT 1 + (random() & 0x7FFFFFFF) % ?1 FROM n)",
];

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let fake = Serve::start_fake(&run.dir.path().join("fake"))?;
    measure_intake(run, &fake)?;
    measure_hanging(run, &fake)?;
    compare_claims(run)
}

/// Rounds of events and of leads in turn, so that both meet the same disk and the same neighbours.
fn measure_intake(run: &mut Run, fake: &Serve) -> anyhow::Result<()> {
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let alone = start(run, "leads", "leads.delivery=off", fake)?;
    let (mut events, mut leads, mut ratios, mut p99s) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut small, mut small_ratios) = (Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let emitted = clients.block_on(emit(&alone, 64))?;
        let posted = clients.block_on(post(&alone, 64, &FULL))?;
        let least = clients.block_on(post(&alone, 64, &LEAST))?;
        ratios.push(posted.per_second() / emitted.per_second());
        small_ratios.push(least.per_second() / emitted.per_second());
        small.push(least.per_second());
        events.push(emitted.per_second());
        leads.push(posted.per_second());
        p99s.push(posted.percentile_ms(99.0));
    }
    alone.stop()?;
    let shown = |what: &str, value| Line { what: what.into(), unit: "/s", value, ratio: None, goal: Goal::Shown };
    run.table.add(shown("POST /bot/events, 64 clients, in turn with leads", median(events)));
    let (value, ratio, goal) = (median(leads), Some(median(ratios)), Goal::AtLeast(0.5));
    run.table.add(Line { what: "POST /leads, 64 clients, to those events".into(), unit: "/s", value, ratio, goal });
    run.table.add(Line { what: "  its p99".into(), unit: "ms", value: median(p99s), ratio: None, goal: Goal::Shown });

    let (what, ratio) = ("  the same of leads with nothing but what is required", Some(median(small_ratios)));
    run.table.add(Line { what: what.into(), unit: "/s", value: median(small), ratio, goal: Goal::Shown });

    let telling = start(run, "telling", "leads.delivery=worker", fake)?;
    let mut leads = Vec::new();
    for _ in 0..run.rounds {
        leads.push(clients.block_on(post(&telling, 64, &FULL))?.per_second());
    }
    telling.stop()?;
    run.table.add(shown("  the same while the broker is told of them", median(leads)));
    Ok(())
}

/// Rounds with a Telegram that answers and with one that hangs, in turn.
fn measure_hanging(run: &mut Run, fake: &Serve) -> anyhow::Result<()> {
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = start(run, "hanging", "leads.delivery=worker", fake)?;
    let (mut normal, mut hanging, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let before = clients.block_on(post(&serve, MODERATE, &FULL))?.percentile_ms(99.0);
        let hang = r#"{"chat_id": -1001, "status": 500, "delay_ms": 60000, "times": 1000000}"#;
        let armed = fake.ask("POST", "/dev/telegram/faults", hang);
        anyhow::ensure!(armed.starts_with("HTTP/1.1 2"), "the fake does not hang: {armed}");
        let during = clients.block_on(post(&serve, MODERATE, &FULL))?.percentile_ms(99.0);
        fake.ask("DELETE", "/dev/telegram/faults", "");
        std::thread::sleep(TELEGRAM_TIMEOUT * 2);
        normal.push(before);
        hanging.push(during);
        ratios.push(during / before);
    }
    serve.stop()?;
    let what = format!("POST /leads, {MODERATE} clients, p99");
    run.table.add(Line { what, unit: "ms", value: median(normal), ratio: None, goal: Goal::Shown });
    let (value, ratio, goal) = (median(hanging), Some(median(ratios)), Goal::AtMost(2.0));
    run.table.add(Line { what: "  the same while Telegram hangs".into(), unit: "ms", value, ratio, goal });
    Ok(())
}

fn start(run: &Run, name: &str, delivery: &str, fake: &Serve) -> anyhow::Result<Serve> {
    let api = format!("telegram.api_url=http://{}", fake.address);
    let (origin, timeout) =
        (format!("leads.allowed_origins={ORIGIN}"), format!("leads.telegram_timeout={}s", TELEGRAM_TIMEOUT.as_secs()));
    let settings = [
        "bot.event_source=off",
        &api,
        &origin,
        &timeout,
        delivery,
        "telegram.token=4242424242:AAxyzzy-Distinctive_Token-of-the-tests",
        "leads.chat_id=-1001",
        "leads.rate_limit_per_hour=100",
        "telegram.per_second=1000",
        "telegram.chat_interval=0s",
        "telegram.group_per_minute=60000",
    ];
    Serve::start_with(&run.dir.path().join(name), &settings)
}

/// Leads of ever new visitors.
async fn post(serve: &Serve, clients: usize, body: &'static str) -> anyhow::Result<Sample> {
    let mut callers = Vec::new();
    for _ in 0..clients {
        let client = Arc::new(Mutex::new(Client::connect(serve).await?));
        callers.push(move |_| {
            let client = Arc::clone(&client);
            async move { client.lock().await.created(&lead(body)).await.map(|_| ()) }
        });
    }
    drive(callers).await
}

/// A request as the form sends it, with what its visitor has prepared. Ten thousand visitors take turns: were each a new
/// one, their counts of an hour would lie on ever more pages, which no site's do.
fn lead(body: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let visitor = number % 10_000;
    let [.., a, b] = visitor.to_be_bytes();
    let body = body.replace("NUMBER", &format!("{number:08X}")).replace("SUFFIX", &format!("{visitor:04}"));
    let length = body.len();
    format!(
        "POST /leads HTTP/1.1\r\nhost: bench\r\norigin: {ORIGIN}\r\ncontent-type: application/json\r\n\
         user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
         x-forwarded-for: 10.0.{a}.{b}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The fixtures' lead in which every field is filled, with the fixtures' preparation in full.
static FULL: LazyLock<String> = LazyLock::new(|| {
    let mut lead = body_of(include_str!("../../fixtures/leads/good.json"));
    lead["preparation"] = body_of(include_str!("../../fixtures/leads/preparation_in_full.json"))["preparation"].take();
    to_be_numbered(lead)
});

/// The fixtures' lead that has no more than it must.
static LEAST: LazyLock<String> =
    LazyLock::new(|| to_be_numbered(body_of(include_str!("../../fixtures/leads/minimal.json"))));

fn body_of(fixture: &str) -> serde_json::Value {
    match serde_json::from_str(fixture) {
        Ok(serde_json::Value::Object(mut fixture)) => fixture["request"]["body"].take(),
        _ => serde_json::Value::Null,
    }
}

/// What makes each lead another one is put in its place later.
fn to_be_numbered(mut lead: serde_json::Value) -> String {
    lead["request_id"] = "IP-20260101-NUMBER".into();
    lead["client"]["phone"] = "+7 (999) 123-SUFFIX".into();
    lead["client"]["phone_normalized"] = "7999123SUFFIX".into();
    lead.to_string()
}

fn compare_claims(run: &mut Run) -> anyhow::Result<()> {
    let (large_dir, small_dir) = (run.dir.path().join("leads-many"), run.dir.path().join("leads-few"));
    build(&run.runtime, &large_dir, MANY)?;
    build(&run.runtime, &small_dir, FEW)?;
    let large = run.runtime.block_on(Measured::open(&large_dir))?;
    let small = run.runtime.block_on(Measured::open(&small_dir))?;
    let (mut in_large, mut in_small, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        let few = run.runtime.block_on(claim_micros(&small, FEW))?;
        let many = run.runtime.block_on(claim_micros(&large, MANY))?;
        in_small.push(few);
        in_large.push(many);
        ratios.push(many / few);
    }
    run.runtime.block_on(large.close());
    run.runtime.block_on(small.close());
    let what = format!("claim of a lead among {FEW} sent ones");
    run.table.add(Line { what, unit: "µs", value: median(in_small), ratio: None, goal: Goal::Shown });
    let (what, ratio) = (format!("  the same among {MANY}"), Some(median(ratios)));
    run.table.add(Line { what, unit: "µs", value: median(in_large), ratio, goal: Goal::AtMost(1.5) });
    Ok(std::fs::remove_dir_all(large_dir)?)
}

/// The median of a round of claims.
async fn claim_micros(store: &Measured, rows: i64) -> anyhow::Result<f64> {
    store.prepare(RESET[0], Vec::new()).await?;
    store.prepare(RESET[1], vec![rows, CLAIMS_A_ROUND]).await?;
    let mut micros = Vec::new();
    while let Some(took) = store.time_lead_claim().await? {
        micros.push(took.as_secs_f64() * 1e6);
    }
    anyhow::ensure!(!micros.is_empty(), "no lead waited");
    Ok(median(micros))
}

/// Makes a file with so many sent leads. Its durability while it is built is nobody's concern.
fn build(runtime: &Runtime, dir: &Path, rows: i64) -> anyhow::Result<()> {
    let made = runtime.block_on(Measured::open(dir))?;
    runtime.block_on(made.close());
    let conn = Connection::open(dir.join("pillarbox.db"))?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 20000;")?;
    let mut statement = conn.prepare(SENT)?;
    let mut first = 1;
    while first <= rows {
        let last = rows.min(first + CHUNK - 1);
        statement.execute([first, last])?;
        first = last + 1;
    }
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?;
    Ok(())
}

//! Webhooks: deliveries a second beside a bare loop of the same HTTP client, the time from a request to its receipt, and
//! a good endpoint beside nine that hang.
//!
//! The server is `dev`, which may speak plain http to this machine; the delivery path is that of `serve`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::load::{Sample, WINDOW, drive, percentile_ms};
use crate::process::Serve;
use crate::receiver::{Manner, Receiver};
use crate::rounds::{Run, median};
use crate::table::{Goal, Line};

/// So many that four calls each are not what bounds the rate.
const ENDPOINTS: usize = 32;
const IN_FLIGHT: usize = 64;
/// Events that wait when the rounds begin; each goes to one endpoint.
const BACKLOG: i64 = 400_000;
const PER_SECOND: u32 = 200;
const PACED: Duration = Duration::from_secs(5);
const HANGING: usize = 9;

/// As another program inserts them.
const EVENTS: &str = "
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO outbox_events (event_id, type, aggregate_type, aggregate_id, payload)
    SELECT printf('%08x-0000-7000-8000-%012x', i, abs(random() % 1000000)), 'bench.n' || (i % ?2), 'order', i,
           json_object('order_id', i, 'amount', '129.90', 'currency', 'EUR', 'items', json_array(1, 2, 3))
    FROM n";

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    measure_rate(run)?;
    measure_latency(run)?;
    measure_isolation(run)
}

fn measure_rate(run: &mut Run) -> anyhow::Result<()> {
    let dir = run.dir.path().join("webhooks");
    let dev = Serve::start_dev(&dir)?;
    let receiver = Receiver::start(Manner::Answers)?;
    let mut endpoints = Vec::new();
    for number in 0..ENDPOINTS {
        endpoints.push(create(&dev, &receiver, Some(&format!("bench.n{number}")))?);
    }
    set_status(&dev, &endpoints, "paused")?;
    let file = Connection::open(dir.join("pillarbox.db"))?;
    file.busy_timeout(Duration::from_secs(30))?;
    file.execute(EVENTS, [BACKLOG, i64::try_from(ENDPOINTS)?])?;
    let relayed = Instant::now();
    wait_until("every event is relayed", || Ok(pending(&file)? == BACKLOG))?;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let relay_rate = BACKLOG as f64 / relayed.elapsed().as_secs_f64();
    let line = Line {
        what: "events relayed, one delivery each".into(),
        unit: "/s",
        value: relay_rate,
        ratio: None,
        goal: Goal::Shown,
    };
    run.table.add(line);

    let bare = Bare::new(&receiver)?;
    let (mut bare_rates, mut ratios) = (Vec::new(), Vec::new());
    let medians = run.against_floor(|_| {
        let alone = bare.measure()?.per_second();
        set_status(&dev, &endpoints, "active")?;
        let (before, began) = (receiver.count(), Instant::now());
        std::thread::sleep(WINDOW);
        let sample = Sample::of_count(receiver.count() - before, began.elapsed());
        set_status(&dev, &endpoints, "paused")?;
        bare_rates.push(alone);
        ratios.push(sample.per_second() / alone);
        settled(&receiver);
        Ok(sample)
    })?;
    anyhow::ensure!(pending(&file)? > 0, "the backlog was too small for this machine");
    let value = median(bare_rates);
    run.table.add(Line {
        what: "bare loop of the HTTP client, 64 in flight".into(),
        unit: "/s",
        value,
        ratio: None,
        goal: Goal::Shown,
    });
    let (value, ratio) = (medians.per_second, Some(median(ratios)));
    run.table.add(Line {
        what: "webhook deliveries, to that loop".into(),
        unit: "/s",
        value,
        ratio,
        goal: Goal::AtLeast(0.35),
    });
    run.add_rate("  the same, to F", &medians, Goal::AtLeast(1.0));
    dev.stop()
}

/// Posts the bytes of a delivery as the product's client does, and nothing else.
struct Bare {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    url: String,
}

impl Bare {
    fn new(receiver: &Receiver) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { runtime, client, url: receiver.url() })
    }

    fn measure(&self) -> anyhow::Result<Sample> {
        let callers = (0..IN_FLIGHT).map(|_| {
            let (client, url) = (self.client.clone(), self.url.clone());
            move |_| {
                let request = client
                    .post(&url)
                    .header("content-type", "application/json")
                    .header("webhook-id", "00000001-0000-7000-8000-000000000001")
                    .header("webhook-timestamp", "1700000000")
                    .header("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
                    .body(BODY);
                async move {
                    let answer = request.send().await?;
                    anyhow::ensure!(answer.status().is_success(), "refused");
                    answer.bytes().await?;
                    Ok(())
                }
            }
        });
        self.runtime.block_on(drive(callers.collect()))
    }
}

/// The bytes of such a delivery.
const BODY: &str = r#"{"id":"00000001-0000-7000-8000-000000000001","type":"bench.n1","version":1,"tenant":"default","aggregate":{"type":"order","id":"1"},"timestamp":"2026-01-01T00:00:00.000Z","data":{"order_id":1,"amount":"129.90","currency":"EUR","items":[1,2,3]}}"#;

fn measure_latency(run: &mut Run) -> anyhow::Result<()> {
    let dev = Serve::start_dev(&run.dir.path().join("latency"))?;
    let receiver = Receiver::start(Manner::Answers)?;
    create(&dev, &receiver, None)?;
    let latencies = paced(&dev, &receiver, 0)?;
    run.add_at_most("from request to receipt at 200 events/s, p50", "ms", percentile_ms(&latencies, 50.0), 10.0);
    run.add_at_most("  its p99", "ms", percentile_ms(&latencies, 99.0), 50.0);
    dev.stop()
}

fn measure_isolation(run: &mut Run) -> anyhow::Result<()> {
    let dev = Serve::start_dev(&run.dir.path().join("isolation"))?;
    let (good, hanging) = (Receiver::start(Manner::Answers)?, Receiver::start(Manner::Hangs)?);
    create(&dev, &good, None)?;
    paced(&dev, &good, 0)?;
    let alone = percentile_ms(&paced(&dev, &good, 1_000_000)?, 99.0);
    for _ in 0..HANGING {
        create(&dev, &hanging, None)?;
    }
    let beside = percentile_ms(&paced(&dev, &good, 2_000_000)?, 99.0);
    run.table.add(Line {
        what: "a good endpoint alone, p99".into(),
        unit: "ms",
        value: alone,
        ratio: None,
        goal: Goal::Shown,
    });
    let (what, ratio) = (format!("  the same beside {HANGING} that hang"), Some(beside / alone));
    run.table.add(Line { what, unit: "ms", value: beside, ratio, goal: Goal::AtMost(2.0) });
    dev.stop()
}

/// Posts events at a steady pace, numbered from `first`; the time from before each request until its receipt, which is
/// more than from its commit.
fn paced(dev: &Serve, receiver: &Receiver, first: u64) -> anyhow::Result<Vec<Duration>> {
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    receiver.take_arrivals();
    let asked: HashMap<u64, Instant> = clients.block_on(async {
        let mut tick = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
        let (mut asked, mut tasks) = (HashMap::new(), tokio::task::JoinSet::new());
        let client = reqwest::Client::builder().no_proxy().build()?;
        let (url, key) = (format!("http://{}/v1/events", dev.address), dev.api_key.clone());
        let began = Instant::now();
        let mut number = first;
        while began.elapsed() < PACED {
            tick.tick().await;
            let body = json!({"type": "bench.paced", "version": 1, "aggregate": {"type": "order", "id": "1"}, "data": {"seq": number}});
            let request = client.post(&url).bearer_auth(&key).header("content-type", "application/json").body(body.to_string());
            asked.insert(number, Instant::now());
            number += 1;
            tasks.spawn(async move { request.send().await?.error_for_status().map(|_| ()) });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        anyhow::Ok(asked)
    })?;
    let mut arrivals = Vec::new();
    wait_until("every event has come", || {
        arrivals.extend(receiver.take_arrivals());
        Ok(arrivals.len() >= asked.len())
    })?;
    anyhow::ensure!(arrivals.len() == asked.len(), "an event came twice");
    Ok(arrivals.iter().filter_map(|(number, came)| Some(came.duration_since(*asked.get(number)?))).collect())
}

/// Creates an endpoint; its id.
pub(crate) fn create(dev: &Serve, receiver: &Receiver, event_type: Option<&str>) -> anyhow::Result<String> {
    let wanted = json!({"url": receiver.url(), "event_types": event_type.map(|name| [name])});
    let created = dev.call("POST", "/v1/endpoints", &wanted)?;
    let id = created["id"].as_str();
    Ok(id.ok_or_else(|| anyhow::anyhow!("no endpoint: {created}"))?.to_owned())
}

fn set_status(dev: &Serve, endpoints: &[String], status: &str) -> anyhow::Result<()> {
    for id in endpoints {
        let changed: Value = dev.call("PATCH", &format!("/v1/endpoints/{id}"), &json!({"status": status}))?;
        anyhow::ensure!(changed["status"] == status, "not changed: {changed}");
    }
    Ok(())
}

fn pending(file: &Connection) -> anyhow::Result<i64> {
    Ok(file.query_row("SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'", [], |row| row.get(0))?)
}

/// Waits until nothing comes any more.
fn settled(receiver: &Receiver) {
    let mut before = receiver.count();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = receiver.count();
        if now == before {
            return;
        }
        before = now;
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !is_so()? {
        anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "not after two minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

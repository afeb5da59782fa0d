//! What a delivery costs beside a bare request by the same client: for whoever works on the worker, run by hand in a
//! release build. `make bench` is what is promised.

use std::time::Instant;

use super::*;
use crate::kernel::store::Synchronous;
use crate::webhooks::transport::{Target, WebhookHeaders};

const IN_FLIGHT: usize = 64;
const ENDPOINTS: usize = 16;
const DELIVERIES: usize = 40_000;
const BODY: &str = r#"{"id":"0198c0de-0000-7000-8000-000000000000","type":"lead.received","version":1,"tenant":"default","aggregate":{"type":"lead","id":"0198c0de-0000-7000-8000-000000000001"},"timestamp":"2026-01-01T00:00:00.000Z","data":{"lead_id":"0198c0de-0000-7000-8000-000000000001","amount":1250000,"currency":"RUB"}}"#;

/// A receiver that does as little as one can.
async fn receiver() -> std::net::SocketAddr {
    let behave = |mut stream: TcpStream| async move {
        let _ = stream.set_nodelay(true);
        while read_request(&mut stream).await.is_some() {
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.is_err() {
                return;
            }
        }
    };
    listen("127.0.0.1", behave).await.0
}

fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own: u64 = stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let all: u64 = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next().and_then(|text| text.parse::<u64>().ok()))
        .sum();
    Duration::from_nanos(all.max(own))
}

/// So many bare requests a second, and what each costs.
async fn bare(url: &str, requests: usize) -> (f64, Duration) {
    let egress = Egress::new(EgressPolicy { allow_insecure: true, ..EgressPolicy::default() });
    let how = TransportSettings { timeout: PATIENCE, idle_per_host: IN_FLIGHT, ca_file: None };
    let transport = Transport::new(&how, egress.clone(), Resolver::system(), Clock::system()).unwrap();
    let target = Arc::new(Target::new(egress.check_url(url).unwrap()).unwrap());
    let left = Arc::new(AtomicUsize::new(requests));
    let (began, spent) = (Instant::now(), cpu());
    let loops: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (transport, target, left) = (transport.clone(), Arc::clone(&target), Arc::clone(&left));
            tokio::spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
                    let headers = WebhookHeaders { id: "0198c0de-0000-7000-8000-000000000000", at_s: 1, signature };
                    let answer = transport.post(&target, &headers, BODY.into()).await;
                    assert!(answer.outcome.is_delivered());
                }
            })
        })
        .collect();
    for one in loops {
        one.await.unwrap();
    }
    (requests as f64 / began.elapsed().as_secs_f64(), (cpu() - spent) / u32::try_from(requests).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn what_a_delivery_costs_beside_a_bare_request() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let clock = Clock::system();
    // As the configuration has them.
    let settings =
        Settings { synchronous: Synchronous::Full, readers: 4, queue: 1024, cache: 16 << 20, ..Settings::small() };
    let db = Db::open(dir.path(), Role::Owner("test"), &settings, clock.clone(), vec![]).unwrap();
    let vault = Vault::at(dir.path());
    let script = Arc::new(Script::default());
    let settings = DeliverSettings { max_in_flight: IN_FLIGHT, per_endpoint: 4, policy: exact() };
    let worker = Arc::new(Deliverer::open(parts(&db, &vault, &script, settings)));
    let world = World { dir, db, clock, vault, script, settings, worker, stop: CancellationToken::new() };
    let at = receiver().await;
    let url = format!("http://{at}/");
    let mut endpoints = Vec::new();
    for n in 0..ENDPOINTS {
        endpoints.push(world.endpoint(&format!("{url}{n}")).await);
    }
    for round in 0..3 {
        let bare = bare(&url, 30_000).await;
        fill(&world, round).await;
        let (began, spent) = (Instant::now(), cpu());
        let mut delivered = 0;
        while delivered < DELIVERIES as u64 {
            delivered += world.worker.run_once(&world.stop).await.unwrap().delivered;
        }
        let rate = DELIVERIES as f64 / began.elapsed().as_secs_f64();
        let each = (cpu() - spent) / u32::try_from(DELIVERIES).unwrap();
        println!(
            "bare {:.0}/s {:?} each; delivered {rate:.0}/s {each:?} each; {:.2} of the rate, {:.2} of the processor",
            bare.0,
            bare.1,
            rate / bare.0,
            bare.1.as_secs_f64() / each.as_secs_f64()
        );
    }
    let mut waits = Vec::new();
    for n in 0..1000 {
        let began = Instant::now();
        let deliveries = world.event(&format!("evt_late_{n}"), BODY, &endpoints[..1]).await;
        world.worker.run_once(&world.stop).await.unwrap();
        waits.push(began.elapsed());
        assert_eq!(deliveries.len(), 1);
    }
    waits.sort_unstable();
    println!("one alone, with its insertion: p50 {:?}, p99 {:?}", waits[500], waits[990]);
}

async fn fill(world: &World, round: usize) {
    let now = world.clock.now();
    let fill = move |tx: &Tx<'_>| -> Result<(), StoreError> {
        for n in 0..DELIVERIES {
            let id = format!("0198c0de-{round:04}-7000-8000-{n:012}");
            let sql = "INSERT INTO webhook_messages (tenant_id, event_id, type, body, created_at) VALUES ('default', ?1, 'a.b', ?2, ?3)";
            tx.execute(sql, rusqlite::params![id, BODY.as_bytes(), now])?;
            let message = tx.last_insert_id();
            let sql = "INSERT INTO webhook_deliveries (message, endpoint, status, next_attempt_at, created_at) VALUES (?1, ?2, 'pending', ?3, ?3)";
            tx.execute(sql, rusqlite::params![message, (n % ENDPOINTS) as i64 + 1, now])?;
        }
        Ok(())
    };
    world.db.write(fill).await.unwrap();
}

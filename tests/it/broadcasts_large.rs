//! Broadcasts at their size: five hundred in real time, and a hundred thousand on the moved clock, with faults, a pause and
//! kills in the middle of it.
//!
//! There the limits of Telegram are held to at ten times their size: at their own, a run takes minutes of real sends.
//! `PILLARBOX_SOAK_KILLS` runs it with the real ones.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rusqlite::Connection;
use serde_json::json;

use crate::harness::broadcast::{accepted, busiest, counts};
use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::{setting, until};

/// How often it is killed.
const KILLS: usize = 3;
/// Calls at a time; a broadcast has three quarters of them.
const IN_FLIGHT: usize = 16;
/// What memory may grow by, in kB.
const FLAT_KB: i64 = 20_000;

/// How large it is, and how many times the real limits.
struct Scale {
    recipients: i64,
    limits: i64,
}

fn scale() -> Scale {
    let recipients = setting("PILLARBOX_BROADCAST_RECIPIENTS").map_or(100_000, |count| i64::try_from(count).unwrap());
    let limits = if setting("PILLARBOX_SOAK_KILLS").is_some() { 1 } else { 10 };
    Scale { recipients, limits }
}

struct Run {
    dev: Dev,
    conn: Connection,
    scale: Scale,
    id: String,
    rng: rand::rngs::StdRng,
    /// When it was started again, by its clock.
    starts: Vec<i64>,
}

impl Run {
    fn start() -> Self {
        let scale = scale();
        let sets = [
            format!("telegram.per_second={}", 25 * scale.limits),
            format!("telegram.bulk_per_second={}", 20 * scale.limits),
            format!("telegram.max_in_flight={IN_FLIGHT}"),
            "telegram.timeout=2s".to_owned(),
            "telegram.connect_timeout=1s".to_owned(),
            "store.synchronous=normal".to_owned(),
            "store.ballast=0".to_owned(),
        ];
        let dev = Dev::start(&sets.each_ref().map(String::as_str));
        let conn = dev.writer();
        dev.add_people(1..=scale.recipients, "en");
        let rate = (20 * scale.limits).to_string();
        let id = dev.draft(Some("Hello"), None, &["--per-second", &rate]);
        let seed = setting("PILLARBOX_SEED").unwrap_or_else(|| rand::rng().random());
        eprintln!("broadcast: PILLARBOX_SEED={seed}, {} recipients", scale.recipients);
        Self { dev, conn, scale, id, rng: rand::rngs::StdRng::seed_from_u64(seed), starts: Vec::new() }
    }

    /// Arms faults for people who are still to be written to, all over the audience. The fake forgets them with its process.
    fn arm(&mut self) {
        let waiting = "SELECT telegram_id FROM broadcast_recipients WHERE broadcast_id = ?1 AND status = 'pending'";
        let mut chats: Vec<i64> = column(&self.conn, waiting, [&self.id]);
        chats.shuffle(&mut self.rng);
        let kinds = [
            json!({"status": 429, "retry_after": 1}),
            json!({"status": 403, "description": "Forbidden: bot was blocked by the user"}),
            json!({"drop_response": true}),
            json!({"status": 502, "body": "<html>502</html>"}),
        ];
        let late = json!({"delay_ms": 2500});
        for (chat, kind) in chats.iter().zip(kinds.iter().cycle().take(196).chain(std::iter::repeat_n(&late, 4))) {
            let mut fault = kind.clone();
            fault["chat_id"] = json!(chat);
            self.dev.fault(&fault);
        }
    }

    fn count(&self, status: &str) -> i64 {
        let sql = format!("SELECT {status} FROM broadcasts WHERE id = ?1");
        value(&self.conn, &sql, [&self.id])
    }

    fn state(&self) -> String {
        value(&self.conn, "SELECT state FROM broadcasts WHERE id = ?1", [&self.id])
    }

    /// Moves the clock a second on when nothing is being sent, as far as can be seen from here.
    fn tick(&self) {
        let mut looks = 0;
        until("what may go is sent", || {
            let sending = "SELECT count(*) FROM telegram_messages WHERE status = 'sending'";
            looks = if value::<i64>(&self.conn, sending, []) == 0 { looks + 1 } else { 0 };
            (looks > 2).then_some(())
        });
        self.dev.advance(Duration::from_secs(1));
    }

    fn tick_until(&self, done: i64) {
        while self.state() == "running" && self.count("sent") < done {
            self.tick();
        }
    }
}

#[test]
fn a_hundred_thousand_reach_each_at_most_once() {
    let mut run = Run::start();
    run.dev.start_broadcast(&run.id);
    let total = run.scale.recipients;
    until("it is frozen", || {
        (value::<bool>(&run.conn, "SELECT frozen_at IS NOT NULL FROM broadcasts", [])).then_some(())
    });
    run.arm();
    run.tick_until(total / 20);
    let before = resident_kb(run.dev.process.id());
    run.tick_until(total / 4);
    let after = resident_kb(run.dev.process.id());
    assert!(after - before < FLAT_KB, "memory grew from {before} to {after} kB");
    for kill in 1..=KILLS {
        run.tick_until(total / 4 + total / 10 * i64::try_from(kill).unwrap());
        run.dev.advance(Duration::from_millis(300));
        std::thread::sleep(Duration::from_millis(run.rng.random_range(0..40)));
        run.dev.start_again();
        run.starts.push(run.dev.now());
        run.arm();
    }
    run.dev.broadcast(&["pause", &run.id]);
    until("nothing of it is in the queue", || (run.count("queued") == 0).then_some(()));
    let held = run.count("sent");
    run.dev.advance(Duration::from_secs(600));
    assert_eq!((run.count("sent"), run.state()), (held, "paused".to_owned()));
    run.dev.broadcast(&["resume", &run.id]);
    run.tick_until(total + 1);
    assert_eq!(run.state(), "done");
    check(&run);
}

fn check(run: &Run) {
    let counted: HashMap<&str, i64> = counts(&run.conn, &run.id).into_iter().collect();
    let count = |status: &str| counted.get(status).copied().unwrap_or_default();
    eprintln!("broadcast: {counted:?}");
    assert_eq!(counted.values().sum::<i64>(), run.scale.recipients);
    assert_eq!((count("pending"), count("queued")), (0, 0));
    // Each round of faults had 49 that are final and 102 that leave a doubt, and each kill one for what was in flight.
    let rounds = i64::try_from(KILLS).unwrap() + 1;
    assert!((49..=49 * rounds).contains(&count("undeliverable")), "{counted:?}");
    assert!((52..=102 * rounds + 16 * (rounds - 1)).contains(&count("unknown")), "{counted:?}");
    let codes = "SELECT code FROM broadcast_recipients WHERE status <> 'sent' GROUP BY code ORDER BY code";
    let known = ["blocked", "broken_connection", "crashed", "http_502", "timeout"];
    assert!(column::<String>(&run.conn, codes, []).iter().all(|code| known.contains(&code.as_str())));
    let report = run.dev.command(&["broadcast", "report", &run.id]);
    let report = String::from_utf8(report.stdout).unwrap();
    for status in ["sent", "undeliverable", "unknown"] {
        let lines = report.lines().filter(|line| line.split(',').nth(2) == Some(status)).count();
        assert_eq!(i64::try_from(lines).unwrap(), count(status), "{status} in the report");
    }
    let accepted = accepted(&run.dev);
    let mut copies: HashMap<i64, usize> = HashMap::new();
    accepted.iter().for_each(|(_, chat)| *copies.entry(*chat).or_default() += 1);
    assert!(copies.values().all(|copies| *copies == 1), "somebody was sent it twice");
    let reached = i64::try_from(copies.len()).unwrap();
    assert!((count("sent")..=count("sent") + count("unknown")).contains(&reached), "{reached} reached, {counted:?}");
    // A new process knows nothing of what the last one sent in the same second.
    let is_near_a_start = |at: &i64| run.starts.iter().any(|start| (start - 2_000..start + 2_000).contains(at));
    let at: Vec<i64> = accepted.iter().map(|(at, _)| *at).filter(|at| !is_near_a_start(at)).collect();
    // What is under way when the clock is moved is noted a second late: no more than may be under way, and once a second.
    let (busiest, limit) = (busiest(&at), usize::try_from(20 * run.scale.limits).unwrap() + IN_FLIGHT * 3 / 4);
    assert!(busiest <= limit, "{busiest} in one second, of {limit}");
    let events: i64 = value(&run.conn, "SELECT count(*) FROM outbox_events WHERE type = 'broadcast.finished'", []);
    assert_eq!(events, 1);
}

/// What a process holds in memory.
fn resident_kb(process: u32) -> i64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn five_hundred_go_in_real_time_within_the_limits() {
    let dev = Dev::start(&["store.ballast=0", "telegram.timeout=3s", "telegram.connect_timeout=1s"]);
    let conn = dev.writer();
    dev.add_people(1..=500, "en");
    dev.add_people(9001..=9001, "en");
    conn.execute("UPDATE bot_users SET optin_broadcast = 0 WHERE telegram_id = 9001", []).unwrap();
    let id = dev.draft(Some("Hello"), None, &[]);
    dev.start_broadcast(&id);
    dev.until_message(&format!("broadcast:{id}:1"), "sent");
    // A few calls hang and the others go on; what a person waits for does not wait for any of them.
    (100..103).for_each(|chat| dev.fault(&json!({"chat_id": chat, "delay_ms": 4000})));
    let mut slowest = Duration::ZERO;
    for number in 1..=8 {
        let asked = Instant::now();
        let reply = "INSERT INTO telegram_messages (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at)
                     VALUES (9001, 'reply', 'interactive', 'answer', 'plain', 'reply:' || ?1, 0, ?2, ?2)";
        conn.execute(reply, (number.to_string(), dev.now())).unwrap();
        until("the answer has left", || (dev.texts(9001).len() == number).then_some(()));
        slowest = slowest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(1_500));
    }
    assert!(slowest < Duration::from_secs(1), "an answer took {slowest:?}");
    dev.until_broadcast(&id, "done");
    let total: i64 = counts(&conn, &id).iter().map(|(_, count)| count).sum();
    assert_eq!((total, counts(&conn, &id)[0]), (501, ("sent", 497)));
    let sent = accepted(&dev);
    assert_eq!(sent.len(), 508, "each once");
    let all: Vec<i64> = sent.iter().map(|(at, _)| *at).collect();
    let bulk: Vec<i64> = sent.iter().filter(|(_, chat)| *chat != 9001).map(|(at, _)| *at).collect();
    assert_eq!((busiest(&all) <= 25, busiest(&bulk) <= 20), (true, true), "{} {}", busiest(&all), busiest(&bulk));
    let span = bulk.last().unwrap() - bulk.first().unwrap();
    assert!(span <= 40_000, "500 at 20/s took {span} ms");
}

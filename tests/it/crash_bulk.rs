//! SIGKILL while reminders, digests and a broadcast are queued and sent: each is queued once, and sent at most once.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rusqlite::Connection;

use crate::harness::broadcast::counts;
use crate::harness::crash::{self, Load, Site};
use crate::harness::file::{column, rows, value, writer};
use crate::harness::text;

/// Leaders, whose uid is their chat's id less 100,000.
const LEADERS: i64 = 40;
/// People who fall silent in the course of the run.
const PEOPLE: i64 = 4_000;

/// What the broadcast says.
const TEXT: &str = "To all";

/// Those who are sent something by the clock, and something by a person.
struct BulkLoad;

/// A time zone in which noon was a moment ago, so that each start sends what the one before did not.
fn afternoon_zone() -> &'static str {
    use chrono::Timelike;
    match chrono::Utc::now().hour() {
        // Between noon and ten in the evening there, however long the run takes.
        0..8 => "Etc/GMT-12",
        8..12 => "Etc/GMT-6",
        12..21 => "Etc/UTC",
        _ => "Etc/GMT+8",
    }
}

fn serve(place: &crate::harness::Place, fake_url: &str) -> crate::harness::Process {
    let zone = format!("jobs.time_zone={}", afternoon_zone());
    let settings = [
        "bot.event_source=local",
        "store.ballast=0",
        "telegram.timeout=2s",
        "telegram.connect_timeout=1s",
        "reminders.per_sweep=300",
        &zone,
    ];
    place.start_serve(fake_url, &settings)
}

/// A verb of `broadcast`, beside whatever process is up; whether it could be done.
fn broadcast(site: &Site, args: &[&str]) -> bool {
    let data = site.place.data();
    let mut command = site.place.command(&["broadcast", "--data-dir", text(&data)]);
    command.args(args).output().expect("the binary starts").status.success()
}

/// Pauses the broadcast and lets it go on, again and again.
fn hold(site: &Site, rng: &mut StdRng) {
    while !site.is_over() {
        std::thread::sleep(Duration::from_millis(rng.random_range(100..600)));
        if broadcast(site, &["pause", "1"]) {
            std::thread::sleep(Duration::from_millis(rng.random_range(0..200)));
            assert!(broadcast(site, &["resume", "1"]), "what was paused can go on");
        }
    }
}

impl Load for BulkLoad {
    fn prepare(&self, site: &Site, conn: &Connection) {
        let leaders = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) SELECT 100000 + i, i, 'en', 9 FROM n";
        conn.execute(leaders, [LEADERS]).expect("leaders");
        let people = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO bot_users (telegram_id, leader_uid, lang, stage, last_activity_at)
            SELECT 200000 + i, 1 + i % ?2, 'en', 1 + i % 8, 1000 + i FROM n";
        conn.execute(people, [PEOPLE, LEADERS]).expect("people");
        std::fs::write(site.place.path("text.html"), TEXT).expect("a file");
        broadcast(site, &["create", "--name", "x", "--en", "text.html", "--per-second", "300"]);
        assert!(broadcast(site, &["start", "1", "--yes"]));
    }

    fn threads(&self) -> usize {
        3
    }

    /// Asks for the passes as `pillarbox jobs run` does, and holds the broadcast now and then.
    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
        if thread == 2 {
            return hold(site, rng);
        }
        let conn = writer(&site.place.data());
        let job = ["reminders", "digest"][thread];
        while !site.is_over() {
            let sql = "INSERT INTO job_requests (job, requested_at) VALUES (?1, 1)";
            conn.execute(sql, [job]).expect("a request");
            std::thread::sleep(Duration::from_millis(rng.random_range(30..200)));
        }
    }

    fn is_quiet(&self, _: &Site, conn: &Connection) -> bool {
        let open = "SELECT (SELECT count(*) FROM telegram_messages WHERE status IN ('pending', 'sending'))
                         + (SELECT count(*) FROM job_requests WHERE taken_at IS NULL)
                         + (SELECT count(*) FROM job_runs WHERE outcome = 'running')
                         + (SELECT count(*) FROM broadcasts WHERE state <> 'done')";
        value::<i64>(conn, open, []) == 0
    }

    fn check(&self, site: &Site, conn: &Connection) {
        let reminders: i64 = value(conn, "SELECT count(*) FROM bot_reminders_sent", []);
        let digests: i64 = value(conn, "SELECT count(*) FROM bot_digests_sent", []);
        assert_eq!(digests, LEADERS, "each leader has one");
        let few = site.kills < 20;
        assert!(few || reminders > 500, "there was no load to speak of: {reminders} reminders");
        // Row and message came together, in both directions.
        let keys: Vec<String> = column(conn, "SELECT dedup_key FROM telegram_messages ORDER BY 1", []);
        let expected = "
            SELECT 'reminder:' || telegram_id || ':' || reminder_key AS key FROM bot_reminders_sent
            UNION ALL SELECT 'digest:' || leader_uid || ':' || local_date FROM bot_digests_sent
            UNION ALL SELECT 'broadcast:1:' || telegram_id FROM broadcast_recipients ORDER BY 1";
        assert_eq!(keys, column::<String>(conn, expected, []));
        let doubtful: i64 = value(conn, "SELECT count(*) FROM telegram_messages WHERE status = 'unknown'", []);
        check_sent(site, conn);
        let recipients: i64 = counts(conn, "1").iter().map(|(_, count)| count).sum();
        assert_eq!(recipients, PEOPLE + LEADERS);
        let ends: i64 = value(conn, "SELECT count(*) FROM outbox_events WHERE type = 'broadcast.finished'", []);
        assert_eq!(ends, 1, "its end is told once");
        eprintln!("crash: {reminders} reminders, {digests} digests, {recipients} recipients, {doubtful} in doubt");
    }
}

/// The fake saw each message at most once; those that the file says were sent it saw once.
fn check_sent(site: &Site, conn: &Connection) {
    let mut accepted: BTreeMap<(i64, bool), usize> = BTreeMap::new();
    site.accepted().into_iter().for_each(|(chat, text)| *accepted.entry((chat, text == TEXT)).or_default() += 1);
    let sql = "SELECT chat_id, kind = 'broadcast', status FROM telegram_messages";
    for (chat, of_broadcast, status) in rows(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))) {
        let (status, copies): (String, _) = (status, accepted.remove(&(chat, of_broadcast)).unwrap_or_default());
        match status.as_str() {
            "sent" => assert_eq!(copies, 1, "chat {chat}"),
            "unknown" => assert!(copies <= 1, "chat {chat} has {copies}"),
            other => panic!("chat {chat}: {other}"),
        }
    }
    assert!(accepted.is_empty(), "sent without a row: {accepted:?}");
}

#[test]
fn reminders_and_digests_are_queued_once_through_every_kill() {
    crash::run_on(serve, &[&BulkLoad], crash::kills());
}

//! SIGKILL while reminders and digests are queued and sent: each is queued once, and sent at most once.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rusqlite::Connection;

use crate::harness::crash::{self, Load, Site};
use crate::harness::file::{column, rows, value, writer};

/// Leaders, whose uid is their chat's id less 100,000.
const LEADERS: i64 = 40;
/// People who fall silent in the course of the run.
const PEOPLE: i64 = 4_000;

/// Those who are sent something by the clock.
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

impl Load for BulkLoad {
    fn prepare(&self, _: &Site, conn: &Connection) {
        let leaders = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) SELECT 100000 + i, i, 'en', 9 FROM n";
        conn.execute(leaders, [LEADERS]).expect("leaders");
        let people = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO bot_users (telegram_id, leader_uid, lang, stage, last_activity_at)
            SELECT 200000 + i, 1 + i % ?2, 'en', 1 + i % 8, 1000 + i FROM n";
        conn.execute(people, [PEOPLE, LEADERS]).expect("people");
    }

    fn threads(&self) -> usize {
        2
    }

    /// Asks for the passes as `pillarbox jobs run` does, and now and then for a second digest of everybody.
    fn work(&self, site: &Site, thread: usize, rng: &mut StdRng) {
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
                         + (SELECT count(*) FROM job_runs WHERE outcome = 'running')";
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
            UNION ALL SELECT 'digest:' || leader_uid || ':' || local_date FROM bot_digests_sent ORDER BY 1";
        assert_eq!(keys, column::<String>(conn, expected, []));
        let doubtful: i64 = value(conn, "SELECT count(*) FROM telegram_messages WHERE status = 'unknown'", []);
        check_sent(site, conn);
        eprintln!("crash: {reminders} reminders, {digests} digests, {doubtful} in doubt");
    }
}

/// The fake saw each message at most once; those that the file says were sent it saw once.
fn check_sent(site: &Site, conn: &Connection) {
    let mut accepted: BTreeMap<i64, usize> = BTreeMap::new();
    site.accepted().into_iter().for_each(|(chat, _)| *accepted.entry(chat).or_default() += 1);
    let sql = "SELECT chat_id, status FROM telegram_messages";
    for (chat, status) in rows(conn, sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))) {
        let copies = accepted.remove(&chat).unwrap_or_default();
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

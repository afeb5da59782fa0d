//! Digests through their job: at local noon, once a leader and day, whatever happens to clock, zone and process.

use std::time::Duration;

use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use rusqlite::Connection;

use crate::harness::dev::Dev;
use crate::harness::file::{rows, value};
use crate::harness::until;

const BERLIN: Tz = chrono_tz::Europe::Berlin;

struct Bot {
    dev: Dev,
    conn: Connection,
    zone: Tz,
}

impl Bot {
    fn start(zone: Tz) -> Self {
        let dev = Dev::start(&Self::sets(zone).each_ref().map(String::as_str));
        let conn = dev.writer();
        Self { dev, conn, zone }
    }

    fn sets(zone: Tz) -> [String; 3] {
        [
            format!("jobs.time_zone={zone}"),
            "telegram.chat_interval=0s".to_owned(),
            "telegram.bulk_per_second=25".to_owned(),
        ]
    }

    /// A leader with this uid and the chat 1000 higher, who has brought as many people as the uid says.
    fn add_leader(&self, uid: i64) {
        let leader = "INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) VALUES (?1, ?2, 'en', 8)";
        self.conn.execute(leader, [uid + 1000, uid]).expect("a leader");
        let brought = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                       INSERT INTO bot_users (telegram_id, leader_uid, stage) SELECT ?1 * 10000 + i, ?1, 1 + i % 9 FROM n";
        self.conn.execute(brought, [uid]).expect("those whom they brought");
    }

    fn local(&self) -> DateTime<Tz> {
        self.zone.timestamp_millis_opt(self.dev.now()).unwrap()
    }

    /// Moves the clock ahead to this time of the wall, on this date or, without one, the next day.
    fn advance_to(&self, date: Option<&str>, time: &str) {
        let date = date.map_or_else(|| self.local().date_naive().succ_opt().unwrap(), |date| date.parse().unwrap());
        let at = self.zone.from_local_datetime(&date.and_time(time.parse().unwrap())).unwrap();
        self.dev.advance_to(at.timestamp_millis());
    }

    fn run(&self) -> (i64, i64) {
        let counts = self.dev.run_job("digest");
        (counts["queued"].as_i64().unwrap(), counts["failed"].as_i64().unwrap())
    }

    /// Every digest of the file: leader and date.
    fn sent(&self) -> Vec<(i64, String)> {
        let sql = "SELECT leader_uid, local_date FROM bot_digests_sent ORDER BY 2, 1";
        rows(&self.conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn until_sent(&self, count: usize) {
        until(&format!("{count} digests are queued"), || (self.sent().len() >= count).then_some(()));
        assert_eq!(self.sent().len(), count);
    }
}

#[test]
fn a_leader_is_told_their_numbers_at_noon() {
    let bot = Bot::start(BERLIN);
    bot.add_leader(9);
    bot.advance_to(None, "11:59:30");
    assert_eq!(bot.run(), (0, 0), "not before noon");
    bot.dev.advance(Duration::from_secs(31));
    bot.until_sent(1);
    let date = bot.local().date_naive();
    bot.dev.until_message(&format!("digest:9:{date}"), "sent");
    let texts = bot.dev.texts(1009);
    assert_eq!(texts, ["📊 Digest\nIn the bot: 9\nWatched the video: 5\nRegistered: 2\nActivated an NFT: 1"]);
    let shown = bot.dev.http.get("/dev/telegram/messages?chat_id=1009").json();
    assert_eq!(shown["messages"][0]["reply_markup"]["inline_keyboard"][0][0]["callback_data"], "+m:cabinet");
    assert_eq!(bot.run(), (0, 0), "nor a second one");
}

#[test]
fn who_does_not_want_it_or_cannot_be_reached_has_none_and_may_have_it_later_that_day() {
    let bot = Bot::start(BERLIN);
    [1, 2, 3, 4].into_iter().for_each(|uid| bot.add_leader(uid));
    bot.conn.execute("UPDATE bot_users SET optin_digest = 0 WHERE magnet_uid = 1", []).expect("opted out");
    bot.conn.execute("UPDATE bot_users SET reachable = 'blocked' WHERE magnet_uid = 2", []).expect("blocked");
    bot.conn.execute("UPDATE bot_users SET magnet_uid = NULL WHERE magnet_uid = 3", []).expect("not bound yet");
    bot.advance_to(None, "12:00:01");
    bot.until_sent(1);
    bot.conn.execute("UPDATE bot_users SET magnet_uid = 3 WHERE telegram_id = 1003", []).expect("bound");
    bot.dev.advance(Duration::from_secs(3600));
    bot.until_sent(2);
    assert_eq!(bot.sent().iter().map(|(uid, _)| *uid).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_restart_at_noon_sends_no_second() {
    let mut bot = Bot::start(BERLIN);
    (1..=45).for_each(|uid| bot.add_leader(uid));
    bot.advance_to(None, "12:00:00");
    bot.until_sent(45);
    for _ in 0..3 {
        bot.dev.start_again();
        assert_eq!(bot.run(), (0, 0));
    }
    until("all are sent", || {
        let sql = "SELECT count(*) FROM telegram_messages WHERE kind = 'digest' AND status IN ('sent', 'unknown')";
        (value::<i64>(&bot.conn, sql, []) == 45).then_some(())
    });
    bot.until_sent(45);
}

#[test]
fn a_start_in_the_evening_still_sends() {
    let mut bot = Bot::start(BERLIN);
    bot.add_leader(5);
    bot.dev.process.kill();
    // The clock of a directory goes on where it stood: the move is left to the next process.
    bot.dev.start_again();
    bot.advance_to(None, "23:30:00");
    bot.dev.start_again();
    bot.until_sent(1);
}

#[test]
fn a_failing_leader_stops_nobody() {
    let bot = Bot::start(BERLIN);
    (1..=30).for_each(|uid| bot.add_leader(uid));
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON telegram_messages WHEN NEW.chat_id = 1007
                   BEGIN SELECT RAISE(ABORT, 'poison'); END";
    bot.conn.execute_batch(trigger).expect("a trigger");
    bot.advance_to(None, "12:00:01");
    bot.until_sent(29);
    assert_eq!(bot.run(), (0, 1));
    bot.conn.execute_batch("DROP TRIGGER poison").expect("repaired");
    bot.dev.advance(Duration::from_secs(601));
    bot.until_sent(30);
    assert_eq!(bot.run(), (0, 0));
}

#[test]
fn a_changed_zone_sends_no_second_for_the_date() {
    let bot = Bot::start(BERLIN);
    bot.add_leader(5);
    bot.advance_to(None, "12:00:01");
    bot.until_sent(1);
    // West of it, the same date has its noon still ahead.
    let Bot { dev, conn, .. } = bot;
    let Dev { place, mut process, .. } = dev;
    process.kill();
    let zone = chrono_tz::America::New_York;
    let dev = Dev::start_in(place, &Bot::sets(zone).each_ref().map(String::as_str));
    let bot = Bot { dev, conn, zone };
    let date = bot.local().date_naive().to_string();
    bot.advance_to(Some(&date), "12:00:01");
    assert_eq!(bot.run(), (0, 0));
    bot.until_sent(1);
    bot.advance_to(None, "12:00:01");
    bot.until_sent(2);
}

#[test]
fn spring_and_autumn_have_one_each() {
    for zone in [BERLIN, chrono_tz::America::New_York] {
        let bot = Bot::start(zone);
        bot.advance_to(Some("2027-03-12"), "00:30:00");
        bot.add_leader(5);
        // Both zones change on these days, or on the Sundays before.
        let mut days = 0;
        for first in ["2027-03-12", "2027-03-26", "2027-10-29", "2027-11-05"] {
            let mut date: chrono::NaiveDate = first.parse().unwrap();
            for _ in 0..4 {
                bot.advance_to(Some(&date.to_string()), "11:59:59");
                assert_eq!(bot.run(), (0, 0), "{zone} {date}");
                bot.dev.advance(Duration::from_secs(2));
                days += 1;
                bot.until_sent(days);
                assert_eq!(bot.sent().last().unwrap().1, date.to_string());
                bot.dev.advance(Duration::from_secs(3600));
                assert_eq!(bot.run(), (0, 0), "{zone} {date}");
                date = date.succ_opt().unwrap();
            }
        }
        assert_eq!(bot.sent().len(), 16, "{zone}");
    }
}

#[test]
fn a_day_that_the_clock_jumped_over_is_not_made_up() {
    let bot = Bot::start(BERLIN);
    bot.add_leader(5);
    bot.advance_to(None, "12:00:01");
    bot.until_sent(1);
    bot.dev.advance(Duration::from_secs(5 * 86_400));
    bot.until_sent(2);
    assert_eq!(bot.run(), (0, 0));
    let dates: Vec<chrono::NaiveDate> = bot.sent().iter().map(|(_, date)| date.parse().unwrap()).collect();
    assert_eq!((dates[1] - dates[0]).num_days(), 5);
}

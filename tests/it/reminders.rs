//! Reminders through their job: who is reminded of what, once, and who is not.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::file::{column, rows, value};
use crate::harness::until;

const HOUR: i64 = 3_600_000;
/// The limits of Telegram out of the way: what is measured here is who is written to.
const SETS: [&str; 3] = ["telegram.chat_interval=0s", "telegram.per_second=1000", "telegram.bulk_per_second=1000"];

struct Bot {
    dev: Dev,
    conn: Connection,
}

impl Bot {
    fn start(sets: &[&str]) -> Self {
        let dev = Dev::start(&[&SETS, sets].concat());
        let conn = dev.writer();
        Self { dev, conn }
    }

    /// A person who was last heard of so many hours ago.
    fn add(&self, telegram_id: i64, stage: i64, silent_hours: i64) {
        let sql = "INSERT INTO bot_users (telegram_id, lang, stage, last_activity_at) VALUES (?1, 'en', ?2, ?3)";
        self.conn.execute(sql, (telegram_id, stage, self.dev.now() - silent_hours * HOUR)).expect("a person");
    }

    /// Runs the sweep; how many it reminded.
    fn sweep(&self) -> i64 {
        self.dev.run_job("reminders")["queued"].as_i64().expect("a count")
    }

    /// Whom the file says to be reminded, and of what.
    fn reminded(&self) -> Vec<(i64, String)> {
        let sql = "SELECT telegram_id, reminder_key FROM bot_reminders_sent ORDER BY 1, 2";
        rows(&self.conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn until_sent(&self, telegram_id: i64, key: &str) {
        self.dev.until_message(&format!("reminder:{telegram_id}:{key}"), "sent");
    }
}

#[test]
fn two_sweeps_at_the_same_minute_remind_once() {
    let bot = Bot::start(&[]);
    bot.add(1, 3, 25);
    bot.add(2, 3, 23);
    bot.add(3, 9, 1000);
    assert_eq!((bot.sweep(), bot.sweep()), (1, 0));
    bot.until_sent(1, "stage_3");
    bot.dev.advance(Duration::from_secs(7 * 86_400));
    until("the one who fell silent later is reminded too", || (bot.reminded().len() == 2).then_some(()));
    bot.until_sent(2, "stage_3");
    assert_eq!(bot.sweep(), 0);
    assert_eq!(bot.reminded(), [(1, "stage_3".to_owned()), (2, "stage_3".to_owned())]);
    assert_eq!((bot.dev.texts(1).len(), bot.dev.texts(2).len(), bot.dev.texts(3).len()), (1, 1, 0));
}

#[test]
fn the_button_leads_to_the_next_step_in_a_message_of_its_own() {
    let bot = Bot::start(&[]);
    bot.add(1, 4, 25);
    bot.conn.execute("UPDATE bot_users SET lang = NULL", []).expect("no language chosen");
    bot.sweep();
    bot.until_sent(1, "stage_4");
    let shown = bot.dev.http.get("/dev/telegram/messages?chat_id=1").json();
    let message = &shown["messages"][0];
    assert!(message["text"].as_str().is_some_and(|text| text.contains("Видео")), "in the default language: {shown}");
    let button = &message["reply_markup"]["inline_keyboard"][0][0];
    assert_eq!(button["callback_data"], "+f:video", "{shown}");
}

#[test]
fn the_opted_out_and_the_unreachable_are_passed_over() {
    let bot = Bot::start(&[]);
    (1..=4).for_each(|telegram_id| bot.add(telegram_id, 5, 25));
    bot.conn.execute("UPDATE bot_users SET optin_urgent = 0 WHERE telegram_id = 1", []).expect("opted out");
    bot.conn.execute("UPDATE bot_users SET reachable = 'blocked' WHERE telegram_id = 2", []).expect("blocked");
    bot.conn.execute("UPDATE bot_users SET last_activity_at = NULL WHERE telegram_id = 3", []).expect("never here");
    assert_eq!((bot.sweep(), bot.sweep()), (1, 0));
    assert_eq!(bot.reminded(), [(4, "stage_5".to_owned())]);
    bot.conn.execute("UPDATE bot_users SET optin_urgent = 1, reachable = 'ok'", []).expect("back");
    assert_eq!((bot.sweep(), bot.sweep()), (2, 0), "nothing was held against them");
}

#[test]
fn whoever_blocks_the_bot_between_the_sweep_and_the_send_is_skipped() {
    let bot = Bot::start(&[]);
    bot.add(1, 5, 25);
    // Nothing is sent while a refused token holds everything.
    bot.dev.fault(&json!({"status": 401, "description": "Unauthorized", "chat_id": 1}));
    bot.sweep();
    until("the first attempt has met the fault", || {
        let sql = "SELECT count(*) FROM telegram_messages WHERE error_code = 'unauthorized'";
        (value::<i64>(&bot.conn, sql, []) == 1).then_some(())
    });
    bot.conn.execute("UPDATE bot_users SET reachable = 'blocked'", []).expect("blocked");
    bot.dev.advance(Duration::from_secs(120));
    bot.dev.until_message("reminder:1:stage_5", "skipped");
    assert_eq!(bot.dev.texts(1).len(), 0);
}

#[test]
fn a_sweep_stops_at_its_cap_and_the_next_goes_on() {
    let bot = Bot::start(&["reminders.per_sweep=60"]);
    (1..=100).for_each(|telegram_id| bot.add(telegram_id, 2, 24 + telegram_id));
    (101..=130).for_each(|telegram_id| bot.add(telegram_id, 8, 25));
    let first = bot.dev.run_job("reminders");
    assert_eq!((first["queued"].as_i64(), first["isCapped"].as_bool()), (Some(60), Some(true)));
    let of_8: i64 = value(&bot.conn, "SELECT count(*) FROM bot_reminders_sent WHERE reminder_key = 'stage_8'", []);
    assert_eq!(of_8, 30, "whoever is nearest to the goal comes first");
    let of_2 = "SELECT telegram_id FROM bot_reminders_sent WHERE reminder_key = 'stage_2' ORDER BY 1";
    assert_eq!(column::<i64>(&bot.conn, of_2, []), (71..=100).collect::<Vec<_>>(), "then the longest silent");
    assert_eq!((bot.sweep(), bot.sweep(), bot.sweep()), (60, 10, 0));
}

#[test]
fn a_person_who_climbs_is_reminded_of_the_new_stage_only() {
    let bot = Bot::start(&[]);
    bot.add(1, 5, 25);
    assert_eq!(bot.sweep(), 1);
    bot.conn.execute("UPDATE bot_users SET stage = 7", []).expect("they climbed");
    assert_eq!((bot.sweep(), bot.sweep()), (1, 0));
    assert_eq!(bot.reminded(), [(1, "stage_5".to_owned()), (1, "stage_7".to_owned())]);
}

#[test]
fn a_person_who_was_deleted_and_came_again_is_not_reminded_again() {
    let bot = Bot::start(&[]);
    bot.add(1, 5, 25);
    assert_eq!(bot.sweep(), 1);
    bot.until_sent(1, "stage_5");
    bot.conn.execute("DELETE FROM bot_users", []).expect("deleted");
    bot.conn.execute("DELETE FROM telegram_messages", []).expect("pruned, and its key with it");
    bot.add(1, 5, 25);
    assert_eq!((bot.sweep(), bot.dev.texts(1).len()), (0, 1));
    assert_eq!(value::<i64>(&bot.conn, "SELECT reminded_stage FROM bot_users", []), 5, "they are not looked at again");
}

#[test]
fn a_stage_that_is_off_reminds_nobody_and_each_has_its_own_threshold() {
    let bot = Bot::start(&["reminders.stage_3=0", "reminders.stage_4=2h"]);
    bot.add(1, 3, 1000);
    bot.add(2, 4, 3);
    bot.add(3, 5, 3);
    assert_eq!(bot.sweep(), 1);
    assert_eq!(bot.reminded(), [(2, "stage_4".to_owned())]);
}

#[test]
fn a_clock_that_jumps_reminds_once() {
    let mut bot = Bot::start(&[]);
    bot.add(1, 3, 25);
    // Somebody whose last activity lies ahead, as after a clock that was set back.
    bot.add(2, 3, -48);
    assert_eq!(bot.sweep(), 1);
    bot.until_sent(1, "stage_3");
    bot.dev.advance(Duration::from_secs(400 * 86_400));
    bot.dev.start_again();
    until("the other is reminded by the schedule", || {
        bot.dev.advance(Duration::from_secs(3600));
        (bot.reminded().len() == 2).then_some(())
    });
    assert_eq!(bot.sweep(), 0);
    bot.until_sent(2, "stage_3");
    assert_eq!((bot.dev.texts(1).len(), bot.dev.texts(2).len()), (1, 1));
}

#[test]
fn a_failing_reminder_stops_nobody() {
    let bot = Bot::start(&[]);
    (1..=60).for_each(|telegram_id| bot.add(telegram_id, 3, 100 - telegram_id));
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON telegram_messages WHEN NEW.chat_id = 2
                   BEGIN SELECT RAISE(ABORT, 'poison'); END";
    bot.conn.execute_batch(trigger).expect("a trigger");
    let counts = bot.dev.run_job("reminders");
    assert_eq!((counts["queued"].as_i64(), counts["failed"].as_i64()), (Some(59), Some(1)));
    bot.conn.execute_batch("DROP TRIGGER poison").expect("repaired");
    assert_eq!((bot.sweep(), bot.sweep()), (1, 0), "no row was left of the one that failed");
}

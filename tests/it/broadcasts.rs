//! Broadcasts by the command line beside a server: whom they reach, what holds them, and what their author is told.

use std::time::Duration;

use chrono::Timelike;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::broadcast::counts;
use crate::harness::dev::Dev;
use crate::harness::file::{column, rows, value};
use crate::harness::until;

/// The limits of Telegram out of the way.
const FAST: [&str; 5] = [
    "telegram.chat_interval=0s",
    "telegram.per_second=1000",
    "telegram.bulk_per_second=1000",
    "telegram.max_in_flight=64",
    "store.ballast=0",
];

fn start() -> (Dev, Connection) {
    let dev = Dev::start(&FAST);
    let conn = dev.writer();
    (dev, conn)
}

#[test]
fn it_reaches_its_audience_each_in_their_language_and_its_end_is_an_event() {
    let (dev, conn) = start();
    dev.add_people(1..=60, "en");
    dev.add_people(61..=90, "ru");
    conn.execute_batch(
        "UPDATE bot_users SET optin_broadcast = 0 WHERE telegram_id = 1;
         UPDATE bot_users SET reachable = 'blocked' WHERE telegram_id = 2;
         UPDATE bot_users SET lang = NULL WHERE telegram_id = 3;",
    )
    .unwrap();
    let button = ["--button-en", "Open", "--button-url", "https://site.example/?a=1&b=2", "--per-second", "500"];
    let ru = [&button[..], &["--button-ru", "Открыть"]].concat();
    let id = dev.draft(Some("Hello, <b>all</b> &amp; sundry!\n"), Some("Привет, <b>всем</b>!"), &ru);
    dev.start_broadcast(&id);
    dev.until_broadcast(&id, "done");
    assert_eq!(counts(&conn, &id), [("sent", 88), ("skipped", 2)]);
    let shown = dev.http.get("/dev/telegram/messages?chat_id=60").json();
    let message = &shown["messages"][0];
    assert_eq!((&message["text"], &message["entities"][0]["type"]), (&json!("Hello, all & sundry!"), &json!("bold")));
    let button = &message["reply_markup"]["inline_keyboard"][0][0];
    assert_eq!((&button["text"], &button["url"]), (&json!("Open"), &json!("https://site.example/?a=1&b=2")));
    assert_eq!(dev.texts(61), ["Привет, всем!"]);
    assert_eq!(dev.texts(3), ["Привет, всем!"], "the default language is ru");
    assert_eq!((dev.texts(1).len(), dev.texts(2).len()), (0, 0));
    let event: String = until("its end is told", || {
        let sql = "SELECT payload FROM outbox_events WHERE type = 'broadcast.finished' AND published_at > 0";
        conn.query_row(sql, [], |row| row.get(0)).ok()
    });
    let event: Value = serde_json::from_str(&event).unwrap();
    let data = json!({"broadcast_id": 1, "outcome": "done", "total": 90, "sent": 88, "undeliverable": 0, "unknown": 0, "skipped": 2});
    assert_eq!(event, data);
    assert_eq!(
        dev.run_job("broadcasts"),
        json!({"started": 0, "frozen": 0, "queued": 0, "takenBack": 0, "finished": 0})
    );
    let report = dev.command(&["broadcast", "report", &id]);
    let report = String::from_utf8(report.stdout).unwrap();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!((lines.len(), lines[0]), (91, "telegram_id,lang,status,code,finished_at,telegram_message_id"));
    assert!(
        lines[1].starts_with("1,en,skipped,opted_out,") && lines[2].starts_with("2,en,skipped,blocked,"),
        "{report}"
    );
    assert!(lines[61].starts_with("61,ru,sent,,20"), "{report}");
}

#[test]
fn preview_counts_what_start_freezes() {
    let (dev, conn) = start();
    dev.add_people(1..=5000, "en");
    conn.execute_batch(
        "UPDATE bot_users SET lang = 'ru' WHERE telegram_id % 5 = 0;
         UPDATE bot_users SET lang = NULL WHERE telegram_id % 7 = 0;
         UPDATE bot_users SET leader_uid = 9 WHERE telegram_id % 2 = 0;
         UPDATE bot_users SET optin_broadcast = 0 WHERE telegram_id % 11 = 0;
         UPDATE bot_users SET reachable = 'deactivated' WHERE telegram_id % 13 = 0;",
    )
    .unwrap();
    let recent = "UPDATE bot_users SET last_activity_at = ?1 WHERE telegram_id % 3 = 0";
    conn.execute(recent, [dev.now() - 3_600_000]).unwrap();
    let audiences: [&[&str]; 7] = [
        &[],
        &["--stage", "5..7"],
        &["--lang", "ru"],
        &["--leader", "9", "--no-nft"],
        &["--leader", "9", "--nft"],
        &["--active-within", "2h", "--no-nft"],
        &["--stage", "1", "--lang", "en", "--leader", "9", "--active-within", "30d"],
    ];
    for audience in audiences {
        let id = dev.draft(Some("Hello"), None, audience);
        let preview = dev.broadcast(&["preview", &id]).remove(0);
        dev.start_broadcast(&id);
        until("it is frozen", || {
            value::<bool>(&conn, "SELECT frozen_at IS NOT NULL FROM broadcasts WHERE id = ?1", [&id]).then_some(())
        });
        let frozen = |condition: &str| {
            let sql = format!("SELECT count(*) FROM broadcast_recipients WHERE broadcast_id = ?1 AND {condition}");
            value::<i64>(&conn, &sql, [&id])
        };
        let skipped = |code: &str| preview["skipped"][code].as_i64().unwrap_or_default();
        assert!(preview["total"].as_i64() > Some(0), "{audience:?}: {preview}");
        assert_eq!(preview["total"], frozen("true"), "{audience:?}");
        // A code of the freeze; whoever was sent it meanwhile has none of these.
        for code in ["blocked", "opted_out", "no_text"] {
            assert_eq!(
                skipped(code),
                frozen(&format!("status = 'skipped' AND code = '{code}'")),
                "{audience:?} {code}"
            );
        }
        assert_eq!(preview["eligible"], frozen("status <> 'skipped'"), "{audience:?}");
    }
}

#[test]
fn recipients_are_frozen_at_the_start() {
    let (dev, conn) = start();
    dev.add_people(1..=300, "en");
    let id = dev.draft(Some("Hello"), None, &["--per-second", "100"]);
    dev.start_broadcast(&id);
    until("it is frozen", || {
        value::<bool>(&conn, "SELECT frozen_at IS NOT NULL FROM broadcasts WHERE id = ?1", [&id]).then_some(())
    });
    dev.add_people(301..=310, "en");
    conn.execute("UPDATE bot_users SET optin_broadcast = 0 WHERE telegram_id = 300", []).unwrap();
    dev.advance(Duration::from_secs(20));
    dev.until_broadcast(&id, "done");
    assert_eq!(counts(&conn, &id), [("sent", 299), ("skipped", 1)], "an opt-out counts to the last moment");
    assert_eq!(dev.texts(305).len(), 0);
}

#[test]
fn one_starts_by_itself_at_its_time_and_a_second_start_is_refused() {
    let (dev, conn) = start();
    dev.add_people(1..=5, "en");
    let id = dev.draft(Some("Hello"), None, &[]);
    let at = chrono::DateTime::from_timestamp_millis(dev.now() + 7_200_000).unwrap().to_rfc3339();
    dev.broadcast(&["start", &id, "--at", &at, "--yes"]);
    dev.run_job("broadcasts");
    assert_eq!(counts(&conn, &id), []);
    dev.advance(Duration::from_secs(7_199));
    dev.until_broadcast(&id, "scheduled");
    dev.advance(Duration::from_secs(10));
    dev.until_broadcast(&id, "done");
    for verb in [&["start", &id, "--yes"][..], &["pause", &id], &["resume", &id], &["cancel", &id, "--yes"]] {
        let said = dev.broadcast_refused(verb);
        assert!(said.contains("the broadcast is done"), "{said}");
    }
    let said = dev.broadcast_refused(&["start", "99", "--yes"]);
    assert!(said.contains("there is no broadcast 99"), "{said}");
}

#[test]
fn what_telegram_would_refuse_is_refused_when_it_is_made() {
    let dev = Dev::start(&FAST);
    let path = dev.place.path("text.html");
    let path = path.to_str().unwrap();
    let cases: [(&str, &[&str], &str); 8] = [
        ("<b></b>", &[], "nothing is left to be seen"),
        ("<b>Hello", &[], "a tag is never closed"),
        ("<blink>Hello</blink>", &[], "there is no tag <blink>"),
        (&"я".repeat(4097), &[], "4097 of at most 4096 characters"),
        ("Hello", &["--button-url", "javascript:alert(1)", "--button-en", "x"], "the button's address"),
        ("Hello", &["--button-url", "https://a.example"], "the button has to say something"),
        ("Hello", &["--button-url", "https://a.example", "--button-en", "a\nb"], "a button has one line"),
        ("Hello", &["--quiet", "08:00-08:00"], "they end where they begin"),
    ];
    for (text, flags, why) in cases {
        std::fs::write(path, text).unwrap();
        let said = dev.broadcast_refused(&[&["create", "--name", "x", "--en", path], flags].concat());
        assert!(said.contains(why), "{said}");
    }
    let said = dev.broadcast_refused(&["create", "--name", "x"]);
    assert!(said.contains("there is none in any language"), "{said}");
    assert_eq!(value::<i64>(&dev.reader(), "SELECT count(*) FROM broadcasts", []), 0);
}

#[test]
fn a_test_goes_to_one_chat_whatever_that_has_opted_out_of() {
    let (dev, conn) = start();
    dev.add_people(1..=2, "en");
    conn.execute("UPDATE bot_users SET optin_broadcast = 0", []).unwrap();
    let id = dev.draft(Some("Hello"), None, &[]);
    for copies in 1..=2 {
        dev.broadcast(&["test", &id, "--chat", "1", "--lang", "en"]);
        until("the test arrives", || (dev.texts(1).len() == copies).then_some(()));
        dev.advance(Duration::from_secs(2));
    }
    assert_eq!((dev.texts(1)[0].as_str(), dev.texts(2).len()), ("Hello", 0));
    let said = dev.broadcast_refused(&["test", &id, "--chat", "1", "--lang", "ru"]);
    assert!(said.contains("no text in ru"), "{said}");
    assert_eq!(value::<String>(&conn, "SELECT state FROM broadcasts", []), "draft");
}

#[test]
fn a_pause_takes_back_what_was_not_sent_and_resume_goes_on_with_it() {
    let (dev, conn) = start();
    dev.add_people(1..=400, "en");
    let id = dev.draft(Some("Hello"), None, &["--per-second", "20"]);
    dev.start_broadcast(&id);
    until("the queue has its window", || {
        value::<bool>(&conn, "SELECT queued >= 150 FROM broadcasts", []).then_some(())
    });
    assert!(value::<i64>(&conn, "SELECT queued FROM broadcasts", []) <= 200, "ten seconds' worth");
    dev.broadcast(&["pause", &id]);
    let waiting = "SELECT count(*) FROM telegram_messages WHERE status IN ('pending', 'sending')";
    until("nothing of it is in the queue", || (value::<i64>(&conn, waiting, []) == 0).then_some(()));
    let before = counts(&conn, &id);
    dev.advance(Duration::from_secs(3600));
    dev.run_job("broadcasts");
    assert_eq!(counts(&conn, &id), before, "nothing goes on");
    dev.broadcast(&["resume", &id]);
    until("all are sent", || {
        dev.advance(Duration::from_secs(1));
        (value::<String>(&conn, "SELECT state FROM broadcasts", []) == "done").then_some(())
    });
    assert_eq!(counts(&conn, &id), [("sent", 400)]);
    let twice = "SELECT count(*) FROM (SELECT chat_id FROM telegram_messages GROUP BY chat_id HAVING count(*) > 1)";
    assert_eq!(value::<i64>(&conn, twice, []), 0);
    assert!((1..=400).all(|chat| dev.texts(chat).len() == 1));
}

#[test]
fn cancel_leaves_the_rest_unsent() {
    let (dev, conn) = start();
    dev.add_people(1..=300, "en");
    let id = dev.draft(Some("Hello"), None, &["--per-second", "10"]);
    dev.start_broadcast(&id);
    dev.until_message(&format!("broadcast:{id}:1"), "sent");
    dev.broadcast(&["cancel", &id, "--yes"]);
    until("its end is told", || {
        let sql = "SELECT count(*) FROM outbox_events WHERE type = 'broadcast.finished'";
        (value::<i64>(&conn, sql, []) == 1).then_some(())
    });
    dev.advance(Duration::from_secs(3600));
    dev.run_job("broadcasts");
    let status = dev.broadcast(&["status", &id]).remove(0);
    let (sent, not_sent) = (status["sent"].as_i64().unwrap(), status["notSent"].as_i64().unwrap());
    assert_eq!((status["state"].as_str(), sent + not_sent), (Some("cancelled"), 300));
    assert!((1..100).contains(&sent), "{status}");
    let reached = (1..=300).filter(|chat| !dev.texts(*chat).is_empty()).count();
    assert_eq!(i64::try_from(reached).unwrap(), sent);
    let events: i64 = value(&conn, "SELECT count(*) FROM outbox_events WHERE type = 'broadcast.finished'", []);
    assert_eq!(events, 1);
}

#[test]
fn one_that_fails_alike_pauses_itself() {
    let (dev, conn) = start();
    dev.add_people(1..=400, "en");
    let refusal = json!({"method": "sendMessage", "status": 400, "description": "Bad Request: not enough rights to send text messages to the chat", "times": 40});
    dev.fault(&refusal);
    let id = dev.draft(Some("Hello"), None, &["--per-second", "100"]);
    dev.start_broadcast(&id);
    until("it pauses", || {
        dev.advance(Duration::from_millis(200));
        (value::<String>(&conn, "SELECT state FROM broadcasts", []) == "paused").then_some(())
    });
    until("nothing of it is in the queue", || {
        (counts(&conn, &id).iter().all(|(name, _)| *name != "queued")).then_some(())
    });
    let status = dev.broadcast(&["status", &id]).remove(0);
    assert_eq!((status["state"].as_str(), status["pauseCode"].as_str()), (Some("paused"), Some("no_rights")));
    assert_eq!(status["undeliverable"], 40);
    assert!(dev.place.logs().contains("a broadcast has paused itself"));
    dev.broadcast(&["resume", &id]);
    until("all others are sent", || {
        dev.advance(Duration::from_secs(1));
        (value::<String>(&conn, "SELECT state FROM broadcasts", []) == "done").then_some(())
    });
    assert_eq!(counts(&conn, &id), [("sent", 360), ("undeliverable", 40)], "a person has seen to it");
}

#[test]
fn failures_of_many_kinds_do_not_pause_it() {
    let (dev, conn) = start();
    dev.add_people(1..=120, "en");
    for (chat, fault) in (1..=120).filter(|chat| chat % 2 == 0).zip(
        [
            json!({"status": 403, "description": "Forbidden: bot was blocked by the user"}),
            json!({"status": 400, "description": "Bad Request: chat not found"}),
            json!({"status": 403, "description": "Forbidden: user is deactivated"}),
            json!({"drop_response": true}),
        ]
        .into_iter()
        .cycle(),
    ) {
        let mut fault = fault;
        fault["chat_id"] = json!(chat);
        dev.fault(&fault);
    }
    let id = dev.draft(Some("Hello"), None, &["--per-second", "100"]);
    dev.start_broadcast(&id);
    dev.until_broadcast(&id, "done");
    assert_eq!(counts(&conn, &id), [("sent", 60), ("undeliverable", 45), ("unknown", 15)]);
    let codes = "SELECT code FROM broadcast_recipients WHERE status <> 'sent' GROUP BY code ORDER BY code";
    assert_eq!(column::<String>(&conn, codes, []), ["blocked", "broken_connection", "chat_not_found", "deactivated"]);
    // A doubtful one is a person's to repeat; what was counted moves.
    let doubtful: i64 = value(&conn, "SELECT id FROM telegram_messages WHERE status = 'unknown' LIMIT 1", []);
    assert!(dev.command(&["messages", "retry", &doubtful.to_string()]).status.success());
    until("it is sent", || (counts(&conn, &id)[0] == ("sent", 61)).then_some(()));
    assert_eq!(counts(&conn, &id), [("sent", 61), ("undeliverable", 45), ("unknown", 14)]);
    let events: i64 = value(&conn, "SELECT count(*) FROM outbox_events WHERE type = 'broadcast.finished'", []);
    assert_eq!(events, 1, "its end is told once");
}

#[test]
fn quiet_hours_hold_over_a_restart() {
    let (mut dev, conn) = start();
    dev.add_people(1..=600, "en");
    // Ten seconds before they begin, by the clock of the zone.
    let zone = chrono_tz::Asia::Kathmandu;
    let now = chrono::DateTime::from_timestamp_millis(dev.now()).unwrap().with_timezone(&zone);
    let from = (now + chrono::Duration::minutes(2)).with_second(0).unwrap();
    let to = from + chrono::Duration::hours(10);
    let hours = format!("{}-{}", from.format("%H:%M"), to.format("%H:%M"));
    let id = dev.draft(Some("Hello"), None, &["--per-second", "20", "--quiet", &hours, "--zone", zone.name()]);
    dev.advance_to(from.timestamp_millis() - 10_000);
    dev.start_broadcast(&id);
    let sent = "SELECT count(*) FROM broadcast_recipients WHERE status = 'sent'";
    until("some are sent", || (value::<i64>(&conn, sent, []) >= 5).then_some(()));
    dev.advance_to(from.timestamp_millis());
    until("nothing of it is in the queue", || {
        dev.run_job("broadcasts");
        (value::<i64>(&conn, "SELECT queued FROM broadcasts", []) == 0).then_some(())
    });
    let before = value::<i64>(&conn, sent, []);
    assert!(before < 300, "{before} were sent in ten seconds");
    for hour in 1..=9 {
        dev.advance_to(from.timestamp_millis() + hour * 3_600_000);
        if hour % 4 == 0 {
            dev.start_again();
        }
        dev.run_job("broadcasts");
        dev.http.done("/dev/jobs/telegram-send/run", &json!({}));
    }
    assert_eq!(value::<i64>(&conn, sent, []), before, "not one in the quiet hours");
    dev.advance_to(to.timestamp_millis());
    until("the rest is sent in the morning", || {
        dev.advance(Duration::from_secs(1));
        (value::<String>(&conn, "SELECT state FROM broadcasts", []) == "done").then_some(())
    });
    let (from, to) = (from.timestamp_millis(), to.timestamp_millis());
    let quiet = "SELECT count(*) FROM broadcast_recipients WHERE finished_at BETWEEN ?1 AND ?2 AND status = 'sent'";
    assert_eq!(value::<i64>(&conn, quiet, [from + 1000, to - 1]), 0);
    let total: i64 = counts(&conn, &id).iter().filter(|(status, _)| *status != "unknown").map(|(_, count)| count).sum();
    assert!(total >= 595, "{total}");
}

#[test]
fn a_watcher_is_told_until_it_is_over() {
    let (dev, _) = start();
    dev.add_people(1..=40, "en");
    let id = dev.draft(Some("Hello"), None, &["--per-second", "20"]);
    dev.start_broadcast(&id);
    let lines = dev.broadcast(&["status", &id, "--watch"]);
    let last = lines.last().unwrap();
    assert_eq!((last["state"].as_str(), last["sent"].as_i64()), (Some("done"), Some(40)), "{last}");
    let names = rows(&dev.reader(), "SELECT name, state FROM broadcasts", [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    });
    assert_eq!(names, [("test".to_owned(), "done".to_owned())]);
    let listed = dev.broadcast(&["list"]);
    assert_eq!((listed.len(), listed[0]["total"].as_i64()), (1, Some(40)));
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let (dev, _) = start();
    dev.add_people(1..=90, "en");
    dev.writer().execute("UPDATE bot_users SET last_activity_at = ?1", [dev.now()]).unwrap();
    for (name, text) in [("spring.ru.html", "Весна"), ("spring.en.html", "Spring")] {
        std::fs::write(dev.place.path(name), text).unwrap();
    }
    let page = include_str!("../../docs/bot.md");
    let shown =
        crate::docs::blocks_of(page, "sh").into_iter().find(|block| block.contains("broadcast create")).unwrap();
    for line in shown.lines() {
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        dev.broadcast(&words);
    }
    let report = std::fs::read_to_string(dev.place.path("spring.csv")).unwrap();
    assert_eq!(report.lines().count(), 31, "a third of them is at these stages: {report}");
    assert_eq!(dev.texts(5), ["Spring"]);
    until("the test arrives", || (dev.texts(123_456) == ["Spring"]).then_some(()));
}

//! The examples of the README, as they stand there, against a running server. Those about leads are in `docs_leads.rs`.

use std::process::Command;

use crate::harness::dev::Dev;
use crate::harness::http::Client;
use crate::harness::{Place, file, text, until};

/// The fenced blocks of the README in this language, in order.
fn blocks(language: &str) -> Vec<String> {
    blocks_of(include_str!("../../README.md"), language)
}

/// The fenced blocks of a page in this language, in order.
pub(crate) fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// What a script for the shell prints, with this in its environment; `None` if something that it calls is not installed.
pub(crate) fn run_script(script: &str, environment: &[(&str, &str)]) -> Option<String> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-euc", script]).envs(environment.iter().copied()).output().ok()?;
    let (said, code) = (String::from_utf8_lossy(&output.stdout).trim().to_owned(), output.status.code());
    assert!(matches!(code, Some(0 | 127)), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(said).filter(|_| code == Some(0))
}

#[test]
fn the_sql_example_emits_an_event_in_its_own_transaction() {
    let dev = Dev::start(&[]);
    dev.writer().execute_batch("CREATE TABLE my_users (id INTEGER PRIMARY KEY, wallet TEXT)").unwrap();
    let example = &blocks("sql")[0];
    let run = dev.command(&["sql", "--write", example]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    dev.until_event(1, "handled", 0);
}

#[test]
fn the_http_example_answers_as_it_says() {
    let dev = Dev::start(&["bot.event_source=off"]);
    let example = blocks("sh").into_iter().find(|block| block.starts_with("curl")).expect("there is a curl example");
    let script = example.replace("http://127.0.0.1:8080", dev.http.url());
    let run = || run_script(&script, &[("BOT_TO_BACKEND_SECRET", dev.http.secret())]);
    let Some(first) = run() else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    assert_eq!(first, r#"{"id":1}"#);
    assert_eq!(run().unwrap(), r#"{"id":1}"#, "the same dedup key emits nothing");
    let emitted: i64 = file::value(&dev.reader(), "SELECT count(*) FROM bot_event_outbox", []);
    assert_eq!(emitted, 1);
}

#[test]
fn the_commands_that_look_around_are_commands() {
    let dev = Dev::start(&[]);
    let shown = blocks("sh").into_iter().find(|block| block.contains("outbox list")).expect("they are there");
    for line in shown.lines() {
        let command = line.split(" --data-dir").next().unwrap().trim_start_matches("pillarbox ");
        let mut args: Vec<&str> = command.split(' ').collect();
        if args == ["sql"] {
            args.push("SELECT * FROM bot_users");
        }
        let run = dev.command(&args);
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    }
}

/// What the demo tells in this place, played from its first line to its last; then `afterwards` has the server to itself.
fn tell(place: &Place, afterwards: fn(&str)) -> String {
    let data = place.data();
    let mut process = place.start(&["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0"], &[]);
    let told = until("the demo is over", || {
        assert!(process.has_ended().is_none(), "{}", process.log());
        Some(process.log()).filter(|log| log.contains("/bot/events\n\n") || log.ends_with("/bot/events\n"))
    });
    afterwards(&told);
    process.stop();
    told
}

/// What the demo prints at its end is what the server takes.
fn post_its_lead_and_its_event(told: &str) {
    let command = told.lines().find(|line| line.trim_start().starts_with("curl -s -H 'Origin")).expect("it is there");
    let Some(answer) = run_script(command, &[]) else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    assert!(answer.starts_with("{\"ok\":true"), "{answer}");
    let after = told.split("Post an event of your own").nth(1).expect("it is there");
    let (post, look) = after.split_once(":\n").expect("lines").1.split_once("/v1/events\n").expect("two commands");
    let answer = run_script(&format!("{post}/v1/events"), &[]).expect("curl is installed");
    assert!(answer.starts_with("{\"event_id\":\""), "{answer}");
    until("the receiver has it, verified", || {
        let came = run_script(look.lines().next().expect("a line"), &[]).expect("curl is installed");
        let came: serde_json::Value = serde_json::from_str(&came).expect("JSON");
        // The lead's own webhook may come before it or after.
        let is_it = |request: &serde_json::Value| {
            request["verified"] == true && request["body"].as_str().is_some_and(|body| body.contains("order.paid"))
        };
        came["requests"].as_array()?.iter().any(is_it).then_some(())
    });
}

/// The story without what may differ: addresses, ids, times, the log's own lines, and what to do afterwards.
fn story(told: &str) -> String {
    let ours =
        told.lines().skip(2).take_while(|line| !line.starts_with("That was")).filter(|line| !line.starts_with('{'));
    let (mut story, mut in_number) = (String::new(), false);
    for c in ours.flat_map(|line| line.chars().chain(['\n'])) {
        if !(c.is_ascii_digit() && in_number) {
            story.push(if c.is_ascii_digit() { '#' } else { c });
        }
        in_number = c.is_ascii_digit();
    }
    story
}

/// More texts than one page of `/dev/telegram/messages` holds.
fn fill_the_fake(place: &Place) {
    let (data, ready) = (place.data(), place.path("dev.ready"));
    let args = ["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo", "--ready-file", text(&ready)];
    let mut process = place.start(&args, &[]);
    let http = Client::new(process.ready_file(&ready)["url"].as_str().unwrap(), None);
    for number in 0..1001 {
        http.get(&format!("/bot1:a/sendMessage?chat_id=5&text={number}"));
    }
    process.stop();
}

#[test]
fn the_demo_tells_the_same_story_again_in_the_same_directory() {
    let place = Place::new();
    let told = tell(&place, |_| {});
    for line in [
        "event 1 wallet_connected (uid:7): processed",
        "to chat 103: sent, attempts 2\n",
        "to chat 103: sent, attempts 2, unknownCount 1\n",
        "to chat 109: undeliverable, attempts 1, errorCode blocked",
        "web cabinet of member 9: A new partner",
        "           blocked\n",
        "event 7 status_nft_activated (uid:7): abandoned after 10 attempts",
        "event 10 registered (uid:9): dead after 10 attempts",
        "pillarbox outbox retry 10 -> reopened",
        "event 10 registered (uid:9): processed",
        "Telegram, chat -1001: Новая заявка ипотечному брокеру",
        "        Что уже проверено: Диагностика пройдена\n",
        ": sent, attempts 1\n",
        "-> 200 {\"ok\":true,\"success\":true,\"duplicate\":true,",
        "/dev/sink/crm has received lead.received: the signature fits\n",
        "delivery of lead.received: delivered, attempts 1\n",
        "delivery of member.registered: pending, attempts 1, last error http_503; next attempt 20",
        "received member.registered: the signature fits, and it bears the webhook-id of the attempt before\n",
        "delivery of member.registered: delivered, attempts 2\n",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    assert!(!told.contains("Банк одобрил"), "{told}");
    assert!(told.lines().count() <= 130, "nobody reads more\n{told}");
    // As many rows as a hundred demos leave behind, and an open event of one that was cut off in the middle.
    file::writer(&place.data())
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
             INSERT INTO telegram_messages (chat_id, kind, lane, text, format, dedup_key, status, due_at, waiting_since,
                                            created_at, finished_at)
             SELECT 5, 'event', 'transactional', 'x', 'plain', 'old' || i, 'sent', 1, 1, 1, 1 FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)
             INSERT INTO bot_event_outbox (event_type, telegram_id, payload, processed_at, outcome)
             SELECT 'reactivation', 5, '{}', 1, 'handled' FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
             INSERT INTO web_notifications (magnet_uid, kind, title, body, created_at)
             SELECT 5, 'x', 'x', 'x', 1 FROM n;
             INSERT INTO bot_event_outbox (event_type, magnet_uid, telegram_id, payload)
             VALUES ('status_nft_activated', 7, 107, '{}')",
        )
        .unwrap();
    fill_the_fake(&place);
    assert_eq!(story(&tell(&place, post_its_lead_and_its_event)), story(&told));
}

//! The examples of the README, as they stand there, against a running server.

use std::process::Command;

use crate::harness::dev::Dev;
use crate::harness::{file, until};

/// The fenced blocks of the README in this language, in order.
fn blocks(language: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let fence = format!("```{language}\n");
    readme.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
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
    let run = || {
        let mut curl = Command::new("sh");
        curl.args(["-euc", &script]).env("BOT_TO_BACKEND_SECRET", dev.http.secret());
        match curl.output() {
            Ok(output) if output.status.code() == Some(127) => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            Err(_) => None,
        }
    };
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

#[test]
fn the_demo_tells_its_story_to_the_end() {
    let place = crate::harness::Place::new();
    let data = place.data();
    let mut process = place.start(&["dev", "--data-dir", crate::harness::text(&data), "--listen", "127.0.0.1:0"], &[]);
    let told = until("the demo is over", || {
        assert!(process.has_ended().is_none(), "{}", process.log());
        Some(process.log()).filter(|log| log.contains("That was the demo."))
    });
    for line in [
        "event 1 wallet_connected (uid:7): processed",
        "web cabinet of member 9: A new partner",
        "event 7 status_nft_activated (uid:7): abandoned, 10 failed",
        "event 10 registered (uid:9): dead, 10 failed",
        "pillarbox outbox retry 10 -> reopened",
        "event 10 registered (uid:9): processed",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
}

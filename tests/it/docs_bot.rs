//! The examples of docs/bot.md, as they stand there, against a running server.

use serde_json::{Value, json};

use crate::docs::{blocks_of, run_script};
use crate::harness::dev::Dev;
use crate::harness::file::value;
use crate::harness::until;

const PAGE: &str = include_str!("../../docs/bot.md");

/// The example in this language that has these words in it.
fn example(language: &str, words: &str) -> String {
    blocks_of(PAGE, language).into_iter().find(|block| block.contains(words)).expect("the example is there")
}

#[test]
fn a_member_put_by_hand_and_one_put_by_sql_are_told_of() {
    let dev = Dev::start(&["bot.event_source=off"]);
    let conn = dev.writer();
    conn.execute_batch("INSERT INTO members (uid) VALUES (3)").unwrap();
    let command = env!("CARGO_BIN_EXE_pillarbox");
    let data = dev.place.data();
    let ours = format!("{command} keys create --data-dir {}", data.display());
    let script = example("sh", "/v1/members/7").replace("pillarbox keys create", &ours);
    let script = script.replace("http://127.0.0.1:8080", dev.http.url());
    let Some(answer) = run_script(&script, &[]) else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    let put: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(put["published"], json!(["member.wallet_connected", "member.registered", "partner.joined"]));

    let shown = example("sql", "INSERT INTO members").replace("(7, 'Anna'", "(8, 'Vera'");
    conn.execute_batch(&shown).unwrap();
    let told = "SELECT count(*) FROM bot_event_outbox WHERE magnet_uid = 8";
    until("the member of the SQL example is told of", || (value::<i64>(&conn, told, []) == 1).then_some(()));
}

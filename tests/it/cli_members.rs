//! `pillarbox members`: importing files and looking, beside a server or without one.

use std::fmt::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::{Place, Ran};
use crate::harness::dev::Dev;
use crate::harness::file::{self, value};
use crate::harness::{until, until_within};

fn members(place: &Place, args: &[&str]) -> Ran {
    let mut all = vec!["members"];
    all.extend(args);
    place.run(&all)
}

fn write_file(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).unwrap();
}

/// The counts that an import prints: stored, unchanged, bad, lines.
fn counts(ran: &Ran) -> [i64; 4] {
    let row = ran.rows().remove(0);
    ["stored", "unchanged", "bad", "lines"].map(|name| row[name].as_i64().unwrap())
}

/// Every field of every member but its times.
fn everyone(place: &Place) -> Vec<Value> {
    place.query(
        "SELECT uid, link, name, telegram_id, preview_telegram_id, parent_uid, addr, lp1, lp2, time_active,
                registration_confirmed FROM members ORDER BY uid",
    )
}

fn events(place: &Place) -> Vec<String> {
    let sql = "SELECT event_type || ' ' || magnet_uid || ' ' || payload AS told FROM bot_event_outbox ORDER BY id";
    place.query(sql).iter().map(|row| row["told"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn csv_and_ndjson_mean_the_same() {
    let (a, b) = (Place::migrated(), Place::migrated());
    write_file(
        &a,
        "m.csv",
        "\u{feff}uid,link,name,telegram_id,parent_uid,addr,lp1,time_active,registration_confirmed\r\n\
         3,boris,\"Борис, \"\"Б\"\"\",103,,,,,\r\n\
         \r\n\
         7,anna,Анна,,3,0xA1,1,2027-06-01T00:00:00Z,true\r\n\
         3,\\N,,,,0xB2,,,",
    );
    let lines = [
        json!({"uid": 3, "link": "boris", "name": "Борис, \"Б\"", "telegram_id": "103"}),
        json!({"uid": 7, "link": "anna", "name": "Анна", "parent_uid": 3, "addr": "0xA1", "lp1": true,
            "time_active": "2027-06-01T00:00:00Z", "registration_confirmed": true}),
        json!({"uid": 3, "link": null, "addr": "0xB2"}),
    ];
    write_file(&b, "m.ndjson", &lines.map(|line| line.to_string()).join("\n"));
    assert_eq!(counts(&members(&a, &["import", "m.csv"]).succeeded()), [3, 0, 0, 5]);
    assert_eq!(counts(&members(&b, &["import", "m.ndjson"]).succeeded()), [3, 0, 0, 3]);
    assert_eq!(everyone(&a), everyone(&b));
    let expected = [
        "wallet_connected 7 {}",
        r#"registered 7 {"parentUid":3}"#,
        r#"new_partner 3 {"partnerName":"Анна","partnerUid":7}"#,
        r#"status_nft_activated 7 {"level":"lp1"}"#,
        "wallet_connected 3 {}",
    ];
    assert_eq!(events(&a), expected);
    assert_eq!(events(&b), expected);
}

#[test]
fn bad_lines_are_told_by_number() {
    let place = Place::migrated();
    let text = [
        r#"{"uid": 1, "link": "one", "telegram_id": "101"}"#,
        r#"{"uid": 2, "link": "one"}"#,
        "",
        "Ivan +79991234567",
        r#"{"uid": 3, "telegram_id": "Ivan"}"#,
        r#"{"uid": 4, "parent_uid": 99}"#,
        r#"{"uid": 5, "telegram_id": "101"}"#,
        r#"{"uid": 6, "Ivan": 1}"#,
        r#"{"uid": 7, "name": "Ivan"}"#,
        r#"{"uid": 1, "link": "one"}"#,
    ];
    write_file(&place, "m.ndjson", &text.join("\n"));
    let ran = members(&place, &["import", "m.ndjson"]);
    assert_eq!((ran.code, counts(&ran)), (1, [2, 1, 6, 10]));
    let expected = [
        "line 2: link: is another member's",
        "line 4: is not an object of JSON",
        "line 5: telegram_id: must be a text of digits",
        "line 6: parent_uid: is no member yet",
        "line 7: telegram_id: is bound to another member",
        "line 8: has a field that members do not have",
    ];
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(told, expected);
    assert!(!ran.stderr.contains("Ivan") && !ran.stderr.contains("7999"), "{}", ran.stderr);
    let stored = place.query("SELECT uid FROM members ORDER BY uid");
    assert_eq!(stored, [json!({"uid": 1}), json!({"uid": 7})]);

    // Imported whole; unasked it is not imported again, and asked it is.
    let again = members(&place, &["import", "m.ndjson"]).succeeded();
    assert!(again.stderr.contains("was imported before"), "{}", again.stderr);
    place.write("DELETE FROM members WHERE uid = 7");
    let again = members(&place, &["import", "m.ndjson", "--again", "--errors", "bad.txt"]);
    assert_eq!((again.code, counts(&again)), (1, [1, 2, 6, 10]));
    assert!(!again.stderr.contains("line 2"), "{}", again.stderr);
    let written = std::fs::read_to_string(place.path().join("bad.txt")).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_no_file_of_members_is_refused_whole() {
    let place = Place::migrated();
    for (name, text, said) in [
        ("a.csv", "uid,nickname\n1,Ivan", "column 2 of the first line is none of uid, link"),
        ("b.csv", "1,Ivan\n2,Olga", "column 1 of the first line"),
        ("c.csv", "name\nIvan", "the header has no uid"),
        ("d.txt", "uid\n1", "--format"),
    ] {
        write_file(&place, name, text);
        let ran = members(&place, &["import", name]);
        ran.refused(1, &[said]);
        assert!(!ran.stderr.contains("Ivan") && !ran.stderr.contains("nickname"), "{}", ran.stderr);
    }
    members(&place, &["import", "nowhere.csv"]).refused(1, &["cannot read nowhere.csv"]);
    assert_eq!(everyone(&place), Vec::<Value>::new());
    write_file(&place, "empty.csv", "");
    assert_eq!(counts(&members(&place, &["import", "empty.csv"]).succeeded()), [0, 0, 0, 0]);
    write_file(&place, "d.txt", "uid\n1");
    assert_eq!(counts(&members(&place, &["import", "d.txt", "--format", "csv"]).succeeded()), [1, 0, 0, 2]);
}

/// A file of so many members, each with a wallet, of which every hundredth line is bad.
fn many(place: &Place, name: &str, lines: usize) {
    let mut text = String::new();
    for uid in 1..=lines {
        let addr = if uid % 100 == 0 { "" } else { "0xA1" };
        writeln!(text, r#"{{"uid": {uid}, "name": "Member {uid}", "addr": "{addr}"}}"#).unwrap();
    }
    write_file(place, name, &text);
}

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

fn lines_done(conn: &Connection) -> i64 {
    value(conn, "SELECT COALESCE(MAX(lines_done), 0) FROM member_imports", [])
}

#[test]
fn import_goes_on_after_a_kill() {
    const LINES: usize = 12_000;
    let place = Place::migrated();
    many(&place, "m.ndjson", LINES);
    let conn = file::reader(&place.data());
    let mut kills = 0;
    for signal in [Signal::KILL, Signal::KILL, Signal::INT, Signal::KILL, Signal::TERM] {
        let before = lines_done(&conn);
        let mut child = start(&place, &["members", "import", "m.ndjson"]);
        until("a batch is stored", || {
            let has_ended = child.try_wait().unwrap().is_some();
            (has_ended || lines_done(&conn) > before).then_some(())
        });
        if child.try_wait().unwrap().is_none() {
            kill_process(Pid::from_child(&child), signal).unwrap();
            kills += 1;
        }
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        if signal != Signal::KILL && !ended.status.success() && said.contains("interrupted") {
            let stopped = format!("stopped behind line {}; the same command goes on there", lines_done(&conn));
            assert!(said.contains(&stopped), "{said}");
        }
    }
    assert!(kills >= 3, "the kills came too late to show anything");
    let at = lines_done(&conn);
    let ran = members(&place, &["import", "m.ndjson"]);
    assert!(at == 0 || ran.stderr.contains(&format!("going on behind line {at}")), "{}", ran.stderr);
    let (lines, bad) = (i64::try_from(LINES).unwrap(), i64::try_from(LINES / 100).unwrap());
    assert_eq!((ran.code, counts(&ran)), (1, [lines - bad, 0, bad, lines]));
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM members", []), lines - bad);
    let twice = "SELECT count(*), count(DISTINCT magnet_uid) FROM bot_event_outbox";
    let told: (i64, i64) = conn.query_row(twice, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(told, (lines - bad, lines - bad), "each is told of once");
}

/// The most memory that an import of so many lines had, in KiB.
fn peak_of(place: &Place, lines: usize) -> u64 {
    let name = format!("{lines}.ndjson");
    let mut text = String::new();
    (1..=lines).for_each(|uid| writeln!(text, r#"{{"uid": {uid}, "name": "Member {uid}"}}"#).unwrap());
    write_file(place, &name, &text);
    let mut child = start(place, &["members", "import", &name]);
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    until_within(Duration::from_secs(240), "the import ends", || {
        let shown = std::fs::read_to_string(&status).unwrap_or_default();
        let line = shown.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(now.unwrap_or(0));
        child.try_wait().unwrap()
    });
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    peak
}

#[test]
fn a_million_lines_in_flat_memory() {
    let place = Place::migrated();
    // What a hundred thousand take more than ten thousand, a million would take ten times.
    let (small, large) = (peak_of(&place, 10_000), peak_of(&place, 100_000));
    assert!(large < small + 16 * 1024, "{small} KiB for 10,000 lines, {large} KiB for 100,000");
}

#[test]
fn the_import_says_how_far_it_is() {
    let place = Place::migrated();
    many(&place, "m.ndjson", 3_000);
    let ran = members(&place, &["import", "m.ndjson", "--errors", "bad.txt"]);
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" %, ")).collect();
    assert!(told.len() >= 4 && told.last() == Some(&"100 %, 3000 lines"), "{told:?}");
}

#[test]
fn an_import_beside_a_server_reaches_its_bot() {
    let dev = Dev::start(&["store.ballast=0"]);
    let conn = dev.writer();
    file::add_chat(&conn, None, 107);
    let path = dev.place.path("m.csv");
    std::fs::write(&path, "uid,preview_telegram_id,addr\n7,107,0xA1\n").unwrap();
    let ran = dev.command(&["members", "import", path.to_str().unwrap()]);
    assert!(ran.status.success(), "{ran:?}");
    until("the person is asked whether the account is theirs", || (dev.texts(107).len() == 1).then_some(()));
}

#[test]
fn a_member_is_shown_by_id_and_by_chat() {
    let place = Place::migrated();
    write_file(&place, "m.csv", "uid,name,telegram_id,addr\n7,Anna,107,0xA1\n8,,,");
    members(&place, &["import", "m.csv"]).succeeded();
    let shown = members(&place, &["show", "7"]).succeeded().rows();
    assert_eq!(
        (&shown[0]["uid"], &shown[0]["telegram_id"], &shown[0]["addr"]),
        (&json!(7), &json!("107"), &json!("0xA1"))
    );
    assert_eq!(members(&place, &["show", "--telegram", "107"]).succeeded().rows(), shown);
    members(&place, &["show", "9"]).refused(1, &["there is no such member"]);
    members(&place, &["show", "--telegram", "108"]).refused(1, &["no member is bound to that chat"]);
    members(&place, &["show"]).refused(2, &[]);
    members(&place, &["show", "7", "--telegram", "107"]).refused(2, &[]);
}

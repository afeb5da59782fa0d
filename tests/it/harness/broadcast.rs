//! Broadcasts as their author has them: by the command line beside a running server.

use std::fs;

use rusqlite::Connection;
use serde_json::Value;

use super::dev::Dev;
use super::file::{rows, value};
use super::{text, until};

/// What becomes of recipients, in the order of the columns below.
const STATUSES: [&str; 6] = ["pending", "queued", "sent", "undeliverable", "unknown", "skipped"];

impl Dev {
    /// Runs a verb of `broadcast`, which must succeed; the JSON lines that it printed.
    pub(crate) fn broadcast(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(&[&["broadcast"], args].concat());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "broadcast {args:?}: {err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }

    /// The same of a verb that must fail; what it said.
    pub(crate) fn broadcast_refused(&self, args: &[&str]) -> String {
        let output = self.command(&[&["broadcast"], args].concat());
        assert_eq!(output.status.code(), Some(1), "broadcast {args:?}");
        String::from_utf8(output.stderr).expect("the CLI writes UTF-8")
    }

    /// Makes a draft with this text in English, and perhaps one in Russian; its id as text.
    pub(crate) fn draft(&self, en: Option<&str>, ru: Option<&str>, flags: &[&str]) -> String {
        let mut args = vec!["create", "--name", "test"];
        let files = [("--en", en, self.place.path("en.html")), ("--ru", ru, self.place.path("ru.html"))];
        for (flag, body, path) in &files {
            if let Some(body) = body {
                fs::write(path, body).expect("a file");
                args.extend([flag, text(path)]);
            }
        }
        args.extend(flags);
        self.broadcast(&args)[0]["id"].to_string()
    }

    pub(crate) fn start_broadcast(&self, id: &str) {
        self.broadcast(&["start", id, "--yes"]);
    }

    pub(crate) fn until_broadcast(&self, id: &str, state: &str) {
        let conn = self.reader();
        until(&format!("broadcast {id} is {state}"), || {
            (value::<String>(&conn, "SELECT state FROM broadcasts WHERE id = ?1", [id]) == state).then_some(())
        });
    }

    /// People of the bot, with these ids and the chat's id as their age.
    pub(crate) fn add_people(&self, ids: std::ops::RangeInclusive<i64>, lang: &str) {
        let sql = "
            WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
            INSERT INTO bot_users (telegram_id, lang, stage, created_at) SELECT i, ?3, 1 + i % 9, 1000 + i FROM n";
        self.writer().execute(sql, (ids.start(), ids.end(), lang)).expect("people");
    }
}

/// Recipients by status; asserts that the broadcast's own counts say the same.
pub(crate) fn counts(conn: &Connection, id: &str) -> Vec<(&'static str, i64)> {
    let sql = "SELECT status, count(*) FROM broadcast_recipients WHERE broadcast_id = ?1 GROUP BY status";
    let shown = "SELECT total - queued - sent - undeliverable - unknown - skipped, queued, sent, undeliverable, unknown, skipped
                 FROM broadcasts WHERE id = ?1";
    conn.execute_batch("BEGIN").expect("one look at both");
    let found = rows(conn, sql, [id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
    let shown: Vec<i64> = rows(conn, shown, [id], |row| (0..6).map(|at| row.get(at)).collect()).remove(0);
    conn.execute_batch("COMMIT").expect("looked");
    let count = |status: &str| found.iter().find(|(name, _)| name == status).map_or(0, |(_, count)| *count);
    assert_eq!(STATUSES.map(count).to_vec(), shown, "the counts of {id} are those of its recipients");
    STATUSES.into_iter().zip(shown).filter(|(_, count)| *count > 0).collect()
}

/// When the fake accepted what, in unix milliseconds, and for whom; in that order.
pub(crate) fn accepted(dev: &Dev) -> Vec<(i64, i64)> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = dev.http.get(&format!("/dev/telegram/messages?after={after}")).json();
        let messages = page["messages"].as_array().expect("a list");
        let Some(last) = messages.last() else { break };
        after = last["ordinal"].as_i64().expect("an ordinal");
        all.extend(messages.iter().map(|message| {
            let at = message["sent_at"].as_str().and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
            (at.expect("an instant").timestamp_millis(), message["chat_id"].as_i64().expect("an id"))
        }));
    }
    all.sort_unstable();
    all
}

/// The most of these instants, which are in order, that are in 900 ms: the fake notes when a call arrives, and one that
/// was late falls into the next second.
pub(crate) fn busiest(at: &[i64]) -> usize {
    (0..at.len()).map(|first| at[first..].partition_point(|other| *other < at[first] + 900)).max().unwrap_or(0)
}

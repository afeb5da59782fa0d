//! `pillarbox dev --no-demo` as other projects' tests use it: a server whose Telegram, clock and jobs obey.

use std::process::Output;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::http::Client;
use super::{Place, Process, file, text, until};

/// A running `dev` and the directory it continues in.
pub(crate) struct Dev {
    pub(crate) place: Place,
    pub(crate) process: Process,
    pub(crate) http: Client,
    /// As `http`, with the key that may do all of `/v1`.
    pub(crate) api: Client,
    sets: Vec<String>,
}

impl Dev {
    pub(crate) fn start(sets: &[&str]) -> Self {
        Self::start_in(Place::new(), sets)
    }

    /// The same in a place that has something in it already; its `pillarbox.toml` is read if it is there.
    pub(crate) fn start_in(place: Place, sets: &[&str]) -> Self {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let (process, http, api) = launch(&place, &sets);
        Self { place, process, http, api, sets }
    }

    /// Starts it again on the same directory, after whatever ended it.
    pub(crate) fn start_again(&mut self) {
        self.process.kill();
        (self.process, self.http, self.api) = launch(&self.place, &self.sets);
    }

    pub(crate) fn reader(&self) -> Connection {
        file::reader(&self.place.data())
    }

    pub(crate) fn writer(&self) -> Connection {
        file::writer(&self.place.data())
    }

    /// A command beside the server, on its directory.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        let data = self.place.data();
        let mut all = args.to_vec();
        all.extend(["--data-dir", text(&data)]);
        self.place.command(&all).output().expect("the binary starts")
    }

    /// Emits an event over HTTP; its id.
    pub(crate) fn emit(&self, event: &Value) -> i64 {
        self.http.done("/bot/events", event)["id"].as_i64().expect("an id")
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.http.done("/dev/clock/advance", &json!({"seconds": by.as_secs_f64()}));
    }

    /// The server's clock, in unix milliseconds.
    pub(crate) fn now(&self) -> i64 {
        let shown = self.http.get("/dev/clock").json();
        let now = shown["now"].as_str().expect("the clock shows an instant");
        chrono::DateTime::parse_from_rfc3339(now).expect("in RFC 3339").timestamp_millis()
    }

    /// Moves the clock to an instant, unless it is there already.
    pub(crate) fn advance_to(&self, at_ms: i64) {
        self.advance(Duration::from_millis(u64::try_from(at_ms - self.now()).unwrap_or_default()));
    }

    /// Runs a job now; its counts.
    pub(crate) fn run_job(&self, name: &str) -> Value {
        let ran = self.http.done(&format!("/dev/jobs/{name}/run"), &json!({}));
        assert_eq!(ran["outcome"], "ok", "{name}: {ran}");
        ran["counts"].clone()
    }

    pub(crate) fn fault(&self, fault: &Value) {
        self.http.done("/dev/telegram/faults", fault);
    }

    /// The texts that the fake has accepted for a chat, oldest first.
    pub(crate) fn texts(&self, chat_id: i64) -> Vec<String> {
        let shown = self.http.get(&format!("/dev/telegram/messages?chat_id={chat_id}")).json();
        let messages = shown["messages"].as_array().expect("a list").iter();
        messages.map(|message| message["text"].as_str().expect("a text").to_owned()).collect()
    }

    /// Waits until an event is as `state` says: `open`, `handled`, `abandoned` or `dead`, with so many failed attempts.
    pub(crate) fn until_event(&self, id: i64, state: &str, attempts: i64) {
        let conn = self.reader();
        let sql = "SELECT COALESCE(outcome, CASE WHEN dead_lettered_at IS NULL THEN 'open' ELSE 'dead' END), attempts
                   FROM bot_event_outbox WHERE id = ?1";
        until(&format!("event {id} is {state} after {attempts} failures"), || {
            let found: (String, i64) = conn.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
            (found.0 == state && found.1 == attempts).then_some(())
        });
    }

    /// Waits until a message has this status; its id.
    pub(crate) fn until_message(&self, dedup_key: &str, status: &str) -> i64 {
        let conn = self.reader();
        let sql = "SELECT id FROM telegram_messages WHERE dedup_key = ?1 AND status = ?2";
        until(&format!("message {dedup_key} is {status}"), || {
            conn.query_row(sql, [dedup_key, status], |row| row.get(0)).ok()
        })
    }
}

fn launch(place: &Place, sets: &[String]) -> (Process, Client, Client) {
    let (data, ready) = (place.data(), place.path("dev.ready"));
    // What an earlier process said is no sign of this one.
    let _ = std::fs::remove_file(&ready);
    let mut args = vec!["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo"];
    args.extend(["--ready-file", text(&ready)]);
    let config = place.path("pillarbox.toml");
    if config.exists() {
        args.extend(["--config", text(&config)]);
    }
    for set in sets {
        args.extend(["--set", set]);
    }
    let mut process = place.start(&args, &[]);
    let ready = process.ready_file(&ready);
    let word = |name: &str| ready[name].as_str().unwrap_or_else(|| panic!("the ready file has {name}")).to_owned();
    let http = Client::new(&word("url"), Some(&word("bot_secret")));
    let api = Client::new(&word("url"), Some(&word("api_key")));
    (process, http, api)
}

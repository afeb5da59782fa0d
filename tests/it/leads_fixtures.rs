//! `fixtures/leads`: requests as forms and attackers send them, over HTTP against `pillarbox dev`, and what becomes of
//! each: the answer to the byte, the columns of the lead, the whole summary.
//!
//! A fixture is one request. `{"$repeat": "x", "times": 3}` stands for `"xxx"`, `{"$list": x, "times": 3}` for
//! `[x, x, x]`; `raw_body` is a body that no JSON file can hold otherwise. `{seconds}` in an answer is what is left of
//! the hour. `faults` is what only the log tells: `src/leads/intake/tests/fixtures.rs` compares it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};

use crate::harness::dev::Dev;
use crate::harness::text;

const HOUR_MS: i64 = 3_600_000;

struct Fixture {
    name: String,
    told: Value,
}

/// All of them, by the settings under which they run.
fn fixtures() -> BTreeMap<Vec<String>, Vec<Fixture>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/leads");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 18, "{} fixtures", paths.len());
    let mut found: BTreeMap<Vec<String>, Vec<Fixture>> = BTreeMap::new();
    for path in paths {
        let read: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let settings = serde_json::from_value(read["settings"].clone()).unwrap_or_default();
        let name = text(&path).rsplit('/').next().unwrap().trim_end_matches(".json").to_owned();
        found.entry(settings).or_default().push(Fixture { name, told: expand(read) });
    }
    found
}

fn expand(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(expand).collect(),
        Value::Object(members) => {
            let times = members.get("times").and_then(Value::as_u64).and_then(|times| usize::try_from(times).ok());
            match (members.get("$repeat"), members.get("$list"), times) {
                (Some(Value::String(text)), _, Some(times)) => json!(text.repeat(times)),
                (_, Some(item), Some(times)) => json!(vec![expand(item.clone()); times]),
                _ => members.into_iter().map(|(name, value)| (name, expand(value))).collect::<Map<_, _>>().into(),
            }
        }
        other => other,
    }
}

#[test]
fn every_fixture_is_answered_stored_and_summed_up_as_it_says() {
    let mut faults = Vec::new();
    for (settings, fixtures) in fixtures() {
        let sets: Vec<&str> = settings.iter().map(String::as_str).collect();
        let dev = Dev::start(&sets);
        let ready: Value = serde_json::from_slice(&std::fs::read(dev.place.path("dev.ready")).unwrap()).unwrap();
        // Away from the end of the hour, at which a count would begin anew.
        if dev.now() % HOUR_MS > HOUR_MS * 9 / 10 {
            dev.advance(Duration::from_secs(600));
        }
        for fixture in fixtures {
            fixture.play(&dev, &ready, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

impl Fixture {
    fn play(&self, dev: &Dev, ready: &Value, faults: &mut Vec<String>) {
        let request = &self.told["request"];
        let mut last = (0, String::new());
        for _ in 0..request["times"].as_u64().unwrap_or(1) {
            last = self.send(dev, ready["lead_origin"].as_str().unwrap());
        }
        let left = (HOUR_MS - dev.now() % HOUR_MS + 999) / 1000;
        let expected = self.told["answer"]["body"].as_str().unwrap();
        // The clock of `dev` goes on between the answer and the question.
        let bodies = (left..left + 30).map(|seconds| expected.replace("{seconds}", &seconds.to_string()));
        if self.told["answer"]["status"] != last.0 || !bodies.into_iter().any(|body| body == last.1) {
            faults.push(format!("{}: answered {} {}", self.name, last.0, last.1));
        }
        let Some(request_id) = self.request_id(expected) else { return };
        let conn = dev.reader();
        let columns = self.told["row"].as_object().into_iter().flatten();
        for (column, expected) in columns {
            let stored = column_of(&conn, &request_id, column, expected);
            if stored != *expected {
                faults.push(format!("{}: {column} is {stored}, not {expected}", self.name));
            }
        }
        if let Some(expected) = self.told["summary"].as_str() {
            let summary = summary(dev, ready, &conn, &request_id);
            if summary != expected {
                faults.push(format!("{}: the summary is\n{summary}\nand not\n{expected}", self.name));
            }
        }
    }

    /// The id in the expected answer, if a lead is expected under it.
    fn request_id(&self, answer: &str) -> Option<String> {
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        answer["request_id"].as_str().filter(|_| answer["ok"] == true).map(str::to_owned)
    }

    /// Posts it, each fixture as a browser of its own, since they all come from one address.
    fn send(&self, dev: &Dev, origin: &str) -> (u16, String) {
        let request = &self.told["request"];
        let mut headers = BTreeMap::from([
            ("Origin", json!(origin)),
            ("Content-Type", json!("application/json")),
            ("User-Agent", json!(format!("fixture {}", self.name))),
        ]);
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            headers.insert(name, value.clone());
        }
        let body = match (&request["raw_body"], &request["body"]) {
            (Value::String(raw), _) => raw.clone(),
            (_, Value::Null) => String::new(),
            (_, body) => body.to_string(),
        };
        let method = request["method"].as_str().unwrap_or("POST");
        let host = dev.http.address();
        let mut head = format!("{method} /leads HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers {
            if let Value::String(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        exchange(host, &format!("{head}Content-Length: {}\r\n\r\n", body.len()), &body)
    }
}

/// Status and body. A server that refuses a body early may close before it has all been sent.
fn exchange(host: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), body.to_owned())
}

/// A column as JSON: the text of one that holds JSON is parsed where the fixture expects an object or a list.
fn column_of(conn: &Connection, request_id: &str, column: &str, expected: &Value) -> Value {
    let sql = format!("SELECT {column} FROM broker_leads WHERE request_id = ?1");
    let read = conn.query_row(&sql, [request_id], |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Integer(number) => json!(number),
            ValueRef::Text(text) if expected.is_object() || expected.is_array() => {
                serde_json::from_slice(text).unwrap()
            }
            ValueRef::Text(text) => json!(std::str::from_utf8(text).unwrap()),
            _ => Value::Null,
        })
    });
    read.unwrap_or_else(|error| json!(error.to_string()))
}

/// As a program of the service role reads it.
fn summary(dev: &Dev, ready: &Value, conn: &Connection, request_id: &str) -> String {
    let sql = "SELECT id FROM broker_leads WHERE request_id = ?1";
    let id: String = conn.query_row(sql, [request_id], |row| row.get(0)).unwrap();
    let host = dev.http.address();
    let key = ready["service_role_key"].as_str().unwrap();
    let body = json!({"p_lead_id": id}).to_string();
    let head = format!(
        "POST /rest/v1/rpc/broker_lead_notification_summary HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         apikey: {key}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (status, body) = exchange(host, &head, &body);
    serde_json::from_str(&body).unwrap_or_else(|_| format!("{status} {body}"))
}

//! What the broker's leads leave where nobody looks for them: names and phones are in `broker_leads` only, the token and
//! the chat's id in neither the database, nor the log, nor the metrics.

use std::fs;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::json;

use crate::harness::file::{self, column, value};
use crate::harness::http::Client;
use crate::harness::{Place, TOKEN, until};

const CHAT: i64 = -100_777_888_999;
const MOVED: i64 = -100_666_555_444;
/// What the person wrote, and the name of the person.
const PERSONAL: [&str; 4] = ["Qwertyla Distinctova", "79987766554", "a comment of xyzzy", "Xyzzygrad"];

/// Where the form is posted from.
const ADDRESS: &str = "203.0.113.177";

/// Every value of every table but one, as text.
fn dump(conn: &Connection, but: &str) -> String {
    let tables: Vec<String> = column(conn, "SELECT name FROM sqlite_master WHERE type = 'table'", []);
    let mut all = String::new();
    for table in tables.iter().filter(|table| *table != but) {
        let mut statement = conn.prepare(&format!("SELECT * FROM \"{table}\"")).expect("a table");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            for at in 0..columns {
                match row.get_ref(at).expect("a value") {
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => all.push_str(&String::from_utf8_lossy(bytes)),
                    ValueRef::Integer(number) => all.push_str(&number.to_string()),
                    ValueRef::Real(number) => all.push_str(&number.to_string()),
                    ValueRef::Null => {}
                }
                all.push('\n');
            }
        }
    }
    all
}

fn insert(conn: &Connection, number: usize) -> String {
    let [name, phone, comment, city] = PERSONAL;
    let raw = json!({"client": {"name": name, "phone": phone}, "preparation": {"journey_type": comment}});
    let sql = "INSERT INTO broker_leads (request_id, client_name, phone, phone_normalized, comment, city, raw_payload)
               VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6) RETURNING id";
    value(conn, sql, (format!("r-{number}"), name, phone, comment, city, raw.to_string()))
}

/// The form of a site, as the intake may answer it. Only the first becomes a lead.
fn post(url: &str) {
    let [name, phone, comment, city] = PERSONAL;
    let site = Client::new(url, None).with_header("X-Forwarded-For", ADDRESS);
    let form = |request_id: &str, is_bot: bool| {
        json!({
            "schema_version": 1, "request_id": request_id, "form_version": "1", "form_fill_ms": 9000,
            "client": {"name": name, "phone": phone, "city": city}, "mortgage": {"scenario": "x", "comment": comment},
            "consent": true, "personal_data_consent": "yes", "spam_check": {"likely_bot": is_bot},
        })
    };
    let requests = [
        (form("IP-20261130-POSTED", false), 201),
        (form("IP-20261130-POSTED", false), 200),
        (form("IP-20261130-ROBOT1", true), 202),
        (form(name, false), 422),
        (form("IP-20261130-THEFOURTH", false), 429),
        (json!([name, phone]), 400),
    ];
    for (body, status) in requests {
        let answer = site.post("/leads", &body);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(PERSONAL.iter().all(|personal| !answer.body.contains(personal)), "{}", answer.body);
    }
}

/// A lead of another program for every way in which an attempt can end, with secrets in Telegram's answers.
fn end_every_way(fake: &Client, conn: &Connection) {
    let faults = [
        (json!({"chat_id": CHAT, "status": 403}), "failed"),
        (json!({"chat_id": CHAT, "status": 429, "retry_after": 1}), "sent"),
        (json!({"chat_id": CHAT, "status": 429, "retry_after": 0, "description": format!("chat {CHAT}")}), "sent"),
        (
            json!({"chat_id": CHAT, "status": 400, "description": format!("Bad Request: chat {CHAT} not found")}),
            "failed",
        ),
        (json!({"chat_id": CHAT, "status": 502, "body": format!("<html>{TOKEN}</html>")}), "failed"),
        (json!({"chat_id": CHAT, "status": 200, "body": format!("{CHAT} {TOKEN}")}), "failed"),
        (json!({"chat_id": CHAT, "drop_response": true}), "failed"),
        (json!({"chat_id": CHAT, "status": 500, "delay_ms": 3000}), "failed"),
        (json!({"chat_id": CHAT, "migrate_to_chat_id": MOVED}), "sent"),
    ];
    for (number, (fault, status)) in faults.iter().enumerate() {
        fake.done("/dev/telegram/faults", fault);
        let lead = insert(conn, number);
        let sql = "SELECT notification_status FROM broker_leads WHERE id = ?1";
        until(&format!("{fault} makes it {status}"), || (value::<String>(conn, sql, [&lead]) == *status).then_some(()));
    }
}

#[test]
fn names_and_phones_are_in_one_table_and_token_and_chat_nowhere() {
    let place = Place::new();
    let (_fake, url) = place.start_fake();
    let fake = Client::new(&url, None);
    fs::write(place.path("chat-id"), CHAT.to_string()).expect("a file with the chat's id");
    let sets = [
        "leads.chat_id_file=chat-id",
        "leads.telegram_timeout=1s",
        "leads.allow_originless=true",
        "leads.rate_limit_per_hour=3",
        "log.level=trace",
        "store.ballast=0",
    ];
    let mut serve = place.start_serve(&url, &sets);
    let http = Client::new(&serve.serving_url(), None);
    let conn = file::writer(&place.data());
    post(http.url());
    let told = "SELECT count(*) FROM broker_leads WHERE notification_status = 'sent'";
    until("the lead that was posted is told", || (value::<i64>(&conn, told, []) == 1).then_some(()));
    end_every_way(&fake, &conn);
    let (metrics, ready) = (http.get("/metrics").body, http.get("/readyz").body);
    serve.stop();
    let elsewhere = dump(&conn, "broker_leads");
    let leads: i64 = value(&conn, "SELECT count(*) FROM broker_leads WHERE client_name = ?1", [PERSONAL[0]]);
    assert_eq!(leads, 10, "the file is the right one");
    let counted: i64 = value(&conn, "SELECT sum(attempt_count) FROM broker_lead_rate_limits", []);
    assert_eq!(counted, 4, "and has counts of posts");
    let chats = [CHAT.to_string(), MOVED.to_string()];
    let chats = chats.iter().map(|id| id.trim_start_matches('-'));
    let secrets: Vec<&str> = chats.chain([TOKEN, TOKEN.split(':').next_back().expect("its secret half")]).collect();
    let raw = String::from_utf8_lossy(&fs::read(place.data().join("pillarbox.db")).expect("the file")).into_owned();
    let everywhere = dump(&conn, "");
    for (place, text) in
        [("database", &everywhere), ("file", &raw), ("log", &serve.log()), ("metrics", &metrics), ("readyz", &ready)]
    {
        assert!(!text.is_empty(), "{place}");
        for secret in &secrets {
            assert!(!text.contains(secret), "{secret} is in the {place}");
        }
    }
    for (place, text) in [("rest of the database", &elsewhere), ("log", &serve.log()), ("metrics", &metrics)] {
        for personal in PERSONAL.into_iter().chain([ADDRESS]) {
            assert!(!text.contains(personal), "{personal} is in the {place}");
        }
    }
    assert!(everywhere.contains(PERSONAL[0]), "the search finds what is there");
    let kept = fs::read_to_string(place.data().join("lead-chat.json")).expect("the chat's new id is kept");
    assert!(kept.contains(&MOVED.to_string()), "{kept}");
}

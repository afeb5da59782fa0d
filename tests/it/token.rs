//! The bot's token is found nowhere: not in the loudest log, the file, an answer, or what a command prints, whatever
//! Telegram and the network answer to the calls that carry it.

use std::process::Command;

use rusqlite::Connection;
use serde_json::json;

use crate::harness::file::{self, add_person, value};
use crate::harness::http::Client;
use crate::harness::{Place, SECRET, TOKEN, text, until};

/// As loud as a log can be set, the HTTP libraries by name.
const LOUD: &str = "log.level=trace,hyper=trace,hyper_util=trace,reqwest=trace,h2=trace,rustls=trace,teloxide=trace";

/// What was looked at, and where it was found.
type Shown = Vec<(String, Vec<u8>)>;

/// Calls that end in every way: refused, failing, late, unanswered, with the token in the answer itself.
fn send_into_faults(telegram: &Client, http: &Client, conn: &Connection) {
    let faults = [
        json!({"status": 500}),
        json!({"status": 502, "body": format!("<html>/bot{TOKEN}/sendMessage</html>")}),
        json!({"status": 400, "description": format!("Bad Request: /bot{TOKEN}/SendMessage")}),
        json!({"drop_response": true}),
        json!({"delay_ms": 1500}),
        json!({"status": 302, "body": "moved"}),
    ];
    for (uid, mut fault) in (1..).zip(faults) {
        add_person(conn, uid, 100 + uid);
        fault["chat_id"] = json!(100 + uid);
        telegram.done("/dev/telegram/faults", &fault);
        http.done("/bot/events", &json!({"eventType": "reactivation", "magnetUid": uid}));
    }
    until("each has been tried", || {
        let tried = "SELECT count(*) FROM telegram_messages WHERE error_code IS NOT NULL";
        (value::<i64>(conn, tried, []) == 6).then_some(())
    });
}

fn answers(http: &Client, shown: &mut Shown) {
    for path in ["/metrics", "/readyz", "/livez", "/bot/events/pending", "/no/such/path", "/bot1:x/getMe"] {
        shown.push((path.to_owned(), http.get(path).body.into_bytes()));
    }
    for body in [json!({}), json!({"eventType": 7}), json!([])] {
        shown.push((format!("POST {body}"), http.post("/bot/events", &body).body.into_bytes()));
    }
}

fn commands(place: &Place, shown: &mut Shown) {
    for verb in [&["messages", "list", "--json"][..], &["jobs", "list", "--json"], &["config", "show"]] {
        let data = place.data();
        let mut command = place.command(verb);
        command.args(["--data-dir", text(&data)]).env("TELEGRAM_BOT_TOKEN", TOKEN);
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{verb:?}: {output:?}");
        shown.push((format!("{verb:?}"), [output.stdout, output.stderr].concat()));
    }
}

/// The database and its WAL, copied by another process: this one has connections to them.
fn files(place: &Place, shown: &mut Shown) {
    let copies = place.path("copies");
    let copied = Command::new("cp").args(["-r", text(&place.data()), text(&copies)]).status().expect("cp");
    assert!(copied.success());
    for entry in std::fs::read_dir(&copies).expect("the copies") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            shown.push((path.display().to_string(), std::fs::read(&path).expect("a copy")));
        }
    }
    let has = |name: &str| shown.iter().any(|(place, bytes)| place.ends_with(name) && bytes.len() > 4096);
    assert!(has("pillarbox.db") && has("pillarbox.db-wal"), "there was something to look at");
}

#[test]
fn the_token_is_found_nowhere() {
    let place = Place::new();
    let (mut fake, fake_url) = place.start_fake();
    let telegram = Client::new(&fake_url, None);
    let mut server = place.start_serve(&fake_url, &[LOUD, "telegram.timeout=500ms", "telegram.connect_timeout=300ms"]);
    let http = Client::new(&server.serving_url(), Some(SECRET));
    let conn = file::writer(&place.data());
    send_into_faults(&telegram, &http, &conn);
    let sql = "SELECT count(*) FROM telegram_messages WHERE error_code = ?1";
    add_person(&conn, 7, 107);
    fake.kill();
    http.done("/bot/events", &json!({"eventType": "reactivation", "magnetUid": 7}));
    until("there is nobody to connect to", || (value::<i64>(&conn, sql, ["connect"]) > 0).then_some(()));

    // Each outcome is logged after it is stored, with whatever is said of it.
    for code in ["http_500", "http_502", "http_400", "broken_connection", "timeout", "connect"] {
        let said = format!("\"code\":\"{code}\"");
        until(&format!("{code} is logged"), || place.logs().contains(&said).then_some(()));
    }

    let mut shown: Shown = vec![("the logs".to_owned(), place.logs().into_bytes())];
    answers(&http, &mut shown);
    commands(&place, &mut shown);
    files(&place, &mut shown);
    let secret = TOKEN.split_once(':').expect("id and key").1.as_bytes();
    for (place, bytes) in &shown {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "the token is in {place}");
    }
    server.stop();
}

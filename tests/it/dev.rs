//! `dev` and `fake` obey this machine only, speak to nobody outside it, and keep their moved clock to themselves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::{Place, text};

const EVIL: &str = "http://evil.example";
const TEN_HOURS: Duration = Duration::from_secs(36_000);
const TEN_HOURS_MS: i64 = 36_000_000;

/// The whole answer to a request with these headers and no others that matter.
fn raw(address: &str, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Everything that a page elsewhere could want to do at this address is refused; what this machine does is not.
fn obeys_this_machine_only(address: &str) {
    let commands = [
        ("POST /dev/clock/advance", r#"{"seconds": 1}"#),
        ("GET /dev/telegram/messages", ""),
        ("POST /dev/telegram/faults", r#"{"status": 500}"#),
        ("PUT /dev/sink/x", "{}"),
        ("GET /bot1:a/sendMessage?chat_id=1&text=hello", ""),
    ];
    let strangers = [
        "Host: evil.example\r\nContent-Type: text/plain\r\n".to_owned(),
        "Host: evil.example:80\r\n".to_owned(),
        format!("Host: {address}\r\nOrigin: {EVIL}\r\nContent-Type: text/plain\r\n"),
        format!("Host: {address}\r\nOrigin: null\r\n"),
        format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\n"),
    ];
    for (line, body) in commands {
        for headers in &strangers {
            let answer = raw(address, line, headers, body);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{line} {headers}: {answer}");
            assert!(answer.contains("application/problem+json"), "{answer}");
        }
    }
    let port = address.rsplit(':').next().unwrap();
    let own = [
        format!("Host: {address}\r\n"),
        format!("Host: localhost:{port}\r\nOrigin: http://localhost:3000\r\n"),
        "Host: localhost\r\nSec-Fetch-Site: none\r\n".to_owned(),
    ];
    for headers in &own {
        for line in ["GET /dev/clock", "GET /bot1:a/getMe"] {
            let answer = raw(address, line, headers, "");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{line} {headers}: {answer}");
        }
    }
}

#[test]
fn dev_takes_no_commands_from_web_pages() {
    let dev = Dev::start(&[]);
    let address = dev.http.address();
    obeys_this_machine_only(address);
    let run = raw(address, "POST /dev/jobs/ledger-prune/run", &format!("Host: {address}\r\nOrigin: {EVIL}\r\n"), "");
    assert!(run.starts_with("HTTP/1.1 403 "), "{run}");
    assert_eq!(dev.texts(1), [""; 0]);
}

#[test]
fn fake_takes_no_commands_from_web_pages() {
    let place = Place::new();
    let (_fake, url) = place.start_fake();
    obeys_this_machine_only(url.strip_prefix("http://").unwrap());
}

/// A production configuration, as it may lie in the directory in which `dev` is started.
const PRODUCTION: &str = r#"
[bot]
event_source = "remote"
remote_url = "https://backend.example"
backend_secret_file = "/run/secrets/that-nobody-here-can-read"

[http]
listen = "0.0.0.0:80"
"#;

#[test]
fn dev_ignores_a_production_file_that_merely_lies_there() {
    let place = Place::new();
    std::fs::write(place.path("pillarbox.toml"), PRODUCTION).unwrap();
    let (data, ready) = (place.data(), place.path("dev.ready"));
    let args = ["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo", "--ready-file", text(&ready)];
    let mut process = place.start(&args, &[("PILLARBOX_CONFIG", text(&place.path("elsewhere.toml")))]);
    process.ready_file(&ready);
    assert!(process.log().contains("dev does not read ./pillarbox.toml"), "{}", process.log());
    process.stop();
}

#[test]
fn dev_calls_no_backend_but_one_on_this_machine_that_its_command_line_asks_for() {
    let place = Place::new();
    let (data, ready) = (place.data(), place.path("dev.ready"));
    let file = place.path("production.toml");
    std::fs::write(&file, PRODUCTION).unwrap();
    let dev = |more: &[&str]| {
        let mut args = vec!["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo"];
        args.extend(["--ready-file", text(&ready)]);
        args.extend(more);
        args.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let remote = "bot.event_source=remote";
    for (more, why) in [
        (&["--config", text(&file)][..], "add --set bot.event_source=local"),
        (&["--config", text(&file), "--set", remote], "is not on this machine"),
        (&["--set", remote, "--set", "bot.remote_url=http://10.0.0.1"], "is not on this machine"),
        (&["--fake", "http://fake.example"], "--fake is not on this machine"),
    ] {
        let args = dev(more);
        let refused = place.command(&args.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{more:?}: {said}");
        assert!(!ready.exists() && !data.exists(), "{more:?}");
    }
    let by_variable = [("PILLARBOX_BOT__EVENT_SOURCE", "remote"), ("PILLARBOX_BOT__REMOTE_URL", "http://127.0.0.1:1")];
    let args = dev(&[]);
    let mut refused = place.start(&args.iter().map(String::as_str).collect::<Vec<_>>(), &by_variable);
    assert!(!refused.wait(crate::harness::PATIENCE).success());
    assert!(refused.log().contains("environment variable PILLARBOX_BOT__EVENT_SOURCE"), "{}", refused.log());

    let args = dev(&["--config", text(&file), "--set", remote, "--set", "bot.remote_url=http://127.0.0.1:1"]);
    place.start(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]).ready_file(&ready);
}

#[test]
fn dev_tells_what_leads_are_posted_with_and_uses_nothing_of_the_environment() {
    let place = Place::new();
    let (data, ready) = (place.data(), place.path("dev.ready"));
    let real = [
        ("PILLARBOX_LEADS__CHAT_ID", "-100777"),
        ("PILLARBOX_LEADS__ALLOWED_ORIGINS", "https://site.example"),
        ("SUPABASE_SERVICE_ROLE_KEY", "the-real-one-of-the-environment"),
        ("SUPABASE_ANON_KEY_FILE", "/run/secrets/that-nobody-here-can-read"),
    ];
    let told = |more: &[&str]| {
        let _ = std::fs::remove_file(&ready);
        let mut args = vec!["dev", "--data-dir", text(&data), "--listen", "127.0.0.1:0", "--no-demo"];
        args.extend(["--ready-file", text(&ready)]);
        args.extend(more);
        let mut process = place.start(&args, &real);
        let told = process.ready_file(&ready);
        process.stop();
        told
    };
    let first = told(&[]);
    assert_eq!((&first["lead_origin"], &first["lead_chat_id"]), (&json!("http://localhost:3000"), &json!(-1001)));
    assert!(!first.to_string().contains("the-real-one"), "{first}");
    let origins = "leads.allowed_origins=https://Form.example, https://b.example";
    let second = told(&["--set", origins, "--set", "leads.chat_id=-5"]);
    assert_eq!((&second["lead_origin"], &second["lead_chat_id"]), (&json!("https://form.example"), &json!(-5)));
    assert_eq!(second["service_role_key"], first["service_role_key"]);
    let file = place.path("named.toml");
    std::fs::write(&file, "[leads]\nallowed_origins = [\"https://file.example\"]\nchat_id = -100777\n").unwrap();
    let third = told(&["--config", text(&file)]);
    assert_eq!((&third["lead_origin"], &third["lead_chat_id"]), (&json!("https://file.example"), &json!(-1001)));
}

/// How long the oldest open event has waited, as a command beside the server says.
fn oldest_open_age_ms(dev: &Dev) -> i64 {
    let stats = dev.command(&["outbox", "stats", "--json"]);
    assert!(stats.status.success(), "{}", String::from_utf8_lossy(&stats.stderr));
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    stats["oldestOpenAgeMs"].as_i64().expect("an event is open")
}

/// By how much the due time that a retry by hand writes is ahead of the system's time.
fn retried_ahead_ms(dev: &Dev) -> i64 {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let queue = "INSERT INTO telegram_messages (chat_id, kind, lane, text, format, dedup_key, status, error_code, due_at,
                                                waiting_since, created_at, finished_at)
                 VALUES (5, 'event', 'transactional', 'x', 'plain', hex(randomblob(8)), 'undeliverable', 'blocked', 1, 1,
                         1, 1)
                 RETURNING id";
    let conn = dev.writer();
    let id: i64 = conn.query_row(queue, [], |row| row.get(0)).unwrap();
    let retried = dev.command(&["messages", "retry", &id.to_string()]);
    assert!(retried.status.success(), "{}", String::from_utf8_lossy(&retried.stderr));
    let sql = "SELECT waiting_since FROM telegram_messages WHERE id = ?1";
    conn.query_row(sql, [id], |row| row.get::<_, i64>(0)).unwrap() - now
}

#[test]
fn a_command_is_in_the_time_of_whoever_has_the_directory() {
    let mut dev = Dev::start(&["bot.event_source=off"]);
    dev.emit(&json!({"eventType": "reactivation", "telegramId": "103", "payload": {}}));
    dev.advance(TEN_HOURS);
    let is_moved = |ms: i64| (TEN_HOURS_MS..TEN_HOURS_MS + 600_000).contains(&ms);
    assert!(is_moved(oldest_open_age_ms(&dev)), "beside dev: {}", oldest_open_age_ms(&dev));
    assert!(is_moved(retried_ahead_ms(&dev)), "beside dev");
    dev.process.stop();
    assert!(is_moved(oldest_open_age_ms(&dev)), "after dev");
    let run = dev.command(&["jobs", "run", "ledger-prune"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(is_moved(oldest_open_age_ms(&dev)), "after a command that took the directory over for a moment");

    let (_fake, fake_url) = dev.place.start_fake();
    let mut serve = dev.place.start_serve(&fake_url, &["bot.event_source=off"]);
    serve.serving_url();
    assert!(serve.log().contains("dev has used this directory"), "{}", serve.log());
    assert!(oldest_open_age_ms(&dev) < 600_000, "beside serve: {}", oldest_open_age_ms(&dev));
    assert!(retried_ahead_ms(&dev) < 600_000, "beside serve");
    serve.stop();
    let migrated = dev.command(&["migrate"]);
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    assert!(oldest_open_age_ms(&dev) < 600_000, "after serve");
}

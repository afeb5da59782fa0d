//! The examples and tables of `docs/webhooks.md` and of the README's part about webhooks, as they stand there.

use std::fs;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::docs::{blocks_of, run_script};
use crate::docs_webhooks_receiver as receiver;
use crate::harness::dev::Dev;
use crate::harness::{Place, file, text, until};

const README: &str = include_str!("../../README.md");
const PAGE: &str = include_str!("../../docs/webhooks.md");

/// The only block of the page in this language that contains `part`.
fn block(page: &str, language: &str, part: &str) -> String {
    let mut found: Vec<String> = blocks_of(page, language).into_iter().filter(|block| block.contains(part)).collect();
    assert_eq!(found.len(), 1, "{language} with {part}: {found:#?}");
    found.remove(0)
}

fn ready(dev: &Dev, key: &str) -> String {
    let ready: Value = serde_json::from_slice(&fs::read(dev.place.path("dev.ready")).unwrap()).unwrap();
    ready[key].as_str().unwrap().to_owned()
}

/// An endpoint at the server's own sink, and its secret.
fn endpoint(dev: &Dev) -> (String, String) {
    let url = format!("{}/dev/sink/shop", dev.http.url());
    let made = dev.command(&["webhooks", "endpoints", "create", &url, "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
}

/// The requests that came to the sink, once there are so many.
fn came(dev: &Dev, number: usize) -> Vec<Value> {
    until(&format!("{number} requests come"), || {
        let shown = dev.http.get("/dev/sink/shop/requests").json();
        let requests = shown["requests"].as_array().unwrap().clone();
        (requests.len() >= number).then_some(requests)
    })
}

/// What the page's receiver in Rust answers to a request that came.
async fn answered(secret: &str, request: &Value) -> u16 {
    let mut headers = HeaderMap::new();
    for (name, value) in request["headers"].as_object().unwrap() {
        let name = HeaderName::try_from(name).unwrap();
        headers.insert(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
    }
    let body = Bytes::from(request["body"].as_str().unwrap().to_owned());
    receiver::answer(secret, headers, body).await.as_u16()
}

#[tokio::test]
async fn the_receiver_in_rust_takes_real_deliveries_also_while_a_secret_is_replaced() {
    assert_eq!(block(PAGE, "rust", "standardwebhooks"), receiver::on_the_page());
    let dev = Dev::start(&[]);
    let (id, old) = endpoint(&dev);
    let data = "{\"b\": 0.10,\"a\":1E+2, \"u\":\"\u{2028}\u{1f642}\\/\", \"n\":[[[[[[]]]]]]}";
    let emit = ["events", "emit", "order.paid", "--about", "order:17", "--data", data];
    assert!(dev.command(&emit).status.success());
    let first = came(&dev, 1).remove(0);
    assert!(first["body"].as_str().unwrap().contains(data), "{first}");
    let rotated = dev.command(&["webhooks", "endpoints", "rotate-secret", &id]);
    let rotated: Value = serde_json::from_slice(&rotated.stdout).unwrap();
    let new = rotated["secret"].as_str().unwrap();
    assert!(dev.command(&emit).status.success());
    let second = came(&dev, 2).remove(1);
    assert_eq!((answered(&old, &first).await, answered(new, &first).await), (204, 400));
    assert_eq!((answered(&old, &second).await, answered(new, &second).await), (204, 204));
    let mut forged = second.clone();
    forged["body"] = json!("{}");
    assert_eq!(answered(new, &forged).await, 400);
}

#[test]
fn what_arrives_is_what_the_page_shows() {
    let dev = Dev::start(&[]);
    endpoint(&dev);
    let shown = blocks_of(PAGE, "").into_iter().find(|block| block.starts_with("POST /hooks")).unwrap();
    let (head, body) = shown.trim_end().split_once("\n\n").unwrap();
    let promised: Value = serde_json::from_str(body).unwrap();
    let args = ["events", "emit", "order.paid", "--about", "order:17", "--data", "{\"amount\":\"9.90\"}"];
    let given =
        ["--event-id", promised["id"].as_str().unwrap(), "--occurred-at", promised["timestamp"].as_str().unwrap()];
    assert!(dev.command(&[&args[..], &given].concat()).status.success());
    let request = came(&dev, 1).remove(0);
    assert_eq!(request["body"], body);
    let headers = request["headers"].as_object().unwrap();
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").unwrap();
        let sent = headers[name].as_str().unwrap();
        let is_of_the_moment = ["webhook-timestamp", "webhook-signature"].contains(&name);
        assert!(if is_of_the_moment { sent.len() == value.len() } else { sent == value }, "{name}: {sent}");
    }
    let theirs = ["host", "content-length", "accept"];
    assert!(
        headers.keys().all(|name| head.contains(&format!("\n{name}: ")) || theirs.contains(&name.as_str())),
        "{headers:?}"
    );
}

#[test]
fn the_curl_example_of_both_pages_is_answered_and_arrives() {
    let dev = Dev::start(&[]);
    endpoint(&dev);
    for (page, number) in [(PAGE, 1), (README, 2)] {
        let example = block(page, "sh", "/v1/events\n");
        let curl = &example[example.find("curl").unwrap()..];
        let script = curl.replace("http://127.0.0.1:8080", dev.http.url());
        let Some(said) = run_script(&script, &[("KEY", &ready(&dev, "api_key"))]) else {
            eprintln!("skipped: curl is not installed");
            return;
        };
        let answer: Value = serde_json::from_str(&said).unwrap();
        let promised = example.lines().find(|line| line.starts_with("# 202 ")).expect("it says what is answered");
        assert_eq!(promised, "# 202 {\"event_id\":\"…\"}");
        let request = came(&dev, number).remove(number - 1);
        assert_eq!(request["headers"]["webhook-id"], answer["event_id"]);
    }
}

#[test]
fn the_sql_example_arrives() {
    let dev = Dev::start(&[]);
    endpoint(&dev);
    let run = dev.command(&["sql", "--write", &block(PAGE, "sql", "outbox_events")]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(came(&dev, 1)[0]["headers"]["webhook-id"], "01931e5c-7a10-7cc3-98c4-dc0c0c07398f");
}

#[test]
fn the_example_by_hand_signs_and_verifies() {
    let place = Place::new();
    let script = block(PAGE, "sh", "request.txt");
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_pillarbox"));
    let path = format!("{}:/usr/bin:/bin", text(binary.parent().unwrap()));
    let script = format!("cd '{}'\n{script}", text(&place.path("")));
    let secret = ("WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let said = run_script(&script, &[("PATH", path.as_str()), secret]).expect("a shell with sed is there");
    let verdicts: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(verdicts.len() == 2 && verdicts.iter().all(|verdict| verdict["verified"] == true), "{said}");
}

/// The words of a command line as a shell would take them, without its comment and what is around it.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap().trim().trim_end_matches('\\');
    let line = line.split("$(pillarbox ").last().unwrap().split(" > ").next().unwrap();
    let line = line.trim_end_matches(')').trim_start_matches("pillarbox ");
    line.split('\'')
        .enumerate()
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn every_command_of_the_pages_is_one_with_these_flags() {
    let place = Place::new();
    let mut seen = 0;
    let blocks = [
        blocks_of(PAGE, "sh"),
        blocks_of(README, "sh").into_iter().filter(|block| block.contains("webhooks")).collect(),
    ]
    .concat();
    for line in blocks.iter().flat_map(|block| block.lines()).filter(|line| line.contains("pillarbox ")) {
        let words = words(line);
        let is_verb = |word: &&String| {
            word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-')
        };
        let mut help: Vec<&str> = words.iter().take_while(is_verb).map(String::as_str).collect();
        help.push("--help");
        let output = place.command(&help).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(said.contains(flag.as_str()), "{flag} in {line}\n{said}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn the_operators_commands_do_what_the_page_says() {
    let dev = Dev::start(&[]);
    let (id, _) = endpoint(&dev);
    assert!(dev.command(&["events", "emit", "order.paid", "--about", "order:17"]).status.success());
    came(&dev, 1);
    let conn = dev.reader();
    until("it is delivered", || {
        let delivered: i64 =
            file::value(&conn, "SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'", []);
        (delivered == 1).then_some(())
    });
    let listed = dev.command(&["webhooks", "deliveries", "list"]);
    let delivery: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let sink = format!("{}/dev/sink/shop", dev.http.url());
    for part in ["webhooks test", "webhooks recover", "tenants create"] {
        for line in block(PAGE, "sh", part).lines() {
            let mut words = words(line);
            for word in &mut words {
                *word = word.replace("ep_0190…", &id).replace("https://example.org/hooks", &sink);
                *word = word.replace("dlv_0190…", delivery["id"].as_str().unwrap());
            }
            // The key's id is the only one that the page has not made before.
            if words.contains(&"revoke".to_owned()) {
                continue;
            }
            let args: Vec<&str> = words.iter().map(String::as_str).collect();
            let run = dev.command(&args);
            // A test of an endpoint, or the repair of a paused one, may find nothing to do.
            assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
        }
    }
}

/// The words in quotes that a function of a source file maps its variants to.
fn words_of(source: &str, of: &str) -> Vec<String> {
    let begin = source.find(&format!("impl {of} {{")).expect("the type is there");
    let body = source[begin..].split("fn as_str").nth(1).and_then(|rest| rest.split("\n    }").next()).unwrap();
    body.lines().filter_map(|line| Some(line.split_once("=> \"")?.1.split('"').next()?.to_owned())).collect()
}

#[test]
fn every_status_and_every_class_of_failure_is_explained() {
    let sources = [
        (include_str!("../../src/webhooks/response.rs"), "ErrorClass", "| `{}` |"),
        (include_str!("../../src/webhooks/delivery/mod.rs"), "DeliveryStatus", "| `{}` |"),
        (include_str!("../../src/outbox/inspect.rs"), "EventStatus", "| `{}` |"),
        (include_str!("../../src/kernel/events/event.rs"), "EndpointReason", "| `disabled: {}` |"),
        (include_str!("../../src/tenants/role.rs"), "Role", "| `{}` |"),
    ];
    for (source, of, row) in sources {
        let words = words_of(source, of);
        assert!(words.len() >= 3, "{of}: {words:?}");
        for word in words {
            assert!(PAGE.contains(&row.replace("{}", &word)), "{of}: {word}");
        }
    }
}

#[test]
fn the_schedule_of_the_page_is_the_one_that_is_kept() {
    let dev = Dev::start(&[]);
    dev.http.try_call("PUT", "/dev/sink/shop", Some(&json!({"status": 503}))).unwrap();
    endpoint(&dev);
    let rows: Vec<&str> = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| attempt |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(dev.command(&["events", "emit", "order.paid", "--about", "order:17"]).status.success());
    let conn = dev.reader();
    let pending = "SELECT next_attempt_at FROM webhook_deliveries WHERE status = 'pending' AND attempts = ?1";
    for (number, row) in (1_i64..).zip(&rows[1..]) {
        let pause = row.split('|').nth(2).unwrap().trim();
        let (count, unit) = pause.split_once(' ').unwrap();
        let unit_s = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            other => panic!("{other}"),
        };
        let pause_ms = count.parse::<i64>().unwrap() * unit_s * 1000;
        let due: i64 =
            until(&format!("attempt {number} has failed"), || conn.query_row(pending, [number], |row| row.get(0)).ok());
        let ahead = due - dev.now();
        assert!(
            (pause_ms - 2000..=pause_ms + pause_ms / 10).contains(&ahead),
            "after attempt {number}: {ahead} ms, not {pause}"
        );
        dev.advance(Duration::from_millis(u64::try_from(ahead.max(0)).unwrap() + 1));
    }
    until("it has failed", || {
        let failed = "SELECT attempts FROM webhook_deliveries WHERE status = 'failed'";
        conn.query_row(failed, [], |row| row.get::<_, i64>(0)).ok().filter(|attempts| *attempts == rows.len() as i64)
    });
}

//! The examples about leads in the README and in `docs/leads.md`, as they stand there, against a running server.

use std::fs;

use serde_json::{Value, json};

use crate::docs::{blocks_of, run_script};
use crate::harness::dev::Dev;
use crate::harness::{Place, file, text, until};

const README: &str = include_str!("../../README.md");
const PAGE: &str = include_str!("../../docs/leads.md");
/// The lead of the examples.
const REQUEST: &str = "IP-20261130-A1B2C3";

/// The only block of the page in this language that contains `part`.
fn block(page: &str, language: &str, part: &str) -> String {
    let mut found: Vec<String> = blocks_of(page, language).into_iter().filter(|block| block.contains(part)).collect();
    assert_eq!(found.len(), 1, "{language} with {part}: {found:#?}");
    found.remove(0)
}

/// A server that takes the page's lead without an origin.
fn with_lead(sets: &[&str]) -> Dev {
    let mut all = vec!["leads.allow_originless=true"];
    all.extend(sets);
    let dev = Dev::start(&all);
    let request: Value = serde_json::from_str(&block(PAGE, "json", "schema_version")).expect("the example is JSON");
    assert_eq!(dev.http.post("/leads", &request).status, 201);
    dev
}

fn ready(dev: &Dev, key: &str) -> String {
    let ready: Value = serde_json::from_slice(&fs::read(dev.place.path("dev.ready")).unwrap()).unwrap();
    ready[key].as_str().unwrap().to_owned()
}

fn until_told(dev: &Dev, request_id: &str) {
    let conn = dev.reader();
    let sql = "SELECT notification_status FROM broker_leads WHERE request_id = ?1";
    until(&format!("{request_id} is told"), || {
        let status: Option<String> = conn.query_row(sql, [request_id], |row| row.get(0)).ok();
        (status.as_deref() == Some("sent")).then_some(())
    });
}

#[test]
fn the_readmes_lead_is_answered_as_it_says() {
    let dev = Dev::start(&["leads.allowed_origins=https://example.org"]);
    let example = block(README, "sh", "/leads\n");
    let script = example.replace("http://127.0.0.1:8080", dev.http.url());
    let Some(first) = run_script(&script, &[]) else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    let promised = example.lines().find_map(|line| line.strip_prefix("# 201 ")).expect("it says what is answered");
    assert_eq!(first, promised);
    until_told(&dev, REQUEST);
    let again = run_script(&script, &[]).unwrap();
    assert_eq!(again, promised.replace("false", "true").replace("pending", "sent"));
}

#[test]
fn the_readmes_script_posts_until_it_is_stored() {
    let dev = Dev::start(&["leads.allow_originless=true"]);
    let lead = block(PAGE, "json", "schema_version");
    let script = format!(
        "{}\nawait postLead('{}/leads', {lead}).then((answer) => console.log(JSON.stringify(answer)));\n\
         await postLead('{}/leads', {{}}).catch((error) => console.log(error.message));",
        block(README, "js", "postLead"),
        dev.http.url(),
        dev.http.url(),
    );
    let path = dev.place.path("post.mjs");
    fs::write(&path, script).unwrap();
    let Some(said) = run_script(&format!("node {}", text(&path)), &[]) else {
        eprintln!("skipped: node is not installed");
        return;
    };
    let promised = block(PAGE, "json", "\"duplicate\":false");
    assert_eq!(said.lines().collect::<Vec<_>>(), [promised.as_str(), "validation_failed"]);
}

#[test]
fn the_pages_configuration_is_one() {
    let place = Place::new();
    let settings = block(PAGE, "toml", "[leads]");
    let here = settings.replace("/var/lib/pillarbox", text(&place.path("")));
    fs::write(place.path("lead-chat"), "-1001\n").unwrap();
    fs::write(place.path("telegram-token"), format!("{}\n", crate::harness::TOKEN)).unwrap();
    fs::write(place.path("pillarbox.toml"), here).unwrap();
    let checked = place.command(&["config", "check"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn the_pages_lead_is_answered_and_told_as_it_says() {
    let dev = with_lead(&[]);
    until_told(&dev, REQUEST);
    let again = dev.http.post("/leads", &json!({"request_id": REQUEST}));
    let promised = block(PAGE, "json", "\"duplicate\":false");
    let known = promised.replace("\"duplicate\":false", "\"duplicate\":true").replace("pending", "sent");
    assert_eq!((again.status, again.body), (200, known));
    let refused = dev.http.post("/leads", &json!({"request_id": "IP-20261130-A1B2C4"}));
    let promised = block(PAGE, "json", "validation_failed").replace("A1B2C3", "A1B2C4");
    assert_eq!((refused.status, refused.body), (422, promised));
    let texts = dev.texts(-1001);
    assert!(texts[0].contains("Что уже проверено: Диагностика; Финансы"), "{texts:?}");
}

#[test]
fn every_code_of_the_envelope_is_on_the_page() {
    let source = include_str!("../../src/edge/http/lead_envelope.rs");
    let codes: Vec<&str> = source
        .split("fn code(")
        .nth(1)
        .and_then(|rest| rest.split("fn status(").next())
        .expect("both functions are there")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Self::")?.split_once(" => \"")?.1.split('"').next())
        .collect();
    assert!(codes.len() >= 10, "{codes:?}");
    for code in codes {
        assert!(PAGE.contains(&format!("| `{code}` |")), "{code}");
    }
}

#[test]
fn the_pages_commands_are_commands() {
    let dev = with_lead(&[]);
    until_told(&dev, REQUEST);
    dev.writer()
        .execute("UPDATE broker_leads SET notification_status = 'failed', notification_sent_at = NULL", [])
        .unwrap();
    for line in block(PAGE, "sh", "leads list").lines() {
        let line = line.split('#').next().unwrap().trim();
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let run = dev.command(&args);
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
        if args[1] == "retry" {
            until_told(&dev, REQUEST);
        }
    }
    let left: i64 = file::value(&dev.reader(), "SELECT count(*) FROM broker_leads", []);
    assert_eq!((left, dev.texts(-1001).len()), (0, 2));
}

#[test]
fn the_pages_sql_is_told_like_any_other_lead() {
    let dev = Dev::start(&[]);
    let run = dev.command(&["sql", "--write", &block(PAGE, "sql", "INSERT")]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    until_told(&dev, "IP-20261130-D4E5F6");
    let conn = dev.reader();
    let events: Vec<String> = file::column(&conn, "SELECT event_type FROM broker_lead_events ORDER BY id", []);
    assert_eq!(events, ["created", "notification_sent"]);
}

#[test]
fn the_pages_functions_answer_as_it_says() {
    let dev = with_lead(&["leads.delivery=rpc"]);
    let example = block(PAGE, "sh", "rpc()");
    let lead: String = file::value(&dev.reader(), "SELECT id FROM broker_leads", []);
    let key = ready(&dev, "service_role_key");
    // Each answer on a line of its own.
    let calls = example.replace("\nrpc ", "\necho; rpc ").replace("http://127.0.0.1:8080", dev.http.url());
    let environment = [("LEAD", lead.as_str()), ("SUPABASE_SERVICE_ROLE_KEY", key.as_str())];
    let Some(said) = run_script(&calls, &environment) else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    let promised: Vec<&str> = example.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), promised);
    let health = block(PAGE, "sh", "/v1/leads/health").replace("http://127.0.0.1:8080", dev.http.url());
    let health: Value = serde_json::from_str(&run_script(&health, &environment).unwrap()).unwrap();
    assert_eq!((&health["sent"]["count"], &health["alerts"]), (&json!(1), &json!([])));
}

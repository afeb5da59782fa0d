//! `pillarbox leads smoke` against a Bot API that is the fake of a running `dev`: what it tells, and what it leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::TOKEN;
use crate::harness::dev::Dev;
use crate::harness::text;

const CHAT: i64 = -1001;
const KEPT_90_DAYS: &str = "leads.retention_days=90";

/// The test beside `dev`, with the settings that a production file has: its exit code, and its steps with their outcomes.
fn smoke(dev: &Dev, sets: &[&str]) -> (i32, Vec<(String, String)>, Output) {
    let (data, temporary) = (dev.place.data(), dev.place.path("tmp"));
    fs::create_dir_all(&temporary).unwrap();
    let mut args = vec!["leads", "smoke", "--data-dir", text(&data)];
    for set in sets {
        args.extend(["--set", set]);
    }
    let output = dev.place.command(&args).env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the stage is taken down");
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    for secret in [TOKEN, "1001"] {
        assert!(!said.contains(secret) && !String::from_utf8_lossy(&output.stderr).contains(secret), "{said}");
    }
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let steps = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let steps = steps.map(|line| (word(&line, "step"), word(&line, "outcome"))).collect();
    (output.status.code().unwrap(), steps, output)
}

/// The settings of an installation whose Bot API is this fake.
fn settings(dev: &Dev) -> [String; 3] {
    [format!("telegram.token={TOKEN}"), format!("telegram.api_url={}", dev.http.url()), format!("leads.chat_id={CHAT}")]
}

fn outcomes(configuration: &str, schema: &str, retention: &str, crash: &str, recipient: &str) -> Vec<(String, String)> {
    [
        ("configuration", configuration),
        ("schema", schema),
        ("retention", retention),
        ("crash window", crash),
        ("recipient", recipient),
    ]
    .map(|(step, outcome)| (step.to_owned(), outcome.to_owned()))
    .to_vec()
}

#[test]
fn a_smoke_test_that_passes_says_so_and_is_remembered() {
    let dev = Dev::start(&[]);
    let [token, api, chat] = settings(&dev);
    let before = dev.now();
    let advice = || dev.http.get("/readyz").json()["checks"]["leads"]["detail"].clone();
    assert!(advice().as_str().is_some_and(|text| text.contains("leads smoke")), "{}", advice());
    let (code, steps, output) = smoke(&dev, &[&token, &api, &chat, KEPT_90_DAYS]);
    assert_eq!((code, steps), (0, outcomes("ok", "ok", "ok", "ok", "ok")), "{output:?}");
    assert_eq!(dev.texts(CHAT).len(), 1, "one test message");
    let path = dev.place.data().join("lead-chat.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let at = kept["smoke_passed_at"].as_i64().unwrap();
    assert!((before..=dev.now()).contains(&at), "{kept}");
    // The server learns of it by its next pass.
    dev.http.done("/dev/jobs/lead-notifications/run", &json!({}));
    assert_eq!(advice(), Value::Null);
    // The crash was played elsewhere.
    let leads: i64 = dev.reader().query_row("SELECT count(*) FROM broker_leads", [], |row| row.get(0)).unwrap();
    assert_eq!(leads, 0);
}

#[test]
fn what_is_not_decided_or_not_set_is_named_and_the_chat_is_left_alone() {
    let dev = Dev::start(&[]);
    let [token, api, chat] = settings(&dev);
    let (code, steps, output) = smoke(&dev, &[]);
    assert_eq!((code, steps), (1, outcomes("failed", "ok", "failed", "ok", "skipped")));
    let said = String::from_utf8(output.stdout).unwrap();
    for key in ["telegram.token", "leads.chat_id", "leads.retention_days"] {
        assert!(said.contains(key), "{key}: {said}");
    }
    for delivery in ["off", "rpc"] {
        let delivery = format!("leads.delivery={delivery}");
        let (code, steps, _) = smoke(&dev, &[&token, &api, &chat, KEPT_90_DAYS, &delivery]);
        assert_eq!((code, steps), (1, outcomes("failed", "ok", "ok", "ok", "skipped")), "{delivery}");
    }
    assert_eq!(dev.texts(CHAT), Vec::<String>::new());
}

#[test]
fn a_column_that_another_program_added_is_no_fault() {
    let dev = Dev::start(&[]);
    let [token, api, chat] = settings(&dev);
    let more =
        "ALTER TABLE broker_leads ADD COLUMN crm_note TEXT DEFAULT 'x'; CREATE INDEX mine ON broker_leads (crm_note);";
    dev.writer().execute_batch(more).unwrap();
    let (code, steps, output) = smoke(&dev, &[&token, &api, &chat, KEPT_90_DAYS]);
    assert_eq!((code, steps), (0, outcomes("ok", "ok", "ok", "ok", "ok")), "{output:?}");
}

#[test]
fn a_trigger_that_another_program_dropped_or_changed_is_named() {
    let dev = Dev::start(&[]);
    let [token, api, chat] = settings(&dev);
    dev.writer().execute_batch("DROP TRIGGER sync_broker_lead_preparation").unwrap();
    let (code, steps, output) = smoke(&dev, &[&token, &api, &chat, KEPT_90_DAYS]);
    assert_eq!((code, steps), (1, outcomes("ok", "failed", "ok", "ok", "skipped")));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("sync_broker_lead_preparation"), "{said}");
    assert_eq!(dev.texts(CHAT), Vec::<String>::new());
}

#[test]
fn a_chat_that_refuses_fails_the_test_with_what_to_do_and_nothing_is_remembered() {
    let dev = Dev::start(&[]);
    let [token, api, chat] = settings(&dev);
    dev.fault(&json!({"status": 403, "description": "Forbidden: bot was kicked", "chat_id": CHAT}));
    let (code, steps, output) = smoke(&dev, &[&token, &api, &chat, "leads.retention_days=0"]);
    assert_eq!((code, steps), (1, outcomes("ok", "ok", "ok", "ok", "failed")));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("telegram_http_403: the bot may not write there"), "{said}");
    assert!(!dev.place.data().join("lead-chat.json").exists());
}

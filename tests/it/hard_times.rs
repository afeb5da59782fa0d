//! A full disk, a lock held by somebody else and a damaged file, as whoever speaks HTTP to the server meets them.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::data_dir::{database, shell};
use crate::harness::http::Client;
use crate::harness::{Place, Process, SECRET, file, text, until};
use crate::store_faults::Mount;

/// A server whose events somebody else fetches, without Telegram.
fn serve(place: &Place, data: &std::path::Path, sets: &[&str]) -> (Process, Client) {
    let mut args = vec!["serve", "--data-dir", text(data), "--listen", "127.0.0.1:0"];
    for set in ["bot.event_source=off"].iter().chain(sets) {
        args.extend(["--set", set]);
    }
    let mut process = place.start(&args, &[("BOT_TO_BACKEND_SECRET", SECRET)]);
    let url = process.serving_url();
    (process, Client::new(&url, Some(SECRET)))
}

fn event(uid: i64) -> serde_json::Value {
    json!({"eventType": "reactivation", "magnetUid": uid, "payload": {"filler": "x".repeat(8000)}})
}

fn code(answer: &crate::harness::http::Answer) -> String {
    answer.json()["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn on_a_full_disk_intake_is_refused_and_acknowledgements_go_on() {
    let Some(mount) = Mount::tmpfs("64m") else { return };
    let place = Place::new();
    let (mut process, http) = serve(&place, &mount.path().join("data"), &["store.min_free=8MB", "store.ballast=4MB"]);
    let ids: Vec<i64> = (1..=300).map(|uid| http.done("/bot/events", &event(uid))["id"].as_i64().unwrap()).collect();
    let filler = mount.fill("filler", 0);
    let refused = until("intake is refused", || Some(http.post("/bot/events", &event(1))).filter(|a| a.status == 503));
    assert!(["disk_low", "disk_full"].contains(&code(&refused).as_str()), "{}", refused.json());
    for ack in ids.chunks(50) {
        let answer = http.done("/bot/events/ack", &json!({ "processedIds": ack }));
        assert_eq!(answer["processed"], ack.len());
    }
    assert_eq!(http.post("/bot/events", &event(1)).status, 503);
    std::fs::remove_file(filler).unwrap();
    until("intake goes on", || (http.post("/bot/events", &event(2)).status == 201).then_some(()));
    let conn = file::reader(&mount.path().join("data"));
    let closed: i64 = file::value(&conn, "SELECT count(*) FROM bot_event_outbox WHERE outcome = 'handled'", []);
    assert_eq!(closed, 300, "every acknowledged write is there");
    process.stop();
}

#[test]
fn a_write_lock_held_for_ten_seconds_is_a_clear_refusal_and_passes() {
    let place = Place::new();
    let (_process, http) = serve(&place, &place.data(), &[]);
    let id = http.done("/bot/events", &event(1))["id"].as_i64().unwrap();
    let holder = file::writer(&place.data());
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let since = Instant::now();
    let (refused, acked) = std::thread::scope(|scope| {
        let emitting = scope.spawn(|| http.post("/bot/events", &event(2)));
        let acking = scope.spawn(|| http.done("/bot/events/ack", &json!({ "processedIds": [id] })));
        let refused = emitting.join().unwrap();
        let left = Duration::from_secs(10).saturating_sub(since.elapsed());
        std::thread::sleep(left);
        holder.execute_batch("COMMIT").unwrap();
        (refused, acking.join().unwrap())
    });
    assert_eq!((refused.status, code(&refused)), (503, "store_busy".to_owned()));
    assert_eq!(acked["processed"], 1, "an acknowledgement waits for the lock and lands");
    assert_eq!(http.post("/bot/events", &event(3)).status, 201);
    assert_eq!(http.get("/readyz").status, 200);
}

#[test]
fn a_file_overwritten_under_the_server_is_written_no_more() {
    let place = Place::new();
    let (mut process, http) = serve(&place, &place.data(), &[]);
    for uid in 1..=200 {
        http.done("/bot/events", &event(uid));
    }
    let database = database(&place.data());
    shell("dd if=/dev/urandom of=\"$1\" bs=4096 count=2000 conv=notrunc 2>/dev/null", &database);
    let left = shell("sha256sum < \"$1\"", &database);
    let unready = until("readiness says so", || Some(http.get("/readyz")).filter(|answer| answer.status == 503));
    assert!(unready.json()["checks"]["store"]["detail"].as_str().unwrap().contains("damaged"), "{}", unready.json());
    let refused = http.post("/bot/events", &event(1));
    assert_eq!((refused.status, code(&refused)), (503, "store_damaged".to_owned()));
    process.signal(Signal::TERM);
    process.wait(Duration::from_secs(20));
    assert_eq!(shell("sha256sum < \"$1\"", &database), left, "the file is as it was found");
}

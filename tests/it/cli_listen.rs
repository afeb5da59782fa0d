//! `pillarbox webhooks listen` beside a `dev`: deliveries are shown as they arrive, and handed on to a program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::http::Client;
use crate::harness::{PATIENCE, Place, Process, file, text, until};

/// Made with the specification's own tools.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A listener beside a `dev`, with its own secret.
struct Listener {
    process: Process,
    url: String,
}

impl Listener {
    fn start(dev: &Dev, args: &[&str]) -> Self {
        let data = dev.place.data();
        let before: i64 =
            file::value(&dev.reader(), "SELECT max(id) FROM webhook_endpoints UNION SELECT 0 ORDER BY 1 DESC", []);
        let all = [&["webhooks", "listen", "--data-dir", text(&data)], args].concat();
        let process = dev.place.start(&all, &[("WEBHOOK_SECRET", SECRET)]);
        let conn = dev.reader();
        let sql = "SELECT url FROM webhook_endpoints WHERE id > ?1 AND deleted_at IS NULL";
        let url = until("the listener has its endpoint", || conn.query_row(sql, [before], |row| row.get(0)).ok());
        let listener = Self { process, url };
        until("it says so", || listener.process.log().contains("listening as ep_").then_some(()));
        listener
    }

    /// The arrivals that it has printed.
    fn arrivals(&self) -> Vec<Value> {
        let log = self.process.log();
        log.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn arrival(&self, number: usize) -> Value {
        until("a delivery arrives", || self.arrivals().into_iter().nth(number))
    }
}

fn endpoints(dev: &Dev) -> Vec<String> {
    file::column(&dev.reader(), "SELECT endpoint_id FROM webhook_endpoints WHERE deleted_at IS NULL ORDER BY id", [])
}

/// A program that answers its next requests with these, and tells what it got, head and body.
fn program(answers: &[&str]) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            tell.send((head, body)).unwrap();
        }
    });
    (url, told)
}

/// Posts an event as a tenant does; its id.
fn post(dev: &Dev, event_type: &str, data: &str) -> String {
    let args = ["events", "emit", event_type, "--about", "order:17", "--data", data];
    let ran = dev.command(&args);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn deliveries_are_shown_verified_and_handed_on_byte_for_byte() {
    let dev = Dev::start(&[]);
    let (url, told) = program(&["200 OK", "500 No", "200 OK"]);
    let mut listener = Listener::start(&dev, &["--forward-to", &url, "--event-types", "order.*", "--print-body"]);
    let data = "{\"b\": 0.10,\"a\":1, \"u\":\"\u{2028}\u{1f642}\\/\"}";
    let id = post(&dev, "order.paid", data);
    let (head, body) = told.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("POST /hooks HTTP/1.1\r\n") && head.contains(&format!("webhook-id: {id}\r\n")), "{head}");
    assert!(String::from_utf8(body.clone()).unwrap().contains(data));
    let arrival = listener.arrival(0);
    let expected = json!({"type": "order.paid", "id": id, "attempt": 1, "verified": true, "reason": null,
        "forwarded_status": 200, "forward_error": null, "late": false, "body": String::from_utf8(body).unwrap()});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(arrival[field], *value, "{field}: {arrival}");
    }
    // One that fails comes again, under the same id, when it is due.
    let again = post(&dev, "order.refunded", "{}");
    let (_, first) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((&listener.arrival(1)["attempt"], &listener.arrival(1)["forwarded_status"]), (&json!(1), &json!(500)));
    dev.advance(Duration::from_secs(10));
    let (_, second) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first, second);
    let arrival = listener.arrival(2);
    assert_eq!((&arrival["id"], &arrival["attempt"], &arrival["verified"]), (&json!(again), &json!(2), &json!(true)));
    // Other types are not for it.
    post(&dev, "invoice.paid", "{}");
    listener.process.stop();
    assert_eq!(listener.arrivals().len(), 3);
    assert_eq!(endpoints(&dev), Vec::<String>::new());
}

#[test]
fn without_a_program_it_answers_200_and_a_program_that_is_not_there_is_a_502() {
    let dev = Dev::start(&[]);
    let listener = Listener::start(&dev, &[]);
    let id = post(&dev, "order.paid", "{}");
    let arrival = listener.arrival(0);
    assert_eq!((&arrival["id"], &arrival["forwarded_status"]), (&json!(id), &json!(null)));
    assert!(arrival.get("body").is_none());
    until_delivery(&dev, &id, "delivered", "-");
    drop(listener);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = Listener::start(&dev, &["--forward-to", &format!("http://{nobody}/")]);
    let id = post(&dev, "order.paid", "{}");
    let arrival = listener.arrival(0);
    assert!(arrival["forward_error"].as_str().unwrap().contains("refused"), "{arrival}");
    until_delivery(&dev, &id, "pending", "http_502");
}

/// Waits until the newest delivery of an event is as told.
fn until_delivery(dev: &Dev, event_id: &str, status: &str, last_error: &str) {
    let conn = dev.reader();
    let sql = "SELECT d.status, COALESCE(d.last_error, '-') FROM webhook_deliveries AS d
               JOIN webhook_messages AS m ON m.id = d.message WHERE m.event_id = ?1 ORDER BY d.id DESC";
    until(&format!("{event_id} is {status}, {last_error}"), || {
        let found: (String, String) = conn.query_row(sql, [event_id], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
        (found == (status.to_owned(), last_error.to_owned())).then_some(())
    });
}

#[test]
fn what_was_not_sent_by_dev_is_shown_as_not_verified() {
    let dev = Dev::start(&[]);
    let listener = Listener::start(&dev, &[]);
    let (base, path) = listener.url.split_at(listener.url.find("/listen/").unwrap());
    let forged = Client::new(base, None).with_header("webhook-id", "msg_1");
    assert_eq!(forged.post(path, &json!({"type": "order.paid"})).status, 200);
    let arrival = listener.arrival(0);
    assert_eq!((&arrival["verified"], &arrival["type"]), (&json!(false), &json!("order.paid")));
    assert_eq!(arrival["reason"], "the header webhook-timestamp is missing");
}

#[test]
fn it_takes_its_endpoint_away_at_a_signal_and_that_of_a_killed_one_at_the_next_start() {
    let dev = Dev::start(&[]);
    for signal in [Signal::INT, Signal::TERM] {
        let mut listener = Listener::start(&dev, &[]);
        assert_eq!(endpoints(&dev).len(), 1);
        listener.process.signal(signal);
        assert!(listener.process.wait(PATIENCE).success(), "{}", listener.process.log());
        assert_eq!(endpoints(&dev), Vec::<String>::new());
    }
    let mut killed = Listener::start(&dev, &[]);
    let left = endpoints(&dev);
    killed.process.kill();
    assert_eq!(endpoints(&dev), left);
    let first = Listener::start(&dev, &[]);
    let living = endpoints(&dev);
    assert!(living.len() == 1 && living != left, "{living:?}");
    assert!(first.process.log().contains("that was killed has been deleted"), "{}", first.process.log());
    // One that lives is left alone.
    let second = Listener::start(&dev, &[]);
    assert_eq!(endpoints(&dev).len(), 2);
    drop((first, second));
}

#[test]
fn it_says_which_secret_it_made_and_keeps_quiet_about_one_that_was_given() {
    let dev = Dev::start(&[]);
    let given = Listener::start(&dev, &[]);
    assert!(!given.process.log().contains("whsec_"), "{}", given.process.log());
    let data = dev.place.data();
    let made = dev.place.start(&["webhooks", "listen", "--data-dir", text(&data)], &[]);
    until("it says its secret", || made.log().contains("signed with whsec_").then_some(()));
}

#[test]
fn a_directory_that_is_not_devs_is_refused() {
    let place = Place::new();
    let listen = |args: &[&str]| {
        let output = place.command(&[&["webhooks", "listen"], args].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = listen(&[]);
    assert!(code == Some(1) && said.contains("pillarbox-dev is no directory of `pillarbox dev`"), "{said}");
    assert!(place.command(&["migrate"]).output().unwrap().status.success());
    let (code, said) = listen(&["--data-dir", "pillarbox-data"]);
    assert!(code == Some(1) && said.contains("start that first") && said.contains("--data-dir"), "{said}");
    let mut dev = Dev::start(&[]);
    dev.process.stop();
    let (code, said) = listen(&["--data-dir", text(&dev.place.data())]);
    assert!(code == Some(1) && said.contains("no `pillarbox dev` is running"), "{said}");
    let (code, said) = listen(&["--forward-to", "ftp://localhost/"]);
    assert!(code == Some(2) && said.contains("http://localhost:3000"), "{said}");
}

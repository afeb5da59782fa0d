//! A backend of the contract in a few lines, on a real socket, with the faults that a test asks for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::kernel::contract::TAKES_REASONS;

/// What goes wrong with one request.
pub(super) enum Fault {
    /// This is answered, and nothing done.
    Answer(&'static str, String),
    /// Nothing is done, and the connection closed.
    Lose,
    /// It is done, and the connection closed without an answer.
    LoseAnswer,
    /// Nothing is done, and nothing answered.
    Hang,
}

#[derive(Default)]
pub(super) struct State {
    /// What is open and due, in the order in which it is served.
    pub(super) events: Vec<Value>,
    /// What waits for its retry.
    pub(super) waiting: Vec<Value>,
    pub(super) acks: Vec<Value>,
    pub(super) notifications: Vec<Value>,
    pub(super) bindings: Vec<Value>,
    /// First lines and headers of all requests.
    pub(super) heads: Vec<String>,
    /// Whether it says that it takes reasons.
    pub(super) takes_reasons: bool,
    /// The next requests to such a path fail so.
    pub(super) faults: VecDeque<(&'static str, Fault)>,
}

pub(super) struct Peer {
    address: std::net::SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Peer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Self { address, state }
    }

    /// The base address, below a path as a reverse proxy gives one.
    pub(super) fn url(&self) -> String {
        format!("http://{}/api/v2/", self.address)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn serves(&self, events: impl IntoIterator<Item = Value>) {
        self.state().events = events.into_iter().collect();
    }

    /// Lets the next request to `path` fail.
    pub(super) fn fails(&self, path: &'static str, fault: Fault) {
        self.state().faults.push_back((path, fault));
    }

    /// The ids of one list of all acknowledgements.
    pub(super) fn acked(&self, list: &str) -> Vec<Value> {
        let state = self.state();
        state.acks.iter().flat_map(|ack| ack[list].as_array().unwrap().clone()).collect()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some((head, body)) = read_request(&mut stream).await else { return };
    let answer = answer(&state, &head, &body);
    match answer {
        Some(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
        }
        None => {
            // Reads until the client has had enough.
            let _ = stream.read_buf(&mut Vec::new()).await;
        }
    }
}

/// `None` means that no answer ever comes.
fn answer(state: &Mutex<State>, head: &str, body: &str) -> Option<String> {
    let mut state = state.lock().unwrap();
    state.heads.push(head.to_owned());
    let (method, target) = head.split_once(' ').unwrap();
    let target = target.split(' ').next().unwrap();
    let path = target.split('?').next().unwrap().trim_start_matches("/api/v2").to_owned();
    let fault = match state.faults.front() {
        Some((on, _)) if path.contains(on) => state.faults.pop_front().map(|(_, fault)| fault),
        _ => None,
    };
    match fault {
        Some(Fault::Answer(status, text)) => return Some(http(status, "", &text)),
        Some(Fault::Lose) => return Some(String::new()),
        Some(Fault::Hang) => return None,
        Some(Fault::LoseAnswer) | None => {}
    }
    let reasons = if state.takes_reasons { format!("{TAKES_REASONS}: 1\r\n") } else { String::new() };
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    let done = match (method, path.as_str()) {
        ("GET", "/bot/events/pending") => http("200 OK", &reasons, &json!({ "events": state.events }).to_string()),
        ("POST", "/bot/events/ack") => {
            state.acknowledge(body);
            http("201 Created", "", "{}")
        }
        ("POST", "/bot/notification") => {
            state.notifications.push(body);
            http("201 Created", "", "")
        }
        ("POST", "/bot/telegram/bind") => {
            let bound = json!({ "uid": body["magnetUid"], "telegramId": body["telegramId"] });
            state.bindings.push(body);
            http("200 OK", "", &bound.to_string())
        }
        _ => http("404 Not Found", "", "{}"),
    };
    Some(if matches!(fault, Some(Fault::LoseAnswer)) { String::new() } else { done })
}

impl State {
    fn acknowledge(&mut self, ack: Value) {
        let has = |list: &Value, event: &Value| {
            list.as_array().unwrap().iter().any(|id| *id == event["id"] || id["id"] == event["id"])
        };
        self.events.retain(|event| !has(&ack["processedIds"], event));
        let retried: Vec<Value> = self.events.extract_if(.., |event| has(&ack["retryIds"], event)).collect();
        self.waiting.extend(retried);
        self.acks.push(ack);
    }
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

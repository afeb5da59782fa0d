//! A small HTTP client on a plain socket: one connection a request, so that nothing is hidden between test and server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }
}

/// Speaks to one server, with or without a bearer secret.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    url: String,
    secret: Option<String>,
    /// Header lines that every request has besides.
    headers: String,
}

impl Client {
    pub(crate) fn new(url: &str, secret: Option<&str>) -> Self {
        Self { url: url.to_owned(), secret: secret.map(str::to_owned), headers: String::new() }
    }

    /// The same client, who sends this header too.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn secret(&self) -> &str {
        self.secret.as_deref().expect("this client has a secret")
    }

    /// Where to connect to.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("an http address")
    }

    /// One request. An answer that is not whole is an error, as is none.
    pub(crate) fn try_call(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let host = self.address();
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        if let Some(secret) = &self.secret {
            request.push_str(&format!("Authorization: Bearer {secret}\r\n"));
        }
        request.push_str(&self.headers);
        if !body.is_empty() {
            request.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        read(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is not whole"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.try_call("GET", path, None).unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_call("POST", path, Some(body)).unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// Posts what must be accepted.
    pub(crate) fn done(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert!((200..300).contains(&answer.status), "POST {path} {body}: {} {}", answer.status, answer.body);
        answer.json()
    }
}

/// Head and body; `None` when the body is shorter than its announced length.
fn read(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    if status == 204 {
        return body.is_empty().then(|| Answer { status, body: String::new() });
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    // 204 has no body, and says nothing of its length.
    let length = length.or((status == 204).then_some(0))?;
    (body.len() == length).then(|| Answer { status, body: String::from_utf8_lossy(body).into_owned() })
}

//! A webhook as somebody kept it: the dump of an HTTP message, as `nc -l` or `curl -i` print one, taken apart.
//!
//! Only the head is read as text. The body stays the bytes that came, since every one of them is signed.

use crate::dev::signature::Signed;

/// A message of headers and a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    headers: Vec<(&'a str, &'a str)>,
    pub(super) body: &'a [u8],
}

/// Why a text is not one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoMessage {
    #[error("there is no empty line after the headers")]
    NoBody,
    #[error("line {0} is not a header")]
    NoHeader(usize),
    #[error("the body is cut: content-length says {announced} bytes, and {found} are there")]
    Cut { announced: usize, found: usize },
}

impl<'a> Message<'a> {
    /// Takes a dump apart. It may begin with the line of a request or an answer, or with the headers; heads of answers
    /// that only announce another (`100 Continue`) are left out.
    ///
    /// # Errors
    /// [`NoMessage`].
    pub(super) fn parse(mut dump: &'a [u8]) -> Result<Self, NoMessage> {
        let mut before = 0;
        loop {
            let head = Head::read(dump, before)?;
            dump = &dump[head.length..];
            before += head.lines;
            if !head.is_interim {
                return Self { headers: head.headers, body: dump }.with_announced_length();
            }
        }
    }

    /// What the headers say of the signature; the first of each name counts.
    pub(super) fn signed(&self) -> Signed<'a> {
        Signed {
            id: self.header("webhook-id"),
            timestamp: self.header("webhook-timestamp"),
            signatures: self.header("webhook-signature"),
        }
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// What tools put after a body is not of it.
    fn with_announced_length(mut self) -> Result<Self, NoMessage> {
        let Some(announced) = self.header("content-length").and_then(|length| length.parse().ok()) else {
            return Ok(self);
        };
        let found = self.body.len();
        self.body = self.body.get(..announced).ok_or(NoMessage::Cut { announced, found })?;
        Ok(self)
    }
}

struct Head<'a> {
    headers: Vec<(&'a str, &'a str)>,
    /// Of an answer that announces another.
    is_interim: bool,
    /// Bytes, the empty line with them.
    length: usize,
    lines: usize,
}

impl<'a> Head<'a> {
    /// The head at the start of `dump`, of which `before` lines have been read.
    fn read(dump: &'a [u8], before: usize) -> Result<Self, NoMessage> {
        let mut head = Self { headers: Vec::new(), is_interim: false, length: 0, lines: 0 };
        for line in dump.split_inclusive(|byte| *byte == b'\n') {
            head.length += line.len();
            head.lines += 1;
            let Some(ended) = line.strip_suffix(b"\n") else { return Err(NoMessage::NoBody) };
            let bare = ended.strip_suffix(b"\r").unwrap_or(ended);
            if bare.is_empty() {
                return Ok(head);
            }
            let text = std::str::from_utf8(bare).map_err(|_| NoMessage::NoHeader(before + head.lines))?;
            match text.split_once(':') {
                _ if head.lines == 1 && is_start_line(text) => {
                    head.is_interim = text.split(' ').nth(1).is_some_and(is_interim)
                }
                Some((name, value)) if is_name(name) => head.headers.push((name, value.trim())),
                _ => return Err(NoMessage::NoHeader(before + head.lines)),
            }
        }
        Err(NoMessage::NoBody)
    }
}

/// `POST /hook HTTP/1.1` or `HTTP/2 200`.
fn is_start_line(text: &str) -> bool {
    text.starts_with("HTTP/") || text.rsplit(' ').next().is_some_and(|last| last.starts_with("HTTP/"))
}

fn is_interim(status: &str) -> bool {
    status.len() == 3 && status.starts_with('1')
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_may_begin_with_either_line_or_with_its_headers() {
        for start in ["POST /hook?a=b:c HTTP/1.1\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\n", ""] {
            let dump = format!("{start}Host: a\r\nWebhook-Id:  msg_1 \r\nwebhook-id: msg_2\r\n\r\n{{\"a\":1}}\r\n\r\n");
            let message = Message::parse(dump.as_bytes()).unwrap();
            assert_eq!(message.signed().id, Some("msg_1"), "{start}");
            assert_eq!(message.body, b"{\"a\":1}\r\n\r\n", "{start}");
        }
    }

    #[test]
    fn the_announced_length_ends_the_body_and_a_shorter_one_is_refused() {
        let message = Message::parse(b"content-length: 2\n\n{}\n").unwrap();
        assert_eq!(message.body, b"{}");
        let cut = Message::parse(b"Content-Length: 3\n\n{}");
        assert_eq!(cut, Err(NoMessage::Cut { announced: 3, found: 2 }));
    }

    #[test]
    fn the_body_is_bytes_and_what_has_no_head_is_refused() {
        assert_eq!(Message::parse(b"a: b\n\n\xff\x00").unwrap().body, b"\xff\x00");
        assert_eq!(Message::parse(b"{\"a\": 1}"), Err(NoMessage::NoBody));
        assert_eq!(Message::parse(b"{\"a\":\n1}\n\n"), Err(NoMessage::NoHeader(1)));
        assert_eq!(Message::parse(b"HTTP/1.1 100 Continue\n\na: b\n\xff: c\n\n"), Err(NoMessage::NoHeader(4)));
        assert_eq!(Message::parse(b""), Err(NoMessage::NoBody));
    }
}

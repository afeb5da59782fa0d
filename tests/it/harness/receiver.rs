//! Receivers of webhooks outside the server's process: threads that write down every byte that came, and then answer,
//! hang, or break the connection as the test says. They go on when the server is killed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use standardwebhooks::Webhook;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A piece of a large body.
static CHUNK: [u8; 1 << 16] = [b'x'; 1 << 16];

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Answers so.
    Status(u16),
    /// Answers so with these header lines, each ended by CR LF, and this body.
    Whole(u16, &'static str, &'static str),
    /// Answers so, after this long.
    After(Duration, u16),
    /// Answers so, with a body of this many bytes.
    Flood(u16, usize),
    /// Answers so, and a byte of the body ten times a second, until the other side leaves.
    Drip(u16),
    /// Says nothing until the other side leaves.
    Hang,
    /// Ends the connection in order, without an answer.
    Close,
    /// Ends it by a reset.
    Reset,
    /// Writes these bytes and ends the connection.
    Bytes(&'static [u8]),
}

impl Reply {
    /// The status that the other side may have read.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::Whole(status, ..) | Self::After(_, status) => Some(*status),
            Self::Flood(status, _) | Self::Drip(status) => Some(*status),
            Self::Hang | Self::Close | Self::Reset | Self::Bytes(_) => None,
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status().is_some_and(|status| (200..300).contains(&status))
    }
}

/// A request that came whole.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    /// The path with its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How many of the same `webhook-id` came to the same path before.
    pub(crate) earlier: usize,
    /// What was decided to do with it.
    pub(crate) reply: Reply,
}

impl Came {
    /// The only header of this name.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(its, _)| its == name);
        let (_, value) = found.next().unwrap_or_else(|| panic!("there is no {name}: {self:?}"));
        assert!(found.next().is_none(), "{name} came twice: {self:?}");
        value
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    /// The seconds that were signed.
    pub(crate) fn timestamp(&self) -> i64 {
        self.header("webhook-timestamp").parse().unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn signatures(&self) -> Vec<&str> {
        self.header("webhook-signature").split(' ').collect()
    }

    /// Whether one of the signatures is what the official library makes of these bytes with this secret. Its `verify`
    /// goes by the system's clock, which `dev` leaves behind.
    pub(crate) fn is_signed_by(&self, secret: &str) -> bool {
        let webhook = Webhook::new(secret).expect("a secret");
        let expected = webhook.sign(self.id(), self.timestamp(), &self.body).expect("the body is UTF-8");
        self.signatures().contains(&expected.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// What has come.
#[derive(Default)]
struct Kept {
    came: Vec<Came>,
    /// How many of each id came to each path.
    counts: HashMap<(String, String), usize>,
}

type Decide = Box<dyn Fn(&Came) -> Reply + Send + Sync>;

struct Shared {
    decide: Decide,
    kept: Mutex<Kept>,
    over: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

/// A listening receiver; it stops when it goes out of scope.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    /// Speaks plain HTTP and decides so; it is shown each request with [`Reply::Hang`] in place of the reply.
    pub(crate) fn start(decide: impl Fn(&Came) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Box::new(decide), None)
    }

    /// The same over TLS.
    pub(crate) fn start_tls(config: ServerConfig, decide: impl Fn(&Came) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Box::new(decide), Some(Arc::new(config)))
    }

    fn listen(decide: Decide, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared { decide, kept: Mutex::default(), over: AtomicBool::new(false), tls });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.over.load(Ordering::Relaxed) {
                    return;
                }
                let served = Arc::clone(&served);
                let Ok(stream) = stream else { continue };
                std::thread::spawn(move || served.serve(&stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Everything that came, oldest first.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.shared.kept().came.clone()
    }

    /// What came to one path.
    pub(crate) fn came_to(&self, path: &str) -> Vec<Came> {
        self.shared.kept().came.iter().filter(|came| came.path == path).cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.kept().came.len()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One connection, until either side has had enough.
    fn serve(&self, socket: &TcpStream) {
        let _ = socket.set_nodelay(true);
        match &self.tls {
            None => self.converse(socket, socket),
            Some(config) => {
                let session = ServerConnection::new(Arc::clone(config)).expect("the configuration is sound");
                self.converse(StreamOwned::new(session, socket), socket);
            }
        }
    }

    fn converse(&self, stream: impl Read + Write, socket: &TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Some(came) = read_request(&mut stream) {
            let reply = self.write_down(came);
            if !carry_out(&reply, &mut stream, socket) || self.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Decides and remembers, in one step and before anything is answered.
    fn write_down(&self, mut came: Came) -> Reply {
        let mut kept = self.kept();
        let id = came.headers.iter().find(|(name, _)| name == "webhook-id").map(|(_, id)| id.clone());
        let earlier = kept.counts.entry((came.path.clone(), id.unwrap_or_default())).or_default();
        came.earlier = *earlier;
        *earlier += 1;
        came.reply = (self.decide)(&came);
        let reply = came.reply.clone();
        kept.came.push(came);
        reply
    }
}

/// The next request; `None` when the other side left, or sent a part.
fn read_request(stream: &mut impl BufRead) -> Option<Came> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines.first()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Came { path, headers, body, earlier: 0, reply: Reply::Hang })
}

/// Whether the connection goes on.
fn carry_out(reply: &Reply, stream: &mut BufReader<impl Read + Write>, socket: &TcpStream) -> bool {
    let answer = |status: u16, headers: &str, body: &str| {
        format!("HTTP/1.1 {status} Told\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let told = match reply {
        Reply::Status(status) => answer(*status, "", ""),
        Reply::Whole(status, headers, body) => answer(*status, headers, body),
        Reply::After(pause, status) => {
            std::thread::sleep(*pause);
            answer(*status, "", "")
        }
        Reply::Flood(status, length) => {
            let head = format!("HTTP/1.1 {status} Told\r\nContent-Length: {length}\r\n\r\n");
            let mut told = stream.get_mut().write_all(head.as_bytes());
            for _ in 0..length / CHUNK.len() {
                told = told.and_then(|()| stream.get_mut().write_all(&CHUNK));
            }
            return false;
        }
        Reply::Drip(status) => {
            let head = format!("HTTP/1.1 {status} Told\r\nContent-Length: 1000000\r\n\r\n");
            let mut told = stream.get_mut().write_all(head.as_bytes());
            while told.is_ok() {
                std::thread::sleep(Duration::from_millis(100));
                told = stream.get_mut().write_all(b"x").and_then(|()| stream.get_mut().flush());
            }
            return false;
        }
        Reply::Hang => {
            let _ = stream.read(&mut [0]);
            return false;
        }
        Reply::Close => return false,
        Reply::Reset => {
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
            return false;
        }
        Reply::Bytes(bytes) => {
            let _ = stream.get_mut().write_all(bytes).and_then(|()| stream.get_mut().flush());
            return false;
        }
    };
    stream.get_mut().write_all(told.as_bytes()).and_then(|()| stream.get_mut().flush()).is_ok()
}

//! A receiver of webhooks that is as light as can be, since it shares the machine with what is measured: a thread, a
//! listener, and a 200 for each request. It notes when which event came.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// How a receiver treats a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Answers,
    /// Takes the connection and says nothing.
    Hangs,
}

/// A running receiver; ended with its value.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    /// What was noted: the number in `"seq":N`, and when it came.
    arrivals: Mutex<Vec<(u64, Instant)>>,
}

impl Receiver {
    pub(crate) fn start(manner: Manner) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (seen, stop) = (Arc::<Seen>::default(), CancellationToken::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (theirs, ended) = (Arc::clone(&seen), stop.clone());
        let thread = std::thread::spawn(move || {
            let serving = async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(receive(stream, manner, Arc::clone(&theirs)));
                }
            };
            runtime.block_on(ended.run_until_cancelled(serving));
        });
        Ok(Self { address, seen, stop, thread: Some(thread) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Requests so far.
    pub(crate) fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }

    /// Takes what was noted since the last time.
    pub(crate) fn take_arrivals(&self) -> Vec<(u64, Instant)> {
        std::mem::take(&mut *self.seen.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

async fn receive(mut stream: TcpStream, manner: Manner, seen: Arc<Seen>) {
    // Without it a small answer may wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let mut read = Vec::with_capacity(16 << 10);
    while matches!(stream.read_buf(&mut read).await, Ok(1..)) {
        while let Some((head, whole)) = find_request(&read) {
            if manner == Manner::Hangs {
                std::future::pending::<()>().await;
            }
            note(&seen, &read[head..whole]);
            read.drain(..whole);
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
        }
    }
}

/// Where the first request's head ends and where it ends itself, if it is there whole.
fn find_request(read: &[u8]) -> Option<(usize, usize)> {
    let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&read[..head]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    (read.len() >= head + length).then_some((head, head + length))
}

fn note(seen: &Seen, body: &[u8]) {
    let came = Instant::now();
    seen.count.fetch_add(1, Ordering::Relaxed);
    let numbered = body.windows(6).position(|six| six == b"\"seq\":").map(|at| &body[at + 6..]);
    let digits = numbered.map(|rest| rest.iter().take_while(|byte| byte.is_ascii_digit()));
    if let Some(digits) = digits {
        let number = digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        seen.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push((number, came));
    }
}

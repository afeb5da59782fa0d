//! Receivers that write without end, as fast as the socket takes it: faster than a client reads. Each has threads of its
//! own, so that nothing but the client keeps them from it; a runtime of two workers has to go on meanwhile.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::tls::{Authority, provider};
use super::*;

const PATIENCE: Duration = Duration::from_secs(4);
/// Far more than a runtime that goes on needs for anything here, and far less than a flood lasts.
const STANDSTILL: Duration = Duration::from_secs(1);
/// How many flood at once: twice the workers of the runtime and more.
const AT_ONCE: usize = 5;

const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A receiver that has a thread for each connection.
struct Flood {
    at: SocketAddr,
    /// Told of each connection that has ended.
    ended: mpsc::Receiver<()>,
}

fn receiving(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> Flood {
    let listener = TcpListener::bind((PRIVATE, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let behave = Arc::new(behave);
    let (tell, ended) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (behave, tell) = (Arc::clone(&behave), tell.clone());
            std::thread::spawn(move || {
                behave(stream.unwrap());
                let _ = tell.send(());
            });
        }
    });
    Flood { at, ended }
}

/// A receiver that says `first` when it has been spoken to, and then `again` for as long as anybody listens.
fn flooding(first: &'static [u8], again: &[u8]) -> Flood {
    let blob = again.repeat(200_000 / again.len());
    receiving(move |stream| flood(stream, first, &blob))
}

fn flood(mut stream: impl Read + Write, first: &[u8], blob: &[u8]) {
    let _ = stream.read(&mut [0; 65_536]);
    let _ = stream.write_all(first);
    while stream.write_all(blob).is_ok() {}
}

/// The longest that a task which only sleeps was kept from going on while `work` was done.
async fn standstill<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let longest = Arc::new(Mutex::new(Duration::ZERO));
    let write = Arc::clone(&longest);
    let pulse = tokio::spawn(async move {
        loop {
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut longest = write.lock().unwrap();
            *longest = began.elapsed().max(*longest);
        }
    });
    let done = work.await;
    pulse.abort();
    let longest = *longest.lock().unwrap();
    (done, longest)
}

/// Sends to several floods of a kind at once. All are told alike, in time; nothing else had to wait for them; and nobody
/// listens to them any more.
async fn withstands(
    transport: &Transport,
    scheme: &str,
    flood: &Flood,
    (status, error): (Option<u16>, Option<&'static str>),
) {
    let attempts = (0..AT_ONCE).map(|_| {
        let (transport, url) = (transport.clone(), format!("{scheme}://{}/", flood.at));
        tokio::spawn(async move { post(&transport, &url).await })
    });
    let attempts: Vec<_> = attempts.collect();
    let (answers, longest) = standstill(futures_util::future::join_all(attempts)).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(told(&answer), at_loopback(status, error));
        assert!(answer.outcome.duration < PATIENCE + STANDSTILL, "{:?}", answer.outcome.duration);
    }
    assert!(longest < STANDSTILL, "{longest:?}");
    for _ in 0..AT_ONCE {
        flood.ended.recv_timeout(PATIENCE).expect("the connection is closed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn provisional_answers_without_end_are_no_answer_and_hold_up_nobody() {
    for again in [HINTS, b"HTTP/1.1 100\r\n\r\n", b"HTTP/1.1 199 X\r\na:\r\nb:\r\nc:\r\n\r\n"] {
        println!("{}", again.escape_ascii());
        withstands(&insecure(PATIENCE), "http", &flooding(b"", again), (None, Some("protocol"))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_without_end_is_no_answer_and_holds_up_nobody() {
    let heads: [(&[u8], &[u8]); 5] = [
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        (b"HTTP/1.1 200 ", b"K"),
        (b"", b"\r\n"),
        (b"", b"\0"),
    ];
    for (first, again) in heads {
        println!("{} {}", first.escape_ascii(), again.escape_ascii());
        withstands(&insecure(PATIENCE), "http", &flooding(first, again), (None, Some("protocol"))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_without_end_changes_nothing_and_holds_up_nobody() {
    let bodies: [(&[u8], &[u8]); 7] = [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED, b"1;a=b\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", b"a"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1", b" "),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    ];
    for (first, again) in bodies {
        println!("{} {}", first.escape_ascii(), again.escape_ascii());
        withstands(&insecure(PATIENCE), "http", &flooding(first, again), (Some(200), None)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_that_never_comes_to_a_point_holds_up_nobody() {
    let records: [(&[u8], &[u8]); 5] = [
        (b"", b"\x14\x03\x03\x00\x01\x01"),
        (b"", b"\x15\x03\x03\x00\x02\x01\x5a"),
        (b"", b"\x16\x03\x03\x00\x04\x00\x00\x00\x00"),
        (b"", b"\x16\x03\x03\x00\x00"),
        (b"\x16\x03\x03\x00\x04\x02\xff\xff\xff", b"\x16\x03\x03\x00\x01\x00"),
    ];
    for (first, again) in records {
        println!("{} {}", first.escape_ascii(), again.escape_ascii());
        withstands(&insecure(PATIENCE), "https", &flooding(first, again), (None, Some("tls"))).await;
    }
    let ours = Authority::new();
    let shown = ours.issue(PRIVATE, |_| {});
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![shown.certificate], shown.key).unwrap();
    let config = Arc::new(config);
    let blob = HINTS.repeat(1000);
    let provisional = receiving(move |stream| {
        flood(StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream), b"", &blob);
    });
    withstands(&insecure_by(&ours.settings(PATIENCE)), "https", &provisional, (None, Some("protocol"))).await;
}

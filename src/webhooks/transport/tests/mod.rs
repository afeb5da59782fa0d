//! The transport against real sockets: receivers that answer as a test says, byte for byte.

mod answers;
mod floods;
mod guard;
mod shortage;
mod tls;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Answer, Target, Transport, TransportSettings, WebhookHeaders};
use crate::kernel::clock::Clock;
use crate::webhooks::egress::{Egress, EgressPolicy};
use crate::webhooks::resolve::{Line, Resolver, Script};

const NOW: i64 = 1_700_000_000_000;
/// Longer than anything takes here; tests of the deadline have a shorter one.
const AMPLE: Duration = Duration::from_secs(30);
/// Where receivers listen that count as public; the address next to it does not.
const PUBLIC: &str = "127.0.0.2";
const PRIVATE: &str = "127.0.0.1";

const HEADERS: WebhookHeaders<'static> = WebhookHeaders { id: "evt_1", at_s: 1_700_000_000, signature: "v1,abc" };
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Listens at `address` and hands each connection to `behave`; the counter is of connections.
pub(in crate::webhooks) async fn listen<F, B>(address: &str, behave: B) -> (SocketAddr, Arc<AtomicUsize>)
where
    B: Fn(TcpStream) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(behave(stream));
        }
    });
    (at, connections)
}

/// A receiver that reads a request and then says `answer`, over and over on each connection.
async fn answering(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer: Arc<[u8]> = answer.into().into();
    let behave = move |mut stream: TcpStream| {
        let answer = Arc::clone(&answer);
        async move {
            while read_request(&mut stream).await.is_some() {
                let _ = stream.write_all(&answer).await;
            }
        }
    };
    listen(PRIVATE, behave).await.0
}

/// The same, closing the connection after the first answer.
async fn answering_once(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer: Arc<[u8]> = answer.into().into();
    let behave = move |mut stream: TcpStream| {
        let answer = Arc::clone(&answer);
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    };
    listen(PRIVATE, behave).await.0
}

/// A request with its body; `None` if the connection ended before.
pub(in crate::webhooks) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if request.len() >= end + 4 + length {
                return Some(request);
            }
        }
        let mut some = [0; 4096];
        match stream.read(&mut some).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => request.extend_from_slice(&some[..count]),
        }
    }
}

fn settings(timeout: Duration) -> TransportSettings {
    TransportSettings { timeout, idle_per_host: 4, ca_file: None }
}

/// A transport as `dev` has it.
fn insecure(timeout: Duration) -> Transport {
    insecure_by(&settings(timeout))
}

fn insecure_by(settings: &TransportSettings) -> Transport {
    let policy = EgressPolicy { allow_insecure: true, ..EgressPolicy::default() };
    Transport::new(settings, Egress::new(policy), Resolver::system(), Clock::stopped_at(NOW)).unwrap()
}

/// A transport that may go to [`PUBLIC`] and asks the script about names.
fn scripted(settings: &TransportSettings) -> (Transport, Arc<Script>) {
    let allow_networks = vec![format!("{PUBLIC}/32").parse().unwrap()];
    // Receivers of tests have any port; names and addresses are judged as ever.
    let policy = EgressPolicy { allow_networks, ports: (1..=u16::MAX).collect(), allow_insecure: false };
    let script = Arc::new(Script::default());
    let resolver = Resolver::Scripted(Arc::clone(&script));
    (Transport::new(settings, Egress::new(policy), resolver, Clock::stopped_at(NOW)).unwrap(), script)
}

/// A transport as `dev` has it, which asks the script about names.
fn insecure_and_scripted() -> (Transport, Arc<Script>) {
    let policy = EgressPolicy { allow_insecure: true, ..EgressPolicy::default() };
    let script = Arc::new(Script::default());
    let resolver = Resolver::Scripted(Arc::clone(&script));
    (Transport::new(&settings(AMPLE), Egress::new(policy), resolver, Clock::stopped_at(NOW)).unwrap(), script)
}

fn target(transport: &Transport, url: &str) -> Target {
    Target::new(transport.egress().check_url(url).expect("a URL that passes")).unwrap()
}

async fn post(transport: &Transport, url: &str) -> Answer {
    transport.post(&target(transport, url), &HEADERS, b"{}".to_vec()).await
}

async fn post_to(at: SocketAddr) -> Answer {
    post(&insecure(AMPLE), &format!("http://{at}/hook")).await
}

fn addresses(texts: &[&str]) -> Line {
    Line::Addresses(texts.iter().map(|text| text.parse::<IpAddr>().unwrap()).collect())
}

/// Status, class and address in one line, as the journal has them.
fn told(answer: &Answer) -> (Option<u16>, Option<&'static str>, Option<String>) {
    let outcome = &answer.outcome;
    let address = outcome.resolved_ip.map(|ip| ip.to_string());
    (outcome.http_status, outcome.error.map(super::ErrorClass::as_str), address)
}

/// What is told of an attempt that was dialled at [`PRIVATE`].
fn at_loopback(
    status: Option<u16>,
    error: Option<&'static str>,
) -> (Option<u16>, Option<&'static str>, Option<String>) {
    (status, error, Some(PRIVATE.to_owned()))
}

/// Requests that a receiver has written down.
type Seen = Arc<Mutex<Vec<String>>>;

/// A receiver at `address` that writes requests down and answers 200.
async fn recording(address: &str) -> (SocketAddr, Seen, Arc<AtomicUsize>) {
    let seen = Seen::default();
    let write = Arc::clone(&seen);
    let behave = move |mut stream: TcpStream| {
        let write = Arc::clone(&write);
        async move {
            while let Some(request) = read_request(&mut stream).await {
                write.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let _ = stream.write_all(OK).await;
            }
        }
    };
    let (at, connections) = listen(address, behave).await;
    (at, seen, connections)
}

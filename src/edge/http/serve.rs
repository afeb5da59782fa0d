//! Connections: accepted up to a number, given up when they dawdle, and brought to an end at shutdown.
//!
//! axum's own `serve` sets no timer, so that a client that sends half a header would hold its connection for ever.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::client_ip::Peer;

/// How long accepting rests after the system had no descriptor or memory left for a connection.
const REST: Duration = Duration::from_secs(1);

/// Serves `router` until `shutdown`; then stops accepting, and gives requests in flight `limits.shutdown` to end.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, shutdown: CancellationToken) {
    let seats = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    while let Some((connected, seat)) = next(&listener, &seats, &mut connections, &shutdown).await {
        connections.spawn(converse(connected, router.clone(), limits, shutdown.clone(), seat));
        metrics::gauge!("pillarbox_http_connections")
            .set(f64::from(u32::try_from(connections.len()).unwrap_or(u32::MAX)));
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.shutdown, ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "requests in flight were cut off by the shutdown");
        connections.shutdown().await;
    }
}

/// A connection and whose it is.
struct Connected {
    stream: TcpStream,
    peer: IpAddr,
}

/// The next connection with its seat; `None` at shutdown.
async fn next(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
    connections: &mut JoinSet<()>,
    shutdown: &CancellationToken,
) -> Option<(Connected, OwnedSemaphorePermit)> {
    loop {
        let accepted = async {
            let seat = Arc::clone(seats).acquire_owned().await.expect("the seats are never closed");
            (listener.accept().await, seat)
        };
        tokio::select! {
            () = shutdown.cancelled() => return None,
            // Ended ones are taken off the list as they come; a panic in one is its own, and observed there.
            Some(_) = connections.join_next() => {}
            (accepted, seat) = accepted => match accepted {
                Ok((stream, peer)) => return Some((Connected { stream, peer: peer.ip() }, seat)),
                Err(error) => wait_out(&error, shutdown).await,
            },
        }
    }
}

/// A connection that broke while it was being accepted is nothing; anything else would come again at once.
async fn wait_out(error: &io::Error, shutdown: &CancellationToken) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::error!(%error, "no connection could be accepted");
    tokio::select! {
        () = tokio::time::sleep(REST) => {}
        () = shutdown.cancelled() => {}
    }
}

async fn converse(
    connected: Connected,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
    _seat: OwnedSemaphorePermit,
) {
    let Connected { stream, peer } = connected;
    // Answers are written whole; waiting for more would only delay them. Without it they come a little later.
    let _ = stream.set_nodelay(true);
    let routes = TowerToHyperService::new(router);
    let answers = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .serve_connection(TokioIo::new(stream), answers);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

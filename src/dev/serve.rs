//! `pillarbox fake`: the fake Bot API, the sink and the clock as a process of their own.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Error, clock, fake_router, write_atomically};

/// How long answers in flight may take after the stop: those that are late on purpose (`delay_ms`) are cut off.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Serves [`fake_router`] on `listen` (loopback only) from `dir` until `shutdown`.
///
/// When it accepts connections it writes `{"url", "pid"}` to `ready_file` in one step and prints one line.
///
/// # Errors
/// [`Error::NotLoopback`] before anything is opened; else when the address, the directory or the file cannot be used.
pub(crate) async fn serve_fake(
    listen: SocketAddr,
    dir: &Path,
    ready_file: Option<&Path>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    if !listen.ip().is_loopback() {
        return Err(Error::NotLoopback { listen });
    }
    let router = fake_router(dir, clock::open_clock(dir)?, shutdown.clone())?;
    let unbound = |source| Error::Bind { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(unbound)?;
    let url = format!("http://{}", listener.local_addr().map_err(unbound)?);
    if let Some(path) = ready_file {
        write_atomically(path, json!({"url": url, "pid": std::process::id()}).to_string().as_bytes())?;
    }
    println!("fake Telegram Bot API and webhook sink on {url}");
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    let serving = axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    tokio::select! {
        served = serving.into_future() => served.map_err(Error::Serve),
        () = overdue => Ok(()),
    }
}

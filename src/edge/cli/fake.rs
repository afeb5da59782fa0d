//! `fake`: the fake Bot API and the webhook sink as a process of their own, which outlives a server that is killed.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::dev;
use crate::edge::host::Signals;

/// Serves the fake until a signal.
///
/// # Errors
/// When the address or the directory cannot be used.
pub(crate) async fn run(listen: SocketAddr, data_dir: PathBuf, ready_file: Option<PathBuf>) -> anyhow::Result<Exit> {
    let stop = CancellationToken::new();
    tokio::spawn(Signals::listen()?.obey(stop.clone()));
    dev::serve::serve_fake(listen, &data_dir, ready_file.as_deref(), stop).await?;
    Ok(Exit::Ok)
}

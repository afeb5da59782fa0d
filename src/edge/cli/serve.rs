//! `serve`: the production mode.

use anyhow::Context;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::app;
use crate::config::{Config, EventSource, Sources};
use crate::edge::host::{Host, HostParts, Signals, log_panics};
use crate::edge::{http, log};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role};

/// Serves the data directory until a signal.
///
/// # Errors
/// When the configuration, the address or the directory cannot be used.
pub(crate) async fn run(sources: Sources) -> anyhow::Result<Exit> {
    let config = Config::load(sources)?;
    log::init(&config.log)?;
    log_panics();
    let signals = Signals::listen()?;
    let listener = bind(&config).await?;
    let db = app::open_store(&config.store, Role::Owner("serve"), Clock::system())?;
    let stop = CancellationToken::new();
    let metrics = http::install_metrics()?;
    let parts = HostParts { config: config.clone(), db: db.clone(), listener, metrics, stop: stop.clone() };
    let host = Host::build(parts).await?;
    announce(&config, &db, &host)?;
    tokio::spawn(signals.obey(stop));
    host.run(http::Router::new()).await;
    Ok(Exit::Ok)
}

/// Binds the address of the configuration.
///
/// # Errors
/// Says which address, and what to do.
pub(crate) async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let listen = config.http.listen;
    let bound = TcpListener::bind(listen).await;
    bound.with_context(|| format!("cannot listen on {listen}; stop what uses it, or choose another with --listen"))
}

fn announce(config: &Config, db: &Db, host: &Host) -> anyhow::Result<()> {
    for warning in config.warnings() {
        tracing::warn!("{}: {}", warning.key, warning.text);
    }
    if let Some(copy) = db.migration_copy() {
        tracing::info!(copy = %copy.display(), "the schema was upgraded; a copy of the file before that is kept");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        url = %format!("http://{}", host.address()?),
        data_dir = %db.dir().display(),
        config = %config.file().map_or_else(|| "defaults".to_owned(), |file| file.display().to_string()),
        bot_events = source(config),
        telegram = if config.telegram.token.is_some() { "on" } else { "off: no telegram.token" },
        "pillarbox is serving"
    );
    Ok(())
}

fn source(config: &Config) -> &'static str {
    match config.bot.event_source {
        EventSource::Local => "consumed here",
        EventSource::Remote(_) => "fetched from the remote backend",
        EventSource::Off => "served to a remote bot",
    }
}

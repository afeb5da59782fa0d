//! `serve`: the production mode.
//!
//! A signal counts from the first step on. During the start it ends the process at once: what is under way then is a
//! transaction, which the file takes back, or a copy of it, which the next start removes.

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
    app::check(&config)?;
    log::init(&config.log)?;
    log_panics();
    let stop = CancellationToken::new();
    tokio::spawn(Signals::listen()?.obey(stop.clone()));
    let Some(host) = stop.run_until_cancelled(start(&config, &stop)).await else { return Ok(stopped_early()) };
    host?.run(http::Router::new()).await;
    Ok(Exit::Ok)
}

async fn start(config: &Config, stop: &CancellationToken) -> anyhow::Result<Host> {
    let listener = bind(config).await?;
    let db = open(config, Role::Owner("serve"), Clock::system()).await?;
    let metrics = http::install_metrics()?;
    let parts = HostParts { config: config.clone(), db: db.clone(), listener, metrics, stop: stop.clone() };
    let host = Host::build(parts).await?;
    announce(config, &db, &host)?;
    Ok(host)
}

/// Opens the store on a thread of its own: copying and migrating a large file takes long, and a signal need not wait
/// for it.
///
/// # Errors
/// `OpenError`, whose text says what to do.
pub(crate) async fn open(config: &Config, role: Role, clock: Clock) -> anyhow::Result<Db> {
    let store = config.store.clone();
    let opened = tokio::task::spawn_blocking(move || app::open_store(&store, role, clock)).await;
    Ok(opened.context("opening the store panicked")??)
}

/// How a start ends that a signal came into.
pub(crate) fn stopped_early() -> Exit {
    tracing::info!("stopped before it served");
    Exit::Ok
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
    for advice in host.advice() {
        tracing::warn!("{advice}");
    }
    if db.dir().join("dev").exists() {
        tracing::warn!(
            "dev has used this directory: its people are made up, and what it put off by its own clock waits until then"
        );
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

//! `dev`: the same server with a fake Telegram, a webhook sink and a clock that can be moved; everything on loopback.

use std::path::PathBuf;

use anyhow::ensure;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::serve::bind;
use crate::config::{Config, Place, Sources};
use crate::dev::{self, demo, keys::Keys};
use crate::edge::host::{Host, HostParts, Signals, log_panics};
use crate::edge::{http, log};
use crate::kernel::store::Role;

/// A token of valid form that no real bot can have.
const TOKEN: &str = "1:dev-token-for-the-built-in-fake";
/// Where `dev` keeps its data when nobody says.
pub(crate) const DATA_DIR: &str = "pillarbox-dev";

/// What `dev` does besides serving.
#[derive(Clone, Debug)]
pub(crate) struct DevOptions {
    pub(crate) ready_file: Option<PathBuf>,
    pub(crate) demo: Demo,
    /// A `pillarbox fake` to talk to instead of the built-in one.
    pub(crate) fake: Option<String>,
}

/// Whether the demo scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demo {
    Play,
    Skip,
}

/// Serves a development installation until a signal.
///
/// # Errors
/// When the configuration, the address or the directory cannot be used, or the demo does not do what it tells.
pub(crate) async fn run(sources: Sources, options: DevOptions) -> anyhow::Result<Exit> {
    let (sources, first) = prepare(sources, options.demo)?;
    log::init(&first.log)?;
    log_panics();
    ensure!(
        first.http.listen.ip().is_loopback(),
        "{} is not a loopback address; dev accepts anybody's commands and listens on 127.0.0.1 or [::1] only",
        first.http.listen
    );
    let signals = Signals::listen()?;
    let listener = bind(&first).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let dev_dir = first.store.data_dir.join("dev");
    dev::create_dir(&dev_dir)?;
    let keys = Keys::continue_in(&dev_dir)?;
    let api = options.fake.as_deref().unwrap_or(&url);
    let sources =
        sources.with_flag("dev", "telegram.api_url", api).with_flag("dev", "bot.backend_secret", &keys.bot_secret);
    let config = Config::load(sources)?;

    let clock = dev::clock::open_clock(&dev_dir)?;
    let db = crate::app::open_store(&config.store, Role::Owner("dev"), clock.clone())?;
    let stop = CancellationToken::new();
    let parts = HostParts { config, db: db.clone(), listener, metrics: http::install_metrics()?, stop: stop.clone() };
    let host = Host::build(parts).await?;
    let others = dev::fake_router(&dev_dir, clock, stop.clone())?.merge(dev::jobs::router(host.driver()));
    tokio::spawn(signals.obey(stop.clone()));
    let serving = tokio::spawn(host.run(others));
    if let Some(path) = &options.ready_file {
        keys.write_ready_file(path, &url)?;
    }
    let told = match options.demo {
        Demo::Play => demo::play(&url, api, &keys.bot_secret, &db, &stop).await,
        Demo::Skip => Ok(()),
    };
    if told.is_err() {
        stop.cancel();
    }
    serving.await?;
    told?;
    Ok(Exit::Ok)
}

/// What `dev` decides for itself: its own token, and a directory that is not the production's, whatever file lies here.
fn prepare(sources: Sources, demo: Demo) -> anyhow::Result<(Sources, Config)> {
    let sources = sources.with_flag("dev", "telegram.token", TOKEN);
    let mut config = Config::load(sources.clone())?;
    if demo == Demo::Play && matches!(config.place("log.level"), Place::Default) {
        // The demo is told on this terminal; an access log between its lines would drown it.
        config.log.level = "error".to_owned();
    }
    if matches!(config.place("store.data_dir"), Place::Flag(_) | Place::Set) {
        return Ok((sources, config));
    }
    let sources = sources.with_flag("dev", "store.data_dir", DATA_DIR);
    let mut elsewhere = Config::load(sources.clone())?;
    elsewhere.log = config.log;
    Ok((sources, elsewhere))
}

//! `dev`: the same server with a fake Telegram, a webhook sink and a clock that can be moved; everything on loopback.

use std::path::PathBuf;

use anyhow::ensure;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::serve::{bind, open, stopped_early};
use crate::app;
use crate::config::{Config, EventSource, LeadsConfig, Origin, Place, Sources};
use crate::dev::demo::{self, Stage};
use crate::dev::{self, keys::Keys};
use crate::edge::host::{Host, HostParts, Signals, log_panics};
use crate::edge::{http, log};
use crate::kernel::loopback::is_loopback;
use crate::kernel::store::{Db, Role};

/// A token of valid form that no real bot can have.
const TOKEN: &str = "1:dev-token-for-the-built-in-fake";
/// The chat that is told of leads, in the fake.
const LEAD_CHAT: &str = "-1001";
/// Where a page under development usually is.
const SITE: &str = "http://localhost:3000/";
/// The introduction that the demo's bot shows.
const VIDEO: &str = "http://localhost:3000/video";
/// A page of a site under development.
const LEAD_ORIGIN: &str = "http://localhost:3000";
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
    app::check(&first)?;
    log::init(&first.log)?;
    log_panics();
    ensure!(
        first.http.listen.ip().is_loopback(),
        "{} is not a loopback address; dev accepts anybody's commands and listens on 127.0.0.1 or [::1] only",
        first.http.listen
    );
    stays_here(&first, options.fake.as_deref())?;
    let stop = CancellationToken::new();
    tokio::spawn(Signals::listen()?.obey(stop.clone()));
    let starting = start(sources, &first, options.fake.as_deref(), &stop);
    let Some(started) = stop.run_until_cancelled(starting).await else { return Ok(stopped_early()) };
    let Started { host, others, keys, url, api, db, leads, sends_here } = started?;
    tracing::info!(url, data_dir = %db.dir().display(), "pillarbox dev is serving: no token, no network");
    let serving = tokio::spawn(host.run(others));
    if let Some(path) = &options.ready_file {
        keys.write_ready_file(path, &url, &leads)?;
    }
    let told = match options.demo {
        Demo::Play => {
            let (bot_secret, api_key) = (&keys.bot_secret, &keys.api_key);
            let stage =
                Stage { url: &url, fake: &api, bot_secret, api_key, sends_here, leads: &leads, db: &db, stop: &stop };
            demo::play(stage).await
        }
        Demo::Skip => Ok(()),
    };
    // Whatever an interrupted demo met is the interruption.
    let told = if stop.is_cancelled() { Ok(()) } else { told };
    if told.is_err() {
        stop.cancel();
    }
    serving.await?;
    told?;
    Ok(Exit::Ok)
}

/// No network, whatever the configuration says: another backend is spoken to only when this command line asks for it, and
/// both it and the fake are on this machine.
fn stays_here(config: &Config, fake: Option<&str>) -> anyhow::Result<()> {
    if let EventSource::Remote(remote) = &config.bot.event_source {
        let place = config.place("bot.event_source");
        ensure!(
            matches!(place, Place::Set),
            "dev calls no other backend unless its own command line says so, and bot.event_source is `remote` [{}]; \
             add --set bot.event_source=local, or =remote if you mean it",
            Origin::from(place.clone())
        );
        ensure!(
            remote.url.host_str().is_some_and(is_loopback),
            "bot.remote_url [{}] is not on this machine; dev speaks to localhost, 127.0.0.1 and [::1] only",
            Origin::from(config.place("bot.remote_url").clone())
        );
    }
    let fake_host = fake.and_then(|url| url::Url::parse(url).ok()?.host_str().map(str::to_owned));
    ensure!(
        fake.is_none() || fake_host.is_some_and(|host| is_loopback(&host)),
        "--fake is not on this machine; dev speaks to localhost, 127.0.0.1 and [::1] only"
    );
    Ok(())
}

/// A development installation that is ready to serve.
struct Started {
    host: Host,
    others: http::Router,
    keys: Keys,
    url: String,
    /// The Bot API that it talks to.
    api: String,
    db: Db,
    leads: LeadsConfig,
    /// Whether webhooks may be sent to this machine.
    sends_here: bool,
}

async fn start(
    sources: Sources,
    first: &Config,
    fake: Option<&str>,
    stop: &CancellationToken,
) -> anyhow::Result<Started> {
    let listener = bind(first).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let dev_dir = first.store.data_dir.join("dev");
    dev::create_dir(&dev_dir)?;
    let keys = Keys::continue_in(&dev_dir)?;
    let api = fake.unwrap_or(&url).to_owned();
    let sources = sources
        .with_flag("dev", "telegram.api_url", &api)
        .with_flag("dev", "bot.backend_secret", &keys.bot_secret)
        .with_flag("dev", "leads.service_role_key", &keys.service_role_key)
        .with_flag("dev", "leads.anon_key", &keys.anon_key);
    let config = Config::load(sources)?;
    let (leads, sends_here) = (config.leads.clone(), config.webhooks.allow_insecure);
    let clock = dev::clock::open_clock(&dev_dir)?;
    let db = open(&config, Role::Owner("dev"), clock.clone()).await?;
    keys.admit(&db).await?;
    let parts = HostParts { config, db: db.clone(), listener, metrics: http::install_metrics()?, stop: stop.clone() };
    let host = Host::build(parts).await?;
    let others = dev::fake_router(&dev_dir, clock, stop.clone())?.merge(dev::jobs::router(host.driver()));
    Ok(Started { host, others, keys, url, api, db, leads, sends_here })
}

/// What `dev` decides for itself: its own token, keys, chat and origin, and a directory that is not the production's.
fn prepare(sources: Sources, demo: Demo) -> anyhow::Result<(Sources, Config)> {
    // Of the keys the real values come with the directory; until then nobody else's are to be read.
    let mut sources = sources
        .of_dev()
        // The environment may be that of a production site next door; a file is read only if the command line names it.
        .without_variable("PILLARBOX_LEADS__ALLOWED_ORIGINS")
        .without_variable("PILLARBOX_ANALYTICS__DIR")
        .with_flag("dev", "telegram.token", TOKEN)
        .with_flag("dev", "bot.backend_secret", "not-yet-made")
        .with_flag("dev", "leads.service_role_key", "not-yet-made")
        .with_flag("dev", "leads.anon_key", "not-yet-made-either");
    // Its receivers are on this machine, and speak http.
    if !sources.has_set("webhooks.allow_insecure") {
        sources = sources.with_flag("dev", "webhooks.allow_insecure", "true");
    }
    if !sources.has_set("leads.chat_id") {
        sources = sources.with_flag("dev", "leads.chat_id", LEAD_CHAT);
    }
    if matches!(Config::load(sources.clone())?.place("leads.allowed_origins"), Place::Default) {
        sources = sources.with_flag("dev", "leads.allowed_origins", LEAD_ORIGIN);
    }
    if demo == Demo::Play {
        for (key, address) in [("bot.site_url", SITE), ("bot.video_url", VIDEO)] {
            if matches!(Config::load(sources.clone())?.place(key), Place::Default) {
                sources = sources.with_flag("dev", key, address);
            }
        }
    }
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

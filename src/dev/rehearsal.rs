//! What `pillarbox leads smoke` plays: a lead is stored and told of while the process dies, in a directory that is
//! thrown away, against the fake Bot API and with a clock that stands still until it is moved.
//!
//! Store, intake, worker and client are the real ones with the configured settings; only the chat, the token and the
//! Bot API behind them are made up. So what passes here is what a crash in production does
//! (`tests/it/cli_leads_smoke.rs::a_smoke_test_that_passes_says_so_and_is_remembered`).

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use crate::app::{open_lead_post, open_store};
use crate::chat::{Messenger, Outcome, Rendered};
use crate::config::{Config, Delivery};
use crate::edge::host::lead_messenger;
use crate::kernel::clock::Clock;
use crate::kernel::id;
use crate::kernel::secret::Secret;
use crate::kernel::store::{Db, Role, StoreError, Tx};
use crate::leads::inspect::{self, Whole};
use crate::leads::notify::Worker;
use crate::leads::{self, Answer, Hands, Submission, Visitor};

const CHAT: i64 = -1001;
const TOKEN: &str = "1:a-token-for-the-built-in-fake";
const REQUEST_ID: &str = "IP-20000101-REHEARSAL";
/// A label that comes with a known check, and one that comes with none.
const LABELS: [&str; 2] = ["Rehearsed", "Not to be seen"];
/// How long a step may take, in real time: the clock stands still, so what waits for it would wait for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory, a fake and a clock of its own. Dropped, they are gone.
pub(crate) struct Rehearsal {
    config: Config,
    clock: Clock,
    db: Db,
    fake: Fake,
    stage: Stage,
}

/// What is taken down at the end.
struct Stage {
    dir: PathBuf,
    stop: CancellationToken,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Rehearsal {
    /// Sets everything up, with the settings of `config`.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) async fn begin(config: &Config) -> anyhow::Result<Self> {
        let clock = Clock::stopped_at(Clock::system().now());
        let dir = std::env::temp_dir().join(format!("pillarbox-smoke-{}", id::uuid_v7(clock.now())));
        super::create_dir(&dir)?;
        let stage = Stage { dir, stop: CancellationToken::new() };
        let (fake, url) = serve_fake(&stage.dir.join("fake"), clock.clone(), stage.stop.clone()).await?;
        let config = rehearsed(config, &stage.dir, &url)?;
        let db = open_store(&config.store, Role::Owner("leads smoke"), clock.clone())?;
        Ok(Self { config, clock, db, fake, stage })
    }

    /// The store, as this version makes one.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// A form posts a lead; the trigger cleans its preparation.
    ///
    /// # Errors
    /// Says what is not as it should be.
    pub(crate) async fn store_lead(&self) -> anyhow::Result<()> {
        let submission =
            Submission::parse(&request(self.config.leads.min_fill_ms), &self.config.leads).map_err(|_| NotTaken)?;
        let visitor = Visitor { ip: Ipv4Addr::LOCALHOST.into(), user_agent: String::new() };
        let rules = self.config.leads.clone();
        let answer = self.db.write(move |tx| leads::accept(tx, &submission, &visitor, &rules)).await?;
        ensure!(matches!(answer, Answer::Stored { .. }), NotTaken);
        let lead = self.lead().await?;
        let completed = lead.lead.value("preparation_completed");
        ensure!(completed == Some(&json!([LABELS[0]])), "the trigger sync_broker_lead_preparation did not do its work");
        Ok(())
    }

    /// The worker tells of the lead and dies before it records that; nothing happens for 15 minutes; then there is one
    /// more message, and no other.
    ///
    /// # Errors
    /// Says what is not as it should be.
    pub(crate) async fn crash(&mut self) -> anyhow::Result<()> {
        self.die_after_the_send().await?;
        self.expect(1, "sending", "after the crash").await?;
        self.clock.advance(Duration::from_secs(14 * 60 + 59));
        self.pass().await?;
        self.expect(1, "sending", "14 minutes and 59 seconds after the crash").await?;
        // The claim is taken over when it is older than 15 minutes, by a millisecond.
        self.clock.advance(Duration::from_millis(1_001));
        self.pass().await?;
        self.expect(2, "sent", "15 minutes after the crash").await?;
        self.clock.advance(Duration::from_secs(60 * 60));
        self.pass().await?;
        self.expect(2, "sent", "an hour later").await?;
        let texts = self.fake.texts(CHAT);
        ensure!(texts.iter().all(|text| text.contains(REQUEST_ID)), "a message does not name the lead's ID");
        Ok(())
    }

    async fn die_after_the_send(&mut self) -> anyhow::Result<()> {
        let dying = Arc::new(Dying { messenger: self.messenger()?, sent: Notify::new() });
        let worker = self.worker(Arc::<Dying>::clone(&dying))?;
        let mut pass = tokio::spawn(async move { worker.run_once(&CancellationToken::new()).await });
        tokio::select! {
            () = dying.sent.notified() => {}
            _ = &mut pass => bail!("the worker sent nothing"),
            () = tokio::time::sleep(PATIENCE) => bail!("the worker sent nothing within {} s", PATIENCE.as_secs()),
        }
        pass.abort();
        let _ = pass.await;
        // The next process finds nothing but the file.
        self.db.close().await;
        self.db = open_store(&self.config.store, Role::Owner("leads smoke"), self.clock.clone())?;
        Ok(())
    }

    async fn pass(&self) -> anyhow::Result<()> {
        let worker = self.worker(self.messenger()?)?;
        let pass = tokio::time::timeout(PATIENCE, worker.run_once(&self.stage.stop)).await;
        pass.with_context(|| format!("a pass did not end within {} s", PATIENCE.as_secs()))??;
        Ok(())
    }

    fn messenger(&self) -> anyhow::Result<Arc<dyn Messenger>> {
        lead_messenger(&self.config)?.context("there is no client")
    }

    /// A worker of a process that starts now.
    fn worker(&self, messenger: Arc<dyn Messenger>) -> anyhow::Result<Worker> {
        let post = open_lead_post(&self.config, &self.db, messenger).context("there is no chat")?;
        Ok(Worker::new(self.db.clone(), Delivery::Worker, Hands::default(), Some(post)))
    }

    async fn expect(&self, messages: usize, status: &str, when: &str) -> anyhow::Result<()> {
        let found = self.fake.texts(CHAT).len();
        ensure!(found == messages, "{when} the chat has {found} messages of the lead, and should have {messages}");
        let lead = self.lead().await?;
        let stands = lead.lead.value("notification_status").and_then(|value| value.as_str()).unwrap_or_default();
        ensure!(stands == status, "{when} the lead is {stands}, and should be {status}");
        Ok(())
    }

    async fn lead(&self) -> anyhow::Result<Whole> {
        let found = self.db.read::<_, StoreError>(|tx: &Tx<'_>| inspect::find(tx, REQUEST_ID)).await?;
        found.context("the lead that was stored is not there")
    }
}

/// The intake refuses what it should take.
#[derive(Debug, thiserror::Error)]
#[error("the intake did not store a valid lead")]
struct NotTaken;

/// Serves a fake on a free port of this machine; also its address.
async fn serve_fake(dir: &Path, clock: Clock, stop: CancellationToken) -> anyhow::Result<(Fake, String)> {
    let fake = Fake::open(dir, clock, stop.clone())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on 127.0.0.1")?;
    let url = format!("http://{}", listener.local_addr()?);
    let serving = axum::serve(listener, fake.router()).with_graceful_shutdown(stop.cancelled_owned());
    tokio::spawn(serving.into_future());
    Ok((fake, url))
}

/// The configuration with a stage in place of the world.
fn rehearsed(config: &Config, dir: &Path, api_url: &str) -> anyhow::Result<Config> {
    let mut config = config.clone();
    config.store.data_dir = dir.to_owned();
    // A temporary directory may be small.
    (config.store.min_free_bytes, config.store.ballast_bytes) = (0, 0);
    config.telegram.api_url = api_url.parse()?;
    config.telegram.token = Some(Secret::new(TOKEN));
    config.leads.chat_id = Some(Secret::new(CHAT.to_string()));
    config.leads.delivery = Delivery::Worker;
    config.leads.phone_region = "RU".to_owned();
    Ok(config)
}

fn request(min_fill_ms: u32) -> Vec<u8> {
    let request = json!({
        "schema_version": 1, "request_id": REQUEST_ID, "form_version": "smoke", "form_fill_ms": min_fill_ms,
        "client": {"name": "Rehearsal", "phone": "79000000000", "city": "Rehearsal"},
        "mortgage": {"scenario": "Rehearsal"},
        "personal_data_consent": "yes", "consent": true,
        "spam_check": {"honeypot_empty": true, "likely_bot": false},
        "preparation": {"completed_checks": ["finances", "unknown"], "completed_labels": LABELS},
    });
    request.to_string().into_bytes()
}

/// Delivers, and is not heard of any more.
struct Dying {
    messenger: Arc<dyn Messenger>,
    sent: Notify,
}

impl Messenger for Dying {
    fn send<'a>(&'a self, message: &'a Rendered) -> BoxFuture<'a, Outcome> {
        async move {
            let outcome = self.messenger.send(message).await;
            if !matches!(outcome, Outcome::Delivered { .. }) {
                return outcome;
            }
            self.sent.notify_one();
            std::future::pending().await
        }
        .boxed()
    }

    fn introduce(&self) -> BoxFuture<'_, Outcome> {
        self.messenger.introduce()
    }
}

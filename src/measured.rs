//! What `tests/bench` drives: thin functions over the crate's own code. Not an API; nothing else may rest on it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::app::{self, App, Parts};
use crate::backend::{self, Ack, Emitted, NewBotEvent, page};
use crate::config::{Config, Sources};
use crate::kernel::clock::Clock;
use crate::kernel::contract::BotEventType;
use crate::kernel::store::{Db, Role, params_from_iter};
use crate::leads::{self, Hands, Taken};

/// An app on a data directory, with everyone who records events and the local consumer, and no job running.
#[derive(Clone)]
pub struct Measured {
    db: Db,
    app: Arc<App>,
}

impl Measured {
    /// Opens `dir` with the default settings, as `serve` does.
    ///
    /// # Errors
    /// What stands in the way, in words.
    pub async fn open(dir: &Path) -> anyhow::Result<Self> {
        let sources = Sources::empty()
            .with_set("bot.event_source=local")
            .with_set("reminders.per_sweep=1000")
            .with_set(format!("jobs.time_zone={}", afternoon()));
        let config = Config::load(sources.with_flag("--data-dir", "store.data_dir", dir))?;
        let db = app::open_store(&config.store, Role::Owner("bench"), Clock::system())?;
        let parts = Parts {
            db: db.clone(),
            messenger: None,
            lead_messenger: None,
            remote: None,
            reader: None,
            stop: CancellationToken::new(),
        };
        let app = Arc::new(App::build(&config, parts).await?);
        Ok(Self { db, app })
    }

    /// Emits one event of this member, as `POST /bot/events` does.
    ///
    /// # Errors
    /// The backend's.
    pub async fn emit(&self, uid: i64) -> anyhow::Result<i64> {
        let event = NewBotEvent {
            event_type: BotEventType::NewPartner,
            telegram_id: Some(uid),
            magnet_uid: Some(uid),
            payload: payload(uid),
            dedup_key: None,
        };
        let emitted = self.db.write(move |tx| backend::emit(tx, &event)).await?;
        Ok(match emitted {
            Emitted::New(id) | Emitted::Known(id) => id,
        })
    }

    /// Takes a page, as the local consumer does; its ids.
    ///
    /// # Errors
    /// The store's.
    pub async fn claim(&self, limit: i64) -> anyhow::Result<Vec<i64>> {
        let page = self.db.settle(move |tx| page::claim(tx, limit)).await?;
        Ok(page.into_iter().map(|served| served.id()).collect())
    }

    /// Acknowledges a page as processed, as `POST /bot/events/ack` does; how many were.
    ///
    /// # Errors
    /// The store's.
    pub async fn acknowledge(&self, ids: Vec<i64>) -> anyhow::Result<u64> {
        let ack = Ack { processed: ids, retry: Vec::new() };
        Ok(self.db.settle(move |tx| backend::acknowledge(tx, &ack)).await?.processed)
    }

    /// Reads a page as `GET /bot/events/pending` does: how many events, and how long that took inside the read door.
    ///
    /// # Errors
    /// The store's.
    pub async fn time_pending(&self, limit: i64) -> anyhow::Result<(usize, Duration)> {
        let reading = self.db.read(move |tx| {
            let started = Instant::now();
            page::pending(tx, limit).map(|page| (page.len(), started.elapsed()))
        });
        Ok(reading.await?)
    }

    /// One pass of the local consumer; how many events it handled.
    ///
    /// # Errors
    /// The store's.
    pub async fn consume(&self) -> anyhow::Result<u64> {
        let pass = self.app.poll_bot_outbox().await?;
        Ok(pass.counts.get("processed").and_then(Value::as_u64).unwrap_or(0))
    }

    /// Takes the next lead as the notifications' worker does, its summary included: how long that took inside the read
    /// door and the write door, which is without the commit. None if no lead waits.
    ///
    /// # Errors
    /// The store's.
    pub async fn time_lead_claim(&self) -> anyhow::Result<Option<Duration>> {
        let looking = self.db.read(|tx| {
            let started = Instant::now();
            leads::next_for_worker(tx, &Hands::default()).map(|next| (next, started.elapsed()))
        });
        let (Some(candidate), looked) = looking.await? else { return Ok(None) };
        let taking = self.db.settle(move |tx| {
            let started = Instant::now();
            leads::take(tx, &candidate).map(|taken| (taken, started.elapsed()))
        });
        let (taken, took) = taking.await?;
        anyhow::ensure!(matches!(taken, Taken::Claimed { .. }), "the lead was not claimed");
        Ok(Some(looked + took))
    }

    /// One pass of the relay: how many events it published, and how long it took with its commits.
    ///
    /// # Errors
    /// The store's.
    pub async fn time_relay(&self) -> anyhow::Result<(u64, Duration)> {
        let started = Instant::now();
        let pass = self.app.relay_events().await?;
        let published = pass.counts.get("published").and_then(Value::as_u64).unwrap_or(0);
        Ok((published, started.elapsed()))
    }

    /// One sweep of reminders, of a thousand at most: how many it queued, and how long it took with its commits.
    ///
    /// # Errors
    /// The store's.
    pub async fn time_reminders(&self) -> anyhow::Result<(u64, Duration)> {
        let started = Instant::now();
        let pass = self.app.send_reminders().await?;
        Ok((pass.counts.get("queued").and_then(Value::as_u64).unwrap_or(0), started.elapsed()))
    }

    /// One pass of digests: how many it queued, and how long it took with its commits.
    ///
    /// # Errors
    /// The store's.
    pub async fn time_digests(&self) -> anyhow::Result<(u64, Duration)> {
        let started = Instant::now();
        let pass = self.app.send_digests().await?;
        Ok((pass.counts.get("queued").and_then(Value::as_u64).unwrap_or(0), started.elapsed()))
    }

    /// Runs a statement, to lay down what a measurement starts from.
    ///
    /// # Errors
    /// The store's.
    pub async fn prepare(&self, sql: &'static str, numbers: Vec<i64>) -> anyhow::Result<usize> {
        Ok(self.db.settle(move |tx| tx.execute(sql, params_from_iter(&numbers))).await?)
    }

    /// Lets go of the directory.
    pub async fn close(self) {
        self.db.close().await;
    }
}

/// A zone in which it is one in the afternoon: digests are sent from noon on.
fn afternoon() -> String {
    let hour = Clock::system().now() / 3_600_000 % 24;
    // The signs of these names are turned round: Etc/GMT-3 is three hours ahead.
    match 13 - hour {
        ahead @ 1.. => format!("Etc/GMT-{ahead}"),
        behind => format!("Etc/GMT+{}", -behind),
    }
}

/// What a partner's event carries.
fn payload(uid: i64) -> Map<String, Value> {
    match json!({ "partnerUid": uid, "partnerName": "Anna Example" }) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

//! The demo: a scenario of `fixtures/demo.json`, played against the server as its users would, and told line by line.
//!
//! A step says what happens and does it; then the player waits until nothing is due any more and tells what has
//! changed: events by state, messages that took more than one attempt, texts that Telegram accepted, notifications for
//! the web cabinet. Adding a step needs no Rust. A directory may be played in again and again
//! (`tests/it/docs.rs::the_demo_tells_the_same_story_again_in_the_same_directory`).

mod changes;
mod closing;
mod receiver;
mod server;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::backend::inspect::{self, EventRow, Filter, Shown};
use crate::backend::requeue;
use crate::config::LeadsConfig;
use crate::kernel::clock::{UnixMs, parse_rfc3339};
use crate::kernel::store::{Db, StoreError, Tx};
use crate::leads::inspect::Listed;
use crate::leads::{self, NotificationStatus};
use changes::Told;
use receiver::Receiver;

const SCENARIO: &str = include_str!("../../../fixtures/demo.json");
/// How long a step may take to come to rest, in real time.
const PATIENCE: Duration = Duration::from_secs(30);

/// One step: what is said, and what is done, in this order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    say: String,
    /// Statements in one transaction that are no part of the story.
    #[serde(default)]
    setup: Vec<String>,
    /// Statements of another program, in one transaction.
    #[serde(default)]
    sql: Vec<String>,
    /// `POST /dev/telegram/faults`.
    fault: Option<Value>,
    /// What is done with the receiver of webhooks.
    webhook: Option<receiver::Change>,
    /// `POST /bot/events` with these bodies. `{run}` stands for this playing of the demo.
    #[serde(default)]
    emit: Vec<Value>,
    /// `POST /leads` with these bodies, as a page of an allowed site does.
    #[serde(default)]
    leads: Vec<Value>,
    /// Moves the clock to the next retry, this often.
    #[serde(default)]
    retries: u32,
    /// Moves the clock to the next attempt of a webhook, this often.
    #[serde(default)]
    attempts: u32,
    /// `pillarbox outbox retry` of what has died in this demo.
    #[serde(default)]
    retry_dead: bool,
    /// A query of one text, asked last.
    ask: Option<String>,
}

/// Where the demo is played.
pub(crate) struct Stage<'a> {
    /// The server.
    pub(crate) url: &'a str,
    /// Its Telegram.
    pub(crate) fake: &'a str,
    pub(crate) bot_secret: &'a str,
    pub(crate) api_key: &'a str,
    /// Whether webhooks may be sent to this machine.
    pub(crate) sends_here: bool,
    pub(crate) leads: &'a LeadsConfig,
    pub(crate) db: &'a Db,
    pub(crate) stop: &'a CancellationToken,
}

struct Player<'a> {
    stage: Stage<'a>,
    /// When this playing began; its leads came later.
    began: UnixMs,
    /// Its events come after this one.
    events_after: i64,
    http: reqwest::Client,
}

/// Plays the scenario.
///
/// # Errors
/// When a step is refused or does not come to rest.
pub(crate) async fn play(stage: Stage<'_>) -> anyhow::Result<()> {
    let steps: Vec<Step> = serde_json::from_str(SCENARIO).context("fixtures/demo.json")?;
    let (url, db, stop) = (stage.url, stage.db, stage.stop);
    // Both addresses are this machine's; a proxy of the environment is not asked.
    let http = reqwest::Client::builder().no_proxy().build()?;
    let (events_after, _) = db.read(inspect::newest).await?;
    let player = Player { began: db.clock().now(), events_after, stage, http };
    let (bold, plain) = if std::io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    println!("pillarbox dev on {url}: no token, no network, everything in {}", db.dir().display());
    println!("It plays fixtures/demo.json against itself; below each step is what was done and what came of it.");
    let mut told = Told::begin(&player).await?;
    let mut receiver = Receiver::default();
    for (number, step) in steps.iter().enumerate() {
        println!("\n{bold}{:>2}. {}{plain}", number + 1, step.say);
        let played = player.play(step, &mut told, &mut receiver).await;
        if stop.is_cancelled() {
            return Ok(());
        }
        played.with_context(|| format!("step {} of fixtures/demo.json", number + 1))?;
    }
    closing::tell(&player.stage);
    Ok(())
}

impl Player<'_> {
    async fn play(&self, step: &Step, told: &mut Told, receiver: &mut Receiver) -> anyhow::Result<()> {
        self.sql(step.setup.clone()).await?;
        if let Some(change) = &step.webhook {
            receiver.change(self, change).await?;
        }
        for statement in &step.sql {
            println!("      sql> {statement}");
        }
        self.sql(step.sql.clone()).await?;
        if let Some(fault) = &step.fault {
            self.post(&format!("{}/dev/telegram/faults", self.stage.fake), fault).await?;
            println!("      POST /dev/telegram/faults {fault}");
        }
        self.emit(&step.emit).await?;
        self.post_leads(&step.leads).await?;
        self.rest(receiver).await?;
        self.retries(step.retries, receiver).await?;
        self.attempts(step.attempts, receiver).await?;
        if step.retry_dead {
            self.retry_dead().await?;
            self.rest(receiver).await?;
        }
        told.tell(self).await?;
        receiver.tell(self).await?;
        match &step.ask {
            Some(query) => self.ask(query.clone()).await,
            None => Ok(()),
        }
    }

    async fn sql(&self, statements: Vec<String>) -> anyhow::Result<()> {
        let all = move |tx: &Tx<'_>| {
            for statement in &statements {
                tx.execute(statement, [])?;
            }
            tx.wake(crate::backend::BOT_EVENTS);
            tx.wake(crate::outbox::OUTBOX_EVENTS);
            Ok::<_, StoreError>(())
        };
        Ok(self.stage.db.write(all).await?)
    }

    async fn ask(&self, query: String) -> anyhow::Result<()> {
        println!("      sql> {query}");
        let answers: Result<Vec<Option<String>>, StoreError> =
            self.stage.db.read(move |tx| tx.query_all(&query, [], |row| row.get(0))).await;
        for answer in answers? {
            println!("           {}", answer.as_deref().unwrap_or("NULL"));
        }
        Ok(())
    }

    async fn emit(&self, bodies: &[Value]) -> anyhow::Result<()> {
        for body in bodies {
            let body = self.of_this_run(body)?;
            let (status, answer) = self.post(&format!("{}/bot/events", self.stage.url), &body).await?;
            println!("      POST /bot/events {} -> {status} {answer}", body["eventType"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    async fn post_leads(&self, bodies: &[Value]) -> anyhow::Result<()> {
        for body in bodies {
            let body = self.of_this_run(body)?;
            let (status, answer) = self.post(&format!("{}/leads", self.stage.url), &body).await?;
            println!("      POST /leads {} -> {status} {answer}", body["request_id"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    /// A body with what stands for this playing of the demo in its place.
    fn of_this_run(&self, body: &Value) -> serde_json::Result<Value> {
        serde_json::from_str(&body.to_string().replace("{run}", &self.began.to_string()))
    }

    /// Moves the clock to the moment at which the next waiting subject is due, and lets it be tried.
    async fn retries(&self, times: u32, receiver: &Receiver) -> anyhow::Result<()> {
        let mut moved_s = 0;
        for _ in 0..times {
            let stats = self.stage.db.read(inspect::stats).await?;
            let due = stats.waiting.iter().filter_map(|waiting| parse_rfc3339(&waiting.next_retry_at)).min();
            let Some(due) = due else { break };
            moved_s += self.advance_to(due).await?;
            self.rest(receiver).await?;
        }
        if moved_s > 0 {
            let hours = moved_s / 3600;
            println!("      POST /dev/clock/advance, {times} times, each to the next try: {hours} hours in all");
        }
        Ok(())
    }

    /// Moves the clock to the moment at which a webhook is tried again, and lets it be.
    async fn attempts(&self, times: u32, receiver: &Receiver) -> anyhow::Result<()> {
        for _ in 0..times {
            let Some(due) = receiver.next_attempt(self).await? else { break };
            let seconds = self.advance_to(due).await?;
            println!("      POST /dev/clock/advance, to the next attempt: {seconds} seconds");
            self.rest(receiver).await?;
        }
        Ok(())
    }

    /// By how many seconds the clock was moved.
    async fn advance_to(&self, due: UnixMs) -> anyhow::Result<u64> {
        let seconds = (due - self.stage.db.clock().now()).max(0).unsigned_abs().div_ceil(1000);
        self.post(&format!("{}/dev/clock/advance", self.stage.url), &json!({ "seconds": seconds })).await?;
        Ok(seconds)
    }

    /// Events of this playing.
    async fn events(&self, shown: Shown) -> anyhow::Result<Vec<EventRow>> {
        let filter = Filter { shown, event_type: None, subject: None, after: self.events_after, limit: 100 };
        Ok(self.stage.db.read(move |tx| inspect::list(tx, &filter)).await?)
    }

    async fn retry_dead(&self) -> anyhow::Result<()> {
        for event in self.events(Shown::Dead).await? {
            let outcome = self.stage.db.write(move |tx| requeue::reopen(tx, event.id)).await?;
            println!("      pillarbox outbox retry {} -> {}", event.id, outcome.as_str());
        }
        Ok(())
    }

    /// Waits until no event is due and neither a message nor a notification waits or is under way, or the server stops.
    async fn rest(&self, receiver: &Receiver) -> anyhow::Result<()> {
        let resting = async {
            // More than once, since a handled event queues messages in the moment in which it stops being due.
            let mut quiet = 0;
            while quiet < 3 {
                let is_quiet = self.is_at_rest().await? && receiver.is_at_rest(self).await?;
                quiet = if is_quiet { quiet + 1 } else { 0 };
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        tokio::select! {
            done = tokio::time::timeout(PATIENCE, resting) => match done {
                Ok(done) => done,
                Err(_) => bail!("nothing came to rest within {} s", PATIENCE.as_secs()),
            },
            () = self.stage.stop.cancelled() => bail!("the server stops"),
        }
    }

    async fn is_at_rest(&self) -> anyhow::Result<bool> {
        let due = self.stage.db.read(|tx| crate::backend::page::pending(tx, 1)).await?;
        let messages = self.stage.db.read(crate::chat::stats).await?;
        let open = messages.by_status.iter().filter(|(status, _)| matches!(*status, "pending" | "sending"));
        // Taken and not closed yet: what is under way is not due either.
        let is_handled = self.events(Shown::Open).await?.iter().all(|event| event.locked_until.is_none());
        let is_told = self.leads().await?.iter().all(|lead| !is_under_way(lead));
        Ok(due.is_empty() && open.map(|(_, count)| count).sum::<i64>() == 0 && is_handled && is_told)
    }

    /// The leads of this playing.
    async fn leads(&self) -> anyhow::Result<Vec<Listed>> {
        let filter = leads::inspect::Filter { from: Some(self.began), limit: 100, ..Default::default() };
        Ok(self.stage.db.read::<_, StoreError>(move |tx| leads::inspect::list(tx, &filter)).await?)
    }
}

/// Whether the broker's chat is about to be told of a lead.
fn is_under_way(lead: &Listed) -> bool {
    let ended = [NotificationStatus::Sent, NotificationStatus::Failed, NotificationStatus::Disabled];
    !ended.iter().any(|status| status.as_str() == lead.notification_status)
}

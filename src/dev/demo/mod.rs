//! The demo: a scenario of `fixtures/demo.json`, played against the server as its users would, and told line by line.
//!
//! A step says what happens and does one thing; then the player waits until nothing is due any more and tells what has
//! changed: events by state, messages that Telegram accepted, notifications for the web cabinet. Adding a step needs
//! no Rust.

mod changes;

use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::kernel::store::{Db, StoreError};
use changes::Changes;

const SCENARIO: &str = include_str!("../../../fixtures/demo.json");
/// How long a step may take to come to rest, in real time.
const PATIENCE: Duration = Duration::from_secs(30);

/// One step: what is said, and what is done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    say: String,
    #[serde(flatten)]
    act: Act,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Act {
    /// Statements of another program, in one transaction. `{run}` stands for this playing of the demo.
    Sql(Vec<String>),
    /// `POST /bot/events` with these bodies.
    Emit(Vec<Value>),
    /// `POST /dev/telegram/faults`.
    Fault(Value),
    /// Moves the clock to the next retry, this often.
    Retries(u32),
    /// `pillarbox outbox retry` of what is dead.
    RetryDead {},
    /// Moves the clock forward, in seconds.
    Advance(u64),
}

struct Player<'a> {
    url: &'a str,
    fake: &'a str,
    bot_secret: &'a str,
    db: &'a Db,
    run: String,
    http: reqwest::Client,
}

/// Plays the scenario on the server at `url`, whose Telegram is the fake at `fake`.
///
/// # Errors
/// When a step is refused or does not come to rest.
pub(crate) async fn play(
    url: &str,
    fake: &str,
    bot_secret: &str,
    db: &Db,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let steps: Vec<Step> = serde_json::from_str(SCENARIO).context("fixtures/demo.json")?;
    let run = db.clock().now().to_string();
    let player = Player { url, fake, bot_secret, db, run, http: reqwest::Client::new() };
    println!("pillarbox dev on {url}: no token, no network, everything in {}", db.dir().display());
    println!("What follows is the scenario of fixtures/demo.json, played over HTTP and SQL against this server.\n");
    let mut changes = player.changes().await?;
    for (number, step) in steps.iter().enumerate() {
        if stop.is_cancelled() {
            return Ok(());
        }
        println!("{:>2}. {}", number + 1, step.say);
        player.act(&step.act).await.with_context(|| format!("step {} of fixtures/demo.json", number + 1))?;
        player.rest(stop).await?;
        let now = player.changes().await?;
        now.tell_since(&changes);
        changes = now;
    }
    player.close();
    Ok(())
}

impl Player<'_> {
    async fn act(&self, act: &Act) -> anyhow::Result<()> {
        match act {
            Act::Sql(statements) => self.sql(statements.clone()).await,
            Act::Emit(bodies) => self.emit(bodies).await,
            Act::Fault(fault) => self.post(&format!("{}/dev/telegram/faults", self.fake), fault).await.map(|_| ()),
            Act::Advance(seconds) => self.advance(*seconds).await,
            Act::Retries(times) => self.retries(*times).await,
            Act::RetryDead {} => self.retry_dead().await,
        }
    }

    async fn sql(&self, statements: Vec<String>) -> anyhow::Result<()> {
        let run = self.run.clone();
        let all = move |tx: &crate::kernel::store::Tx<'_>| {
            for statement in &statements {
                tx.execute(&statement.replace("{run}", &run), [])?;
            }
            tx.wake(crate::backend::BOT_EVENTS);
            Ok::<_, StoreError>(())
        };
        Ok(self.db.write(all).await?)
    }

    async fn emit(&self, bodies: &[Value]) -> anyhow::Result<()> {
        for body in bodies {
            let body: Value = serde_json::from_str(&body.to_string().replace("{run}", &self.run))?;
            let (status, answer) = self.post(&format!("{}/bot/events", self.url), &body).await?;
            println!("      POST /bot/events {} -> {status} {answer}", body["eventType"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    async fn advance(&self, seconds: u64) -> anyhow::Result<()> {
        self.post(&format!("{}/dev/clock/advance", self.url), &json!({ "seconds": seconds })).await?;
        println!("      the clock is moved {} forward", spoken(seconds));
        Ok(())
    }

    /// Moves the clock to the moment at which the next waiting subject is due, and lets it be tried.
    async fn retries(&self, times: u32) -> anyhow::Result<()> {
        for _ in 0..times {
            let stats = self.db.read(crate::backend::inspect::stats).await?;
            let due = stats.waiting.iter().filter_map(|w| crate::kernel::clock::parse_rfc3339(&w.next_retry_at)).min();
            let Some(due) = due else { return Ok(()) };
            let wait_ms = (due - self.db.clock().now()).max(0).unsigned_abs();
            self.advance(wait_ms.div_ceil(1000)).await?;
            self.rest(&CancellationToken::new()).await?;
        }
        Ok(())
    }

    async fn retry_dead(&self) -> anyhow::Result<()> {
        use crate::backend::{inspect, requeue};
        let dead =
            inspect::Filter { shown: inspect::Shown::Dead, event_type: None, subject: None, after: 0, limit: 100 };
        for event in self.db.read(move |tx| inspect::list(tx, &dead)).await? {
            let outcome = self.db.write(move |tx| requeue::reopen(tx, event.id)).await?;
            println!("      pillarbox outbox retry {} -> {}", event.id, outcome.as_str());
        }
        Ok(())
    }

    /// Waits until no event is due and no message waits or is under way.
    async fn rest(&self, stop: &CancellationToken) -> anyhow::Result<()> {
        let resting = async {
            // Twice, since a handled event queues messages in the moment in which it stops being due.
            let mut quiet = 0;
            while quiet < 3 && !stop.is_cancelled() {
                quiet = if self.is_at_rest().await? { quiet + 1 } else { 0 };
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, resting).await {
            Ok(done) => done,
            Err(_) => bail!("nothing came to rest within {} s", PATIENCE.as_secs()),
        }
    }

    async fn is_at_rest(&self) -> anyhow::Result<bool> {
        let due = self.db.read(|tx| crate::backend::page::pending(tx, 1)).await?;
        let messages = self.db.read(crate::chat::stats).await?;
        let open = messages.by_status.iter().filter(|(status, _)| matches!(*status, "pending" | "sending"));
        Ok(due.is_empty() && open.map(|(_, count)| count).sum::<i64>() == 0)
    }

    async fn changes(&self) -> anyhow::Result<Changes> {
        let messages = self.http.get(format!("{}/dev/telegram/messages", self.fake)).send().await?.json().await?;
        Changes::load(self.db, messages).await
    }

    async fn post(&self, url: &str, body: &Value) -> anyhow::Result<(u16, String)> {
        let request = self.http.post(url).bearer_auth(self.bot_secret).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if !status.is_success() {
            bail!("{url} answered {status}: {text}");
        }
        Ok((status.as_u16(), text))
    }

    fn close(&self) {
        let dir = self.db.dir().display();
        println!("\nThat was the demo. The server goes on; Ctrl-C ends it. In another terminal:");
        println!("  pillarbox outbox list --data-dir {dir}");
        println!("  pillarbox messages list --data-dir {dir}");
        println!("  curl -s {}/dev/telegram/messages", self.fake);
        println!("  curl -s -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' \\", self.bot_secret);
        println!("    -d '{{\"eventType\":\"reactivation\",\"telegramId\":\"103\"}}' {}/bot/events", self.url);
    }
}

fn spoken(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

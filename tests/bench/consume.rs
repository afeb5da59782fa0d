//! Consuming: the whole of it, and only the claim and the acknowledgement.

use std::time::Instant;

use pillarbox::measured::Measured;
use tokio::runtime::Runtime;

use crate::load::Sample;
use crate::rounds::Run;
use crate::table::Goal;

/// Events of one round of the whole; as many people, each with a stage to rise and a prompt to get.
const EVENTS: i64 = 5_000;
/// Events of one round of bare pages.
const BARE: i64 = 20_000;
const PAGE: i64 = 100;

const PEOPLE: &str = "
    WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO bot_users (telegram_id, lang, stage) SELECT i, 'en', 6 FROM n";
/// A preview chat: the handler lifts the stage (with its domain event) and queues the prompt to bind.
const CONNECTED: &str = "
    WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, subject)
    SELECT 'wallet_connected', i, i, '{\"preview\":true}', 'uid:' || i FROM n";
/// Whose events a round of bare pages is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Members {
    /// As they joined: one event each.
    InOrder,
    /// Drawn from a million: every event is on another page of the index by subject.
    AtRandom,
}

impl Members {
    fn events(self) -> &'static str {
        match self {
            Self::InOrder => {
                "WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
                 INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, subject)
                 SELECT 'new_partner', i, i, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', 'uid:' || i FROM n"
            }
            Self::AtRandom => {
                "WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
                 INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload, subject)
                 SELECT 'new_partner', i, i, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}', 'uid:' || i
                 FROM (SELECT 100000 + (random() & 0x7FFFFFFF) % 1000000 AS i FROM n)"
            }
        }
    }
}

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let store = run.runtime.block_on(Measured::open(&run.dir.path().join("consume")))?;
    let mut first = 1;
    let whole = run.against_floor(|runtime| {
        let sample = runtime.block_on(consume(&store, first));
        first += EVENTS;
        sample
    })?;
    run.add_rate("consume: claim, handler, ledger, ack", &whole, Goal::AtLeast(1.5));
    let bare = run.against_floor(|runtime| claim_and_acknowledge(runtime, &store, Members::InOrder))?;
    run.add_rate("bare claim + ack of pages of 100", &bare, Goal::AtLeast(8.0));
    let random = run.against_floor(|runtime| claim_and_acknowledge(runtime, &store, Members::AtRandom))?;
    run.add_rate("  the same, random subjects", &random, Goal::Shown);
    run.runtime.block_on(store.close());
    Ok(())
}

async fn consume(store: &Measured, first: i64) -> anyhow::Result<Sample> {
    let people = vec![first, first + EVENTS - 1];
    store.prepare(PEOPLE, people.clone()).await?;
    store.prepare(CONNECTED, people).await?;
    let store = store.clone();
    // As a job's task, not in the foreground: the hand-over between threads is part of the cost.
    let working = tokio::spawn(async move {
        let started = Instant::now();
        let mut handled = 0;
        while handled < EVENTS.unsigned_abs() {
            let now = store.consume().await?;
            anyhow::ensure!(now > 0, "the consumer stopped after {handled} of {EVENTS} events");
            handled += now;
        }
        Ok(Sample::of_count(handled, started.elapsed()))
    });
    working.await?
}

/// A round of bare pages: what `make bench-postgres` is compared with too.
pub(crate) fn claim_and_acknowledge(runtime: &Runtime, store: &Measured, members: Members) -> anyhow::Result<Sample> {
    let store = store.clone();
    let working = async move {
        store.prepare(members.events(), vec![100_001, 100_000 + BARE]).await?;
        let started = Instant::now();
        let mut closed = 0;
        loop {
            let page = store.claim(PAGE).await?;
            if page.is_empty() {
                return Ok(Sample::of_count(closed, started.elapsed()));
            }
            closed += store.acknowledge(page).await?;
        }
    };
    runtime.block_on(async { tokio::spawn(working).await? })
}

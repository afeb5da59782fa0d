//! Webhooks on a real file, with a clock that is moved; what a worker does is done by hand.

mod claims;
mod endings;
mod endpoints;
mod fanout;
mod lists;
mod model;
mod plan;
mod recover;
mod secrets;
mod sweep;
mod tenants;
mod trouble;
mod vault;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::Outcome;
use super::delivery::{Claim, Ended, Finished, Jitter, Pick, Policy, Settled, claim, finish, take_up_interrupted};
use super::endpoint::{create, find_endpoint};
use super::recover::{Cursor, Lost, Window, recover, replay_skipped};
use super::{Egress, EgressPolicy, Endpoint, Error, ErrorClass, Fanout, NewEndpoint, Vault};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::outbox::consumer::{Inside, StoredEvent};

const START: i64 = 1_700_000_000_000;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const LEASE_MS: i64 = 30 * SECOND;

/// A store with webhooks and the domain outbox.
struct World {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    vault: Vault,
    egress: Egress,
    fanout: Arc<Fanout>,
    policy: Policy,
}

impl World {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), Clock::stopped_at(START))
    }

    fn open(dir: tempfile::TempDir, clock: Clock) -> Self {
        let recorders: Vec<crate::kernel::store::Recorder> = vec![crate::outbox::record];
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), recorders).unwrap();
        let vault = Vault::at(dir.path());
        let egress = Egress::new(EgressPolicy::default());
        let policy = Policy { disable_after: Duration::from_secs(5 * 24 * 3600), jitter: Jitter::None };
        Self { dir, db, clock, vault, egress, fanout: Arc::default(), policy }
    }

    /// The same file in a process that starts now.
    async fn restart(self) -> Self {
        self.db.close().await;
        let Self { dir, clock, policy, .. } = self;
        Self { policy, ..Self::open(dir, clock) }
    }

    fn advance(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(ms.unsigned_abs()));
    }

    async fn write<T: Send + 'static>(&self, work: impl FnOnce(&Tx<'_>) -> T + Send + 'static) -> T {
        self.db.write(move |tx| Ok::<_, StoreError>(work(tx))).await.unwrap()
    }

    async fn run(&self, sql: &str) -> Result<usize, StoreError> {
        let sql = sql.to_owned();
        self.db.write(move |tx| tx.execute(&sql, [])).await
    }

    /// One text for each row.
    async fn column(&self, sql: &str) -> Vec<String> {
        let sql = sql.to_owned();
        self.db.read(move |tx| tx.query_all(&sql, [], |row| row.get(0))).await.unwrap()
    }

    /// Every delivery: its row and how it stands.
    async fn standings(&self) -> Vec<String> {
        self.column("SELECT concat_ws(' ', id, status, attempts, step) FROM webhook_deliveries ORDER BY id").await
    }

    /// Every attempt of the journal.
    async fn journal(&self) -> Vec<String> {
        let sql = "SELECT concat_ws(' ', delivery, number, trigger, COALESCE(error, 'ok'), COALESCE(http_status, '-'))
                   FROM webhook_attempts ORDER BY delivery, number";
        self.column(sql).await
    }

    async fn published(&self) -> Vec<String> {
        self.column("SELECT type || ' ' || payload FROM outbox_events ORDER BY id").await
    }

    async fn tenant(&self, name: &str) -> TenantId {
        let tenant = TenantId::parse(name).unwrap();
        self.run(&format!("INSERT INTO tenants (id, created_at) VALUES ('{name}', 1)")).await.unwrap();
        tenant
    }

    /// An endpoint of the installation that wants everything.
    async fn endpoint(&self) -> Endpoint {
        self.endpoint_of(&TenantId::installation(), NewEndpoint { url: URL.into(), ..NewEndpoint::default() }).await
    }

    async fn endpoint_of(&self, tenant: &TenantId, new: NewEndpoint) -> Endpoint {
        self.try_endpoint(tenant, new).await.unwrap()
    }

    async fn try_endpoint(&self, tenant: &TenantId, new: NewEndpoint) -> Result<Endpoint, Error> {
        let (tenant, vault, egress) = (tenant.clone(), self.vault.clone(), self.egress.clone());
        self.db.write(move |tx| create(tx, &tenant, &new, &vault, &egress).map(|(endpoint, _)| endpoint)).await
    }

    async fn look_at(&self, endpoint: &Endpoint) -> Endpoint {
        let id = endpoint.id.clone();
        self.db.read(move |tx| find_endpoint(tx, &TenantId::installation(), &id)).await.unwrap()
    }

    /// An event of the installation is handed to the fan-out.
    async fn event(&self, row: i64) {
        self.event_of(&TenantId::installation(), row, "order.paid").await;
    }

    async fn event_of(&self, tenant: &TenantId, row: i64, event_type: &str) {
        let (fanout, event) = (Arc::clone(&self.fanout), event(tenant, row, event_type));
        self.write(move |tx| fanout.accept(tx, &event).unwrap()).await;
    }

    /// Claims up to so many of an endpoint.
    async fn claim(&self, endpoint: i64, most: usize) -> Vec<Claim> {
        self.write(move |tx| claim(tx, &[Pick { endpoint, most }], LEASE_MS).unwrap()).await
    }

    /// Claims the one that may go.
    async fn claim_one(&self, endpoint: &Endpoint) -> Claim {
        let claims: [Claim; 1] = self.claim(endpoint.row, 10).await.try_into().unwrap();
        let [claim] = claims;
        claim
    }

    async fn finish(&self, claim: &Claim, outcome: Outcome) -> Finished {
        let (ended, policy) = (Ended { claim: claim.clone(), outcome }, self.policy);
        self.write(move |tx| finish(tx, &ended, &policy).unwrap()).await
    }

    /// Makes the attempt that is due.
    async fn attempt(&self, endpoint: &Endpoint, outcome: Outcome) -> Settled {
        let claim = self.claim_one(endpoint).await;
        self.finish(&claim, outcome).await.settled
    }

    /// Queues all deliveries of an endpoint that were lost so, batch by batch; how many.
    async fn queue_all(&self, endpoint_id: &str, lost: Lost, window: Window) -> Result<usize, Error> {
        let (mut queued, mut from) = (0, Some(Cursor::default()));
        let step = if lost == Lost::Skipped { replay_skipped } else { recover };
        while let Some(cursor) = from {
            let id = endpoint_id.to_owned();
            let batch = self.db.write(move |tx| step(tx, &TenantId::installation(), &id, window, cursor)).await?;
            queued += batch.queued;
            from = batch.next;
        }
        Ok(queued)
    }

    async fn take_up(&self, in_hand: &[i64]) -> usize {
        let (in_hand, policy): (HashSet<i64>, _) = (in_hand.iter().copied().collect(), self.policy);
        self.write(move |tx| take_up_interrupted(tx, &in_hand, &policy).unwrap().taken).await
    }
}

const URL: &str = "https://hooks.example/in";

fn event(tenant: &TenantId, row: i64, event_type: &str) -> StoredEvent {
    StoredEvent {
        row,
        tenant: tenant.clone(),
        event_id: format!("00000000-0000-7000-8000-{row:012}"),
        event_type: event_type.into(),
        version: 1,
        aggregate_type: "order".into(),
        aggregate_id: row.to_string(),
        occurred_at: START,
        payload: "{\"amount\":0.10}".into(),
        attempts: 0,
    }
}

fn outcome(http_status: Option<u16>, error: Option<ErrorClass>) -> Outcome {
    let (duration, retry_after, resolved_ip) = (Duration::from_millis(12), None, "203.0.113.7".parse().ok());
    let response_body = http_status.map(|_| "body".to_owned());
    Outcome { duration, http_status, error, retry_after, response_body, resolved_ip }
}

fn answered(status: u16) -> Outcome {
    outcome(Some(status), ErrorClass::of_status(status))
}

fn timed_out() -> Outcome {
    outcome(None, Some(ErrorClass::Timeout))
}

fn asks_for(status: u16, wait: Duration) -> Outcome {
    Outcome { retry_after: Some(wait), ..answered(status) }
}

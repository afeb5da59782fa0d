//! Deliveries that a person has queued again.

use super::super::endpoint::{delete, disable, update};
use super::super::sweep::sweep;
use super::super::{EndpointChanges, EndpointStatus, resend};
use super::*;

const EVER: Window = Window { since: i64::MIN, until: i64::MAX };

impl World {
    /// So many deliveries in that status, each a second after the one before.
    async fn fill(&self, endpoint: &Endpoint, status: &str, count: i64) {
        let endpoint = endpoint.row;
        let sql = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO webhook_messages (id, tenant_id, event_id, type, body, created_at)
             SELECT i + (SELECT COALESCE(max(id), 0) FROM webhook_messages), 'default', i, 'order.paid', x'7b7d', 1 FROM n"
        );
        self.run(&sql).await.unwrap();
        let sql = format!(
            "INSERT INTO webhook_deliveries (message, endpoint, status, attempts, step, created_at, delivered_at)
             SELECT id, {endpoint}, '{status}', 9, 9, {START} + 1000 * (row_number() OVER (ORDER BY id) - 1),
                    CASE '{status}' WHEN 'delivered' THEN 1 END
             FROM (SELECT id FROM webhook_messages ORDER BY id DESC LIMIT {count}) ORDER BY id"
        );
        self.run(&sql).await.unwrap();
    }

    async fn queue(&self, endpoint: &Endpoint, lost: Lost, window: Window) -> Result<usize, Error> {
        self.queue_all(&endpoint.id, lost, window).await
    }

    async fn set(&self, endpoint: &Endpoint, status: EndpointStatus) {
        let (id, egress) = (endpoint.id.clone(), self.egress.clone());
        let changes = EndpointChanges { status: Some(status), ..EndpointChanges::default() };
        self.write(move |tx| update(tx, &TenantId::installation(), &id, &changes, &egress).map(|_| ()).unwrap()).await;
    }

    async fn off(&self, endpoint: &Endpoint) {
        let id = endpoint.id.clone();
        self.write(move |tx| disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap()).await;
    }
}

#[tokio::test]
async fn failed_and_cancelled_ones_wait_again_with_the_whole_schedule_before_them() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for status in ["failed", "cancelled", "skipped", "delivered"] {
        world.fill(&endpoint, status, 1).await;
    }
    assert_eq!(world.queue(&endpoint, Lost::Undelivered, EVER).await.unwrap(), 2);
    assert_eq!(world.standings().await, ["1 pending 9 0", "2 pending 9 0", "3 skipped 9 9", "4 delivered 9 9"]);
    assert_eq!(world.claim(endpoint.row, 9).await[0].number, 10, "attempts go on counting");
    assert_eq!(world.queue(&endpoint, Lost::Undelivered, EVER).await.unwrap(), 0);
    assert_eq!(world.queue(&endpoint, Lost::Skipped, EVER).await.unwrap(), 1);
}

#[tokio::test]
async fn those_of_the_time_asked_for_are_queued_and_no_others() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.fill(&endpoint, "failed", 10).await;
    let window = Window { since: START + 3 * SECOND, until: START + 7 * SECOND };
    assert_eq!(world.queue(&endpoint, Lost::Undelivered, window).await.unwrap(), 4);
    let queued = world.column("SELECT CAST(id AS TEXT) FROM webhook_deliveries WHERE status = 'pending'").await;
    assert_eq!(queued, ["4", "5", "6", "7"]);
}

#[tokio::test]
async fn many_are_queued_in_batches_of_which_each_goes_on_after_the_one_before() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.fill(&endpoint, "failed", 1200).await;
    world.fill(&endpoint, "cancelled", 3).await;
    let id = endpoint.id.clone();
    let step = move |from| {
        let id = id.clone();
        move |tx: &Tx<'_>| recover(tx, &TenantId::installation(), &id, EVER, from).unwrap()
    };
    let mut counts = vec![];
    let mut from = Some(Cursor::default());
    while let Some(cursor) = from {
        let batch = world.write(step(cursor)).await;
        counts.push(batch.queued);
        from = batch.next;
    }
    assert_eq!(counts, [500, 500, 200, 3]);
    // Cut off after the first batch, and asked again from the beginning.
    world.run("UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL").await.unwrap();
    world.write(step(Cursor::default())).await;
    assert_eq!(world.queue(&endpoint, Lost::Undelivered, EVER).await.unwrap(), 703);
}

#[tokio::test]
async fn a_long_history_is_gone_through_a_bounded_number_of_rows_at_a_time() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.fill(&endpoint, "skipped", 5000).await;
    let window = Window { since: START + 4999 * SECOND, until: i64::MAX };
    let id = endpoint.id.clone();
    let first = world
        .write(move |tx| replay_skipped(tx, &TenantId::installation(), &id, window, Cursor::default()).unwrap())
        .await;
    assert_eq!(first.queued, 0);
    assert!(first.next.is_some());
    assert_eq!(world.queue(&endpoint, Lost::Skipped, window).await.unwrap(), 1);
}

#[tokio::test]
async fn nothing_is_queued_for_an_endpoint_that_is_disabled_or_deleted() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.fill(&endpoint, "failed", 1).await;
    let shown = world.column("SELECT CAST(created_at AS TEXT) FROM webhook_deliveries").await;
    let delivery_id = super::super::id::delivery_id(1, shown[0].parse().unwrap());
    world.off(&endpoint).await;
    let ask = move |tx: &Tx<'_>| resend(tx, &TenantId::installation(), &delivery_id);
    assert!(matches!(world.db.write(ask.clone()).await, Err(Error::EndpointDisabled)));
    for lost in [Lost::Undelivered, Lost::Skipped] {
        assert!(matches!(world.queue(&endpoint, lost, EVER).await, Err(Error::EndpointDisabled)));
    }
    world.set(&endpoint, EndpointStatus::Paused).await;
    world.db.write(ask.clone()).await.unwrap();
    assert_eq!(world.queue(&endpoint, Lost::Undelivered, EVER).await.unwrap(), 1, "it waits until it is active");
    let id = endpoint.id.clone();
    world.db.write(move |tx| delete(tx, &TenantId::installation(), &id)).await.unwrap();
    assert!(matches!(world.queue(&endpoint, Lost::Undelivered, EVER).await, Err(Error::NotFound)));
    assert!(matches!(world.db.write(ask).await, Err(Error::NotFound)));
}

#[tokio::test]
async fn what_a_disabled_endpoint_missed_is_replayed_once_it_is_active() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.off(&endpoint).await;
    world.event(2).await;
    assert_eq!(world.write(|tx| sweep(tx).unwrap()).await.skipped, 1, "what waited is skipped too");
    world.set(&endpoint, EndpointStatus::Active).await;
    assert!(world.claim(endpoint.row, 9).await.is_empty(), "nothing goes by itself");
    assert_eq!(world.queue(&endpoint, Lost::Skipped, EVER).await.unwrap(), 2);
    assert_eq!(world.claim(endpoint.row, 9).await.len(), 2);
}

//! Which deliveries an event becomes.

use super::super::endpoint::{delete, disable, update};
use super::super::{EndpointChanges, EndpointStatus, endpoints, is_unfinished};
use super::*;
use crate::outbox::consumer::Refusal;

fn wanting(types: &[&str]) -> NewEndpoint {
    let event_types = Some(types.iter().map(|one| (*one).to_owned()).collect());
    NewEndpoint { url: URL.into(), event_types, ..NewEndpoint::default() }
}

impl World {
    async fn made(&self) -> Vec<String> {
        let sql = "SELECT concat_ws(' ', message, endpoint, status, COALESCE(next_attempt_at, '-'))
                   FROM webhook_deliveries ORDER BY id";
        self.column(sql).await
    }
}

#[tokio::test]
async fn an_event_becomes_a_delivery_for_each_endpoint_that_wants_it() {
    let world = World::new();
    let tenant = TenantId::installation();
    let all = world.endpoint().await.row;
    let orders = world.endpoint_of(&tenant, wanting(&["order.*"])).await.row;
    world.endpoint_of(&tenant, wanting(&["lead.received"])).await;
    world.event(1).await;
    assert_eq!(world.made().await, [format!("1 {all} pending {START}"), format!("1 {orders} pending {START}")]);
}

#[tokio::test]
async fn nothing_at_all_is_written_when_nobody_wants_it() {
    let world = World::new();
    world.endpoint_of(&TenantId::installation(), wanting(&["lead.*"])).await;
    world.event(1).await;
    let other = world.tenant("acme").await;
    world.event_of(&other, 2, "lead.received").await;
    assert!(world.made().await.is_empty());
    assert!(world.column("SELECT event_id FROM webhook_messages").await.is_empty());
}

#[tokio::test]
async fn an_event_that_is_handed_over_again_changes_nothing() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, answered(200)).await;
    world.advance(DAY);
    let before = world.column("SELECT concat_ws(' ', hex(body), created_at) FROM webhook_messages").await;
    let (fanout, again) = (Arc::clone(&world.fanout), event(&TenantId::installation(), 1, "order.paid"));
    let again = StoredEvent { payload: "{\"amount\":0.1}".into(), ..again };
    world.write(move |tx| fanout.accept(tx, &again).unwrap()).await;
    assert_eq!(world.standings().await, ["1 delivered 1 0"]);
    let after = world.column("SELECT concat_ws(' ', hex(body), created_at) FROM webhook_messages").await;
    assert_eq!(before, after, "the body is frozen");
}

#[tokio::test]
async fn events_wait_for_a_paused_endpoint_and_are_noted_for_a_disabled_one() {
    let world = World::new();
    let (paused, disabled, deleted) = (world.endpoint().await, world.endpoint().await, world.endpoint().await);
    let egress = world.egress.clone();
    let (p, d, x) = (paused.id.clone(), disabled.id.clone(), deleted.id.clone());
    let change = move |tx: &Tx<'_>| {
        let changes = EndpointChanges { status: Some(EndpointStatus::Paused), ..EndpointChanges::default() };
        update(tx, &TenantId::installation(), &p, &changes, &egress).unwrap();
        disable(tx, &TenantId::installation(), &d).unwrap();
        delete(tx, &TenantId::installation(), &x).unwrap();
    };
    world.event(1).await;
    world.write(change).await;
    world.event(2).await;
    let rows = world.made().await;
    assert_eq!(rows[3..], [format!("2 {} pending {START}", paused.row), format!("2 {} skipped -", disabled.row)]);
    let unfinished = world.write(|tx| [2, 3].map(|row| is_unfinished(tx, row).unwrap())).await;
    assert_eq!(unfinished, [true, false]);
}

#[tokio::test]
async fn an_endpoint_gets_the_next_event_whatever_is_remembered() {
    let world = World::new();
    for row in 1..=3 {
        world.event(row).await;
        let endpoint = world.endpoint().await;
        world.event(10 + row).await;
        let of_it = format!("SELECT message FROM webhook_deliveries WHERE endpoint = {}", endpoint.row);
        assert_eq!(
            world.db.read(move |tx| tx.query_all(&of_it, [], |row| row.get::<_, i64>(0))).await.unwrap(),
            [10 + row]
        );
    }
}

#[tokio::test]
async fn an_endpoint_is_seen_within_the_transaction_that_made_it_and_not_if_that_was_taken_back() {
    let world = World::new();
    let fanout = Arc::clone(&world.fanout);
    let (vault, egress) = (world.vault.clone(), world.egress.clone());
    let tenant = TenantId::installation();
    // Made, remembered, and taken back: a number that was counted would be the same for the next one.
    for row in [1, 2] {
        let (fanout, vault, egress, tenant) = (Arc::clone(&fanout), vault.clone(), egress.clone(), tenant.clone());
        let taken_back = move |tx: &Tx<'_>| -> Result<(), Error> {
            let new = NewEndpoint { url: URL.into(), ..NewEndpoint::default() };
            create(tx, &tenant, &new, &vault, &egress)?;
            fanout.accept(tx, &event(&tenant, row, "order.paid")).unwrap();
            let made: i64 = tx.query_one("SELECT count(*) FROM webhook_deliveries", [], |row| row.get(0))?;
            assert_eq!(made, 1);
            Err(Error::NotFound)
        };
        assert!(world.db.write(taken_back).await.is_err());
        world.event(10 + row).await;
        assert!(world.made().await.is_empty(), "nobody is there");
    }
    let wants_leads = world.endpoint_of(&tenant, wanting(&["lead.*"])).await;
    world.event(20).await;
    assert!(world.made().await.is_empty());
    world.event_of(&tenant, 21, "lead.received").await;
    assert_eq!(world.made().await, [format!("21 {} pending {START}", wants_leads.row)]);
}

#[tokio::test]
async fn an_event_whose_id_cannot_be_sent_is_refused_where_somebody_wants_it() {
    let world = World::new();
    let odd = StoredEvent { event_id: "a.b".into(), ..event(&TenantId::installation(), 1, "order.paid") };
    let (fanout, handed) = (Arc::clone(&world.fanout), odd.clone());
    world.write(move |tx| fanout.accept(tx, &handed).unwrap()).await;
    world.endpoint().await;
    let fanout = Arc::clone(&world.fanout);
    let refused = world.write(move |tx| fanout.accept(tx, &odd)).await;
    assert!(matches!(refused, Err(Refusal::Code("unfit_event_id"))), "{refused:?}");
    assert!(world.made().await.is_empty());
}

#[tokio::test]
async fn an_endpoint_whose_row_cannot_be_read_keeps_no_other_from_its_events() {
    let odd = [
        ("event_types = '[1]'", Some(vec!["1"])),
        ("event_types = '[\"order.paid\", null, {\"a\": [2]}]'", Some(vec!["order.paid", "null", "{\"a\":[2]}"])),
        ("event_types = CAST(x'5b22ff225d' AS TEXT)", Some(vec!["\u{fffd}"])),
        ("description = CAST(x'ff' AS TEXT)", None),
        // As a program with the checks switched off may write it.
        ("event_types = 'order.*'", Some(vec!["order.*"])),
    ];
    for (spoil, shown) in odd {
        let world = World::new();
        let (bad, good) = (world.endpoint().await, world.endpoint().await);
        world.run("PRAGMA ignore_check_constraints = 1").await.unwrap();
        world.run(&format!("UPDATE webhook_endpoints SET {spoil} WHERE id = {}", bad.row)).await.unwrap();
        world.event(1).await;
        world.event(2).await;
        let to = world.column("SELECT CAST(endpoint AS TEXT) FROM webhook_deliveries ORDER BY id").await;
        // What is amiss in the description alone keeps nothing from it.
        let expected = if shown.is_some() { vec![good.row; 2] } else { vec![bad.row, good.row, bad.row, good.row] };
        assert_eq!(to, expected.iter().map(i64::to_string).collect::<Vec<_>>(), "{spoil}");
        let listed = world.db.read(|tx| endpoints(tx, &TenantId::installation(), None, 10)).await.unwrap();
        let types = listed.items[0].event_types.as_ref().map(|types| types.iter().map(String::as_str).collect());
        assert_eq!((listed.items.len(), types), (2, shown), "{spoil}");
    }
}

#[tokio::test]
async fn the_worker_is_woken_only_for_what_may_go() {
    let world = World::new();
    let woken = world.db.subscribe(super::super::DELIVERIES);
    let endpoint = world.endpoint().await;
    world.event(1).await;
    tokio::time::timeout(Duration::from_secs(10), woken.notified()).await.unwrap();
    let id = endpoint.id.clone();
    world.write(move |tx| disable(tx, &TenantId::installation(), &id).map(|_| ()).unwrap()).await;
    tokio::time::timeout(Duration::from_secs(10), woken.notified()).await.unwrap();
    world.event(2).await;
    let quiet = tokio::time::timeout(Duration::from_millis(1), woken.notified()).await;
    assert!(quiet.is_err(), "nothing may go to it");
}

//! What one tenant has is nothing to another, exactly as what there never was.

use super::super::endpoint::{delete, destination, disable, endpoints, find_endpoint, rotate_secret, update};
use super::super::inspect::{DeliveryFilter, attempts, deliveries, delivery, tests};
use super::super::recover::{Cursor, Window, recover, replay_skipped};
use super::super::{EndpointChanges, Rotation, resend};
use super::*;

#[tokio::test]
async fn every_call_answers_another_tenants_id_as_an_unknown_one() {
    let world = World::new();
    let (one, other) = (world.tenant("one").await, world.tenant("other").await);
    let endpoint = world.endpoint_of(&one, NewEndpoint { url: URL.into(), ..NewEndpoint::default() }).await;
    world.event_of(&one, 1, "order.paid").await;
    let claim = world.claim_one(&endpoint).await;
    world.finish(&claim, timed_out()).await;
    let unknown_delivery = super::super::id::delivery_id(99, START);
    let wrong_time = super::super::id::delivery_id(claim.delivery, START + 1);
    let (vault, egress) = (world.vault.clone(), world.egress.clone());
    let work = move |tx: &Tx<'_>| {
        let is_missing = |result: Result<(), Error>| assert!(matches!(result, Err(Error::NotFound)), "{result:?}");
        for (tenant, id) in [(&other, endpoint.id.as_str()), (&one, "ep_unknown"), (&one, ""), (&other, "ep_unknown")] {
            let window = Window { since: 0, until: i64::MAX };
            let filter = DeliveryFilter { endpoint_id: Some(id.to_owned()), ..DeliveryFilter::default() };
            is_missing(find_endpoint(tx, tenant, id).map(drop));
            is_missing(update(tx, tenant, id, &EndpointChanges::default(), &egress).map(drop));
            is_missing(disable(tx, tenant, id).map(drop));
            is_missing(delete(tx, tenant, id));
            is_missing(rotate_secret(tx, tenant, id, &Rotation::default(), &vault).map(drop));
            is_missing(destination(tx, tenant, id).map(drop));
            is_missing(recover(tx, tenant, id, window, Cursor::default()).map(drop));
            is_missing(replay_skipped(tx, tenant, id, window, Cursor::default()).map(drop));
            is_missing(deliveries(tx, tenant, &filter, None, 10).map(drop));
            is_missing(tests(tx, tenant, id, None, 10).map(drop));
        }
        let theirs = claim.id();
        for (tenant, id) in [
            (&other, theirs.as_str()),
            (&one, unknown_delivery.as_str()),
            (&one, wrong_time.as_str()),
            (&one, "dlv_"),
            (&one, ""),
        ] {
            is_missing(delivery(tx, tenant, id).map(drop));
            is_missing(attempts(tx, tenant, id, None, 10).map(drop));
            is_missing(resend(tx, tenant, id));
        }
        assert!(endpoints(tx, &other, None, 10).unwrap().items.is_empty());
        assert!(deliveries(tx, &other, &DeliveryFilter::default(), None, 10).unwrap().items.is_empty());
        assert_eq!(find_endpoint(tx, &one, &endpoint.id).unwrap().url, URL, "and nothing has changed");
        assert_eq!(delivery(tx, &one, &theirs).unwrap().resend_requested_at, None);
    };
    world.write(work).await;
}

#[tokio::test]
async fn events_go_to_endpoints_of_their_own_tenant_only() {
    let world = World::new();
    let (one, other) = (world.tenant("one").await, world.tenant("other").await);
    let new = || NewEndpoint { url: URL.into(), ..NewEndpoint::default() };
    let endpoint = world.endpoint_of(&one, new()).await;
    world.endpoint_of(&other, new()).await;
    world.endpoint_of(&TenantId::installation(), new()).await;
    world.event_of(&one, 1, "order.paid").await;
    let sql = "SELECT concat_ws(' ', d.endpoint, m.tenant_id) FROM webhook_deliveries d JOIN webhook_messages m ON m.id = d.message";
    assert_eq!(world.column(sql).await, [format!("{} one", endpoint.row)]);
}

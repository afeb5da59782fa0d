//! The test button, which goes the way of deliveries without being one.

use super::*;
use crate::kernel::tenant::TenantId;
use crate::webhooks::Error;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::probe::{Tested, Tools, test};

async fn press(world: &World, endpoint_id: &str) -> Result<Tested, Error> {
    let DelivererParts { transport, vault, .. } = world.parts();
    test(&world.db, Tools { transport: &transport, vault: &vault }, &TenantId::installation(), endpoint_id).await
}

fn id_of(url: &str) -> String {
    format!("ep_{}", url.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))
}

/// What was recorded: webhook-id, status and error, in their order.
async fn recorded(world: &World) -> Vec<(String, Option<i64>, Option<String>)> {
    let read = |tx: &Tx<'_>| {
        let sql = "SELECT message_id, http_status, error FROM webhook_tests ORDER BY id";
        tx.query_all(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    };
    world.db.read(read).await.unwrap()
}

#[tokio::test]
async fn a_test_is_signed_and_sent_like_a_delivery_and_tells_both_sides() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("202 X\r\nx-told: yes")).await;
    world.endpoint(&receiver.url).await;
    let tested = press(&world, &id_of(&receiver.url)).await.unwrap();
    let got = receiver.got();
    assert_eq!(got.len(), 1);
    assert!(got[0].is_signed_by(&SECRET, START));
    assert_eq!(tested.request.body, got[0].body);
    for (name, value) in &tested.request.headers {
        assert_eq!(got[0].headers.get(name), Some(value), "{name}");
    }
    let body: serde_json::Value = serde_json::from_str(&got[0].body).unwrap();
    assert_eq!((&body["type"], &body["id"]), (&"webhook.test".into(), &got[0].id().into()));
    assert_eq!((&body["tenant"], &body["data"]["endpoint_id"]), (&"default".into(), &id_of(&receiver.url).into()));
    let response = tested.response.unwrap();
    assert!(response.headers.contains(&("x-told".to_owned(), "yes".to_owned())));
    assert_eq!((tested.outcome.http_status, tested.outcome.error), (Some(202), None));
    assert_eq!(recorded(&world).await, [(got[0].id().to_owned(), Some(202), None)]);
    assert_eq!(world.run().await, Report::default(), "it is no delivery");
}

#[tokio::test]
async fn a_test_that_fails_changes_nothing_about_the_endpoint() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("410 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let tested = press(&world, &id_of(&receiver.url)).await.unwrap();
    assert_eq!(tested.outcome.error, Some(crate::webhooks::ErrorClass::Http4xx));
    receiver.will(Play::Answer("503 X\r\nretry-after: 600"));
    press(&world, &id_of(&receiver.url)).await.unwrap();
    receiver.will(Play::Answer("200 X"));
    let delivery = world.delivery(endpoint).await;
    assert_eq!(world.run().await.delivered, 1);
    assert_eq!(world.status(delivery).await, DeliveryStatus::Delivered.as_str());
}

#[tokio::test]
async fn a_test_goes_where_a_delivery_may_go_and_nowhere_else() {
    let world = World::new();
    for url in ["http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[::ffff:10.0.0.1]/"] {
        world.endpoint(url).await;
        let tested = press(&world, &id_of(url)).await.unwrap();
        let outcome = &tested.outcome;
        assert_eq!(outcome.error, Some(crate::webhooks::ErrorClass::Blocked), "{url}");
        assert_eq!((outcome.http_status, outcome.resolved_ip, tested.response), (None, None, None), "{url}");
    }
    assert_eq!(recorded(&world).await.len(), 3);
}

#[tokio::test]
async fn a_test_that_could_not_be_begun_is_told_and_not_recorded() {
    let world = World::impatient();
    world.script.will("waits.example", crate::webhooks::resolve::Line::Waits);
    world.endpoint("http://waits.example/").await;
    let tested = press(&world, &id_of("http://waits.example/")).await.unwrap();
    assert_eq!((tested.outcome.error, tested.response), (Some(crate::webhooks::ErrorClass::Interrupted), None));
    assert!(recorded(&world).await.is_empty());
}

#[tokio::test]
async fn an_endpoint_of_somebody_else_is_not_found() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    world.execute("INSERT INTO tenants (id, created_at) VALUES ('other', 1)", vec![]).await;
    world.endpoint(&receiver.url).await;
    world.execute("UPDATE webhook_endpoints SET tenant_id = 'other'", vec![]).await;
    for id in [id_of(&receiver.url), "ep_none".to_owned()] {
        assert!(matches!(press(&world, &id).await, Err(Error::NotFound)), "{id}");
    }
    assert_eq!((receiver.count(), recorded(&world).await.len()), (0, 0));
}

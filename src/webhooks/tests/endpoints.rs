//! What a tenant does with its endpoints.

use super::super::endpoint::{delete, disable, endpoints, update};
use super::super::{DisabledReason, EndpointChanges, EndpointStatus, MOST_ENDPOINTS, UrlFault};
use super::*;
use crate::kernel::secret::Secret;

fn new() -> NewEndpoint {
    NewEndpoint { url: URL.into(), ..NewEndpoint::default() }
}

impl World {
    async fn update(&self, endpoint: &Endpoint, changes: EndpointChanges) -> Result<Endpoint, Error> {
        let (id, egress) = (endpoint.id.clone(), self.egress.clone());
        self.db.write(move |tx| update(tx, &TenantId::installation(), &id, &changes, &egress)).await
    }
}

#[tokio::test]
async fn an_endpoint_is_as_it_was_asked_for_and_its_secret_is_shown_once() {
    let world = World::new();
    let asked = NewEndpoint {
        url: "HTTPS://Hooks.Example:443/in/../a?b=c".into(),
        description: Some("billing".into()),
        event_types: Some(vec!["order.*".into(), "lead.received".into()]),
        rate_per_second: Some(1000),
        secret: None,
    };
    let (vault, egress) = (world.vault.clone(), world.egress.clone());
    let make = move |tx: &Tx<'_>| create(tx, &TenantId::installation(), &asked, &vault, &egress).unwrap();
    let (endpoint, secret) = world.write(make).await;
    assert!(endpoint.id.starts_with("ep_"));
    assert_eq!(endpoint.url, "https://hooks.example/a?b=c");
    assert_eq!((endpoint.description.as_str(), endpoint.rate_per_second), ("billing", Some(1000)));
    assert_eq!(endpoint.event_types.as_ref().unwrap(), &["order.*", "lead.received"]);
    assert_eq!((endpoint.status, endpoint.disabled_reason), (EndpointStatus::Active, None));
    assert!(secret.expose().starts_with("whsec_") && secret.expose().ends_with(&endpoint.secret_last_four));
    assert_eq!(world.look_at(&endpoint).await, endpoint);
    let held = world.column("SELECT hex(sealed) FROM webhook_secrets").await;
    assert!(!held[0].contains(&hex(secret.expose().as_bytes())), "it is not in the file as it is");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[tokio::test]
async fn what_no_endpoint_may_have_is_refused_by_its_field() {
    let world = World::new();
    let url = |url: &str| NewEndpoint { url: url.into(), ..new() };
    let cases = [
        (NewEndpoint { description: Some("x".repeat(501)), ..new() }, "description"),
        (NewEndpoint { description: Some("a\0b".into()), ..new() }, "description"),
        (NewEndpoint { rate_per_second: Some(0), ..new() }, "rate_per_second"),
        (NewEndpoint { rate_per_second: Some(1001), ..new() }, "rate_per_second"),
        (NewEndpoint { event_types: Some(vec![]), ..new() }, "event_types"),
        (NewEndpoint { event_types: Some(vec!["*".into()]), ..new() }, "event_types"),
        (NewEndpoint { secret: Some(Secret::new("short")), ..new() }, "secret"),
    ];
    for (asked, expected) in cases {
        let refused = world.try_endpoint(&TenantId::installation(), asked).await;
        assert!(matches!(refused, Err(Error::Invalid { field, .. }) if field == expected), "{expected}: {refused:?}");
    }
    for bad in ["http://hooks.example/", "https://127.0.0.1/", "https://u:p@hooks.example/", "hooks.example"] {
        assert!(matches!(world.try_endpoint(&TenantId::installation(), url(bad)).await, Err(Error::Url(_))), "{bad}");
    }
    assert!(world.column("SELECT endpoint_id FROM webhook_endpoints").await.is_empty());
    let longest = NewEndpoint { description: Some("ü".repeat(500)), ..new() };
    assert!(world.try_endpoint(&TenantId::installation(), longest).await.is_ok(), "characters, not bytes");
}

#[tokio::test]
async fn a_tenant_has_at_most_fifty_endpoints_and_deleted_ones_do_not_count() {
    let world = World::new();
    let mut last = None;
    for _ in 0..MOST_ENDPOINTS {
        last = Some(world.endpoint().await);
    }
    let refused = world.try_endpoint(&TenantId::installation(), new()).await;
    assert!(matches!(refused, Err(Error::TooManyEndpoints)), "{refused:?}");
    let other = world.tenant("acme").await;
    assert!(world.try_endpoint(&other, new()).await.is_ok());
    let id = last.unwrap().id;
    world.db.write(move |tx| delete(tx, &TenantId::installation(), &id)).await.unwrap();
    assert!(world.try_endpoint(&TenantId::installation(), new()).await.is_ok());
}

#[tokio::test]
async fn a_change_leaves_what_it_does_not_name_and_clears_what_it_says_is_nothing() {
    let world = World::new();
    let asked = NewEndpoint {
        description: Some("billing".into()),
        event_types: Some(vec!["order.*".into()]),
        rate_per_second: Some(5),
        ..new()
    };
    let endpoint = world.endpoint_of(&TenantId::installation(), asked).await;
    world.advance(1);
    let same = world.update(&endpoint, EndpointChanges::default()).await.unwrap();
    assert_eq!(same, Endpoint { updated_at: START + 1, ..endpoint.clone() });
    let cleared = EndpointChanges {
        description: Some(None),
        event_types: Some(None),
        rate_per_second: Some(None),
        ..EndpointChanges::default()
    };
    let cleared = world.update(&endpoint, cleared).await.unwrap();
    assert_eq!((cleared.description.as_str(), cleared.event_types, cleared.rate_per_second), ("", None, None));
    let url = EndpointChanges { url: Some("https://127.0.0.1/".into()), ..EndpointChanges::default() };
    assert!(matches!(world.update(&endpoint, url).await, Err(Error::Url(UrlFault::NotPublic))));
    let status = EndpointChanges { status: Some(EndpointStatus::Disabled), ..EndpointChanges::default() };
    assert!(matches!(world.update(&endpoint, status).await, Err(Error::Invalid { field: "status", .. })));
}

#[tokio::test]
async fn an_endpoint_that_is_made_active_again_begins_anew() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.attempt(&endpoint, asks_for(503, Duration::from_secs(3600))).await;
    let id = endpoint.id.clone();
    let off = move |tx: &Tx<'_>| disable(tx, &TenantId::installation(), &id).unwrap();
    let disabled = world.write(off.clone()).await;
    assert_eq!(disabled.disabled_reason, Some(DisabledReason::Manual));
    assert!(disabled.held_until.is_some() && disabled.failing_since.is_some());
    world.write(off).await;
    let told = world.published().await;
    assert_eq!(told.len(), 1, "the second time changes nothing");
    assert!(told[0].starts_with("webhook.endpoint_disabled ") && told[0].contains("manual"), "{told:?}");
    let active = EndpointChanges { status: Some(EndpointStatus::Active), ..EndpointChanges::default() };
    let active = world.update(&endpoint, active).await.unwrap();
    assert_eq!((active.status, active.disabled_reason), (EndpointStatus::Active, None));
    assert_eq!((active.held_until, active.failing_since), (None, None));
}

#[tokio::test]
async fn a_new_address_is_not_blamed_for_the_old_one() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    world.event(2).await;
    let claims = world.claim(endpoint.row, 2).await;
    world.finish(&claims[0], asks_for(429, Duration::from_secs(3600))).await;
    let moved = EndpointChanges { url: Some("https://new.example/".into()), ..EndpointChanges::default() };
    let moved = world.update(&endpoint, moved).await.unwrap();
    assert_eq!((moved.held_until, moved.failing_since), (None, None));
    // What the old one says now is a failure of this delivery and no more.
    assert_eq!(world.finish(&claims[1], answered(410)).await.settled, Settled::Again(START + 5 * SECOND));
    let seen = world.look_at(&endpoint).await;
    assert_eq!((seen.status, seen.failing_since), (EndpointStatus::Active, None));
}

#[tokio::test]
async fn a_deleted_endpoint_is_gone_at_once_with_its_secrets() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.event(1).await;
    let claim = world.claim_one(&endpoint).await;
    let id = endpoint.id.clone();
    let gone = move |tx: &Tx<'_>| delete(tx, &TenantId::installation(), &id);
    world.db.write(gone.clone()).await.unwrap();
    assert!(matches!(world.db.write(gone).await, Err(Error::NotFound)));
    let listed = world.write(|tx| endpoints(tx, &TenantId::installation(), None, 10).unwrap()).await;
    assert!(listed.items.is_empty());
    assert!(world.column("SELECT last_four FROM webhook_secrets").await.is_empty());
    assert_eq!(world.finish(&claim, answered(410)).await.settled, Settled::Failed, "what is under way still ends");
    world.event(2).await;
    assert_eq!(world.standings().await, ["1 failed 1 1"], "and nothing new is made");
}

#[tokio::test]
async fn endpoints_are_listed_in_pages_in_the_order_in_which_they_were_made() {
    let world = World::new();
    let mut made = vec![];
    for _ in 0..3 {
        made.push(world.endpoint().await.id);
    }
    let mut seen = vec![];
    let mut after = None;
    loop {
        let page = world.write(move |tx| endpoints(tx, &TenantId::installation(), after, 2).unwrap()).await;
        seen.extend(page.items.into_iter().map(|endpoint| endpoint.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, made);
}

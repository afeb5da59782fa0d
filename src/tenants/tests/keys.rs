//! What is promised of keys.

use std::collections::HashSet;
use std::time::Duration;

use super::super::key::new_token;
use super::super::{Caller, Error, Role, authenticate, create_key, create_tenant, ensure_key};
use super::super::{keys, revoke_key, tenants};
use super::{START, World, tenant};
use crate::kernel::secret::Secret;
use crate::kernel::tenant::TenantId;

async fn caller(world: &World, token: &str) -> Option<Caller> {
    let token = token.to_owned();
    world.write(move |tx| authenticate(tx, token.as_bytes()).unwrap()).await
}

async fn make(world: &World, tenant: &TenantId, role: Role) -> (String, String) {
    let tenant = tenant.clone();
    let made = world.write(move |tx| create_key(tx, &tenant, role, "made by a test").unwrap()).await;
    (made.id, made.token.expose().to_owned())
}

#[tokio::test]
async fn a_key_speaks_for_its_tenant_in_its_role() {
    let world = World::new();
    let other = tenant("other-1");
    let id = other.clone();
    world.write(move |tx| create_tenant(tx, &id).unwrap()).await;
    for owner in [TenantId::installation(), other] {
        for role in Role::ALL {
            let (_, token) = make(&world, &owner, role).await;
            assert_eq!(caller(&world, &token).await, Some(Caller { tenant: owner.clone(), role }));
            for wrong in ["", "pbx_", &token[1..], &token[..46], &format!("{token} "), &token.to_uppercase()] {
                assert_eq!(caller(&world, wrong).await, None, "{wrong}");
            }
        }
    }
}

#[test]
fn keys_have_one_form_and_are_all_different() {
    let made: HashSet<String> = (0..1000).map(|_| new_token().expose().to_owned()).collect();
    assert_eq!(made.len(), 1000);
    for token in made {
        let random = token.strip_prefix("pbx_").unwrap();
        assert_eq!(random.len(), 43);
        assert!(random.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token}");
    }
}

#[tokio::test]
async fn the_text_of_a_key_is_nowhere_in_the_file() {
    let world = World::new();
    let (id, token) = make(&world, &TenantId::installation(), Role::Admin).await;
    let dev = new_token();
    let text = dev.expose().to_owned();
    world.write(move |tx| ensure_key(tx, &TenantId::installation(), Role::Admin, &dev).unwrap()).await;
    world.db.close().await;
    let mut found_its_id = false;
    for entry in std::fs::read_dir(world.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(path).unwrap() } else { vec![] };
        let has = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        found_its_id |= has(&id);
        // More than the last four, from the beginning or the middle, would be a part of the secret.
        for secret in [&token, &text] {
            assert!(!has(&secret[4..24]) && !has(&secret[24..]), "a part of a key is in the file");
        }
    }
    assert!(found_its_id, "the test looked at the right files");
}

#[tokio::test]
async fn a_list_shows_keys_without_their_text_in_the_order_of_their_making() {
    let world = World::new();
    let own = TenantId::installation();
    let mut made = vec![];
    for role in Role::ALL {
        made.push(make(&world, &own, role).await);
        world.clock.advance(Duration::from_millis(1));
    }
    let listed = world.write(move |tx| keys(tx, &TenantId::installation(), None, 50).unwrap()).await;
    let shown: Vec<_> = listed.iter().map(|key| (key.id.clone(), key.role, key.last_four.clone())).collect();
    let expected: Vec<_> =
        made.iter().zip(Role::ALL).map(|((id, token), role)| (id.clone(), role, token[43..].to_owned())).collect();
    assert_eq!(shown, expected);
    assert_eq!((listed[1].created_at, listed[1].revoked_at), (START + 1, None));
    assert_eq!(listed[1].description, "made by a test");
    let (first, rest) = (made[0].0.clone(), made[1..].iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
    let behind = world.write(move |tx| keys(tx, &TenantId::installation(), Some(&first), 50).unwrap()).await;
    assert_eq!(behind.into_iter().map(|key| key.id).collect::<Vec<_>>(), rest);
    let one = world.write(move |tx| keys(tx, &TenantId::installation(), None, 0).unwrap()).await;
    assert_eq!(one.len(), 1, "a page is never empty by its limit");
}

#[tokio::test]
async fn a_revoked_key_is_a_stranger_at_once_and_for_ever() {
    let world = World::new();
    let own = TenantId::installation();
    let (id, token) = make(&world, &own, Role::Read).await;
    let (_, other) = make(&world, &own, Role::Read).await;
    for _ in 0..2 {
        let id = id.clone();
        let since = world.write(move |tx| revoke_key(tx, &TenantId::installation(), &id).unwrap()).await;
        assert_eq!(since, START, "a second revocation changes nothing");
        assert_eq!(caller(&world, &token).await, None);
        world.clock.advance(Duration::from_secs(1));
    }
    assert!(caller(&world, &other).await.is_some(), "its neighbour is valid");
    let again = Secret::new(token);
    let refused = world.write(move |tx| ensure_key(tx, &TenantId::installation(), Role::Read, &again)).await;
    assert!(matches!(refused, Err(Error::TokenTaken)), "{refused:?}");
}

#[tokio::test]
async fn keys_of_another_tenant_look_like_none() {
    let world = World::new();
    let other = tenant("other");
    let id = other.clone();
    world.write(move |tx| create_tenant(tx, &id).unwrap()).await;
    let (key_id, token) = make(&world, &other, Role::Admin).await;
    assert_eq!(world.write(|tx| keys(tx, &TenantId::installation(), None, 50).unwrap()).await, []);
    for id in [key_id, "key_unknown".to_owned()] {
        let refused = world.write(move |tx| revoke_key(tx, &TenantId::installation(), &id)).await;
        assert!(matches!(refused, Err(Error::NoKey)), "{refused:?}");
    }
    assert!(caller(&world, &token).await.is_some());
}

#[tokio::test]
async fn a_key_that_nobody_saw_can_be_found_and_revoked() {
    let world = World::new();
    let (_, token) = make(&world, &TenantId::installation(), Role::Admin).await;
    let listed = world.write(|tx| keys(tx, &TenantId::installation(), None, 50).unwrap()).await;
    let id = listed[0].id.clone();
    world.write(move |tx| revoke_key(tx, &TenantId::installation(), &id).unwrap()).await;
    assert_eq!(caller(&world, &token).await, None);
}

#[tokio::test]
async fn tenants_are_made_once_and_listed_by_name() {
    let world = World::new();
    for name in ["zeta", "alpha"] {
        world.write(move |tx| create_tenant(tx, &tenant(name)).unwrap()).await;
    }
    for name in ["default", "zeta"] {
        let refused = world.write(move |tx| create_tenant(tx, &tenant(name))).await;
        assert!(matches!(refused, Err(Error::TenantExists)), "{refused:?}");
    }
    let listed = world.write(|tx| tenants(tx, None, 50).unwrap()).await;
    assert_eq!(listed.iter().map(|tenant| tenant.id.as_str()).collect::<Vec<_>>(), ["alpha", "default", "zeta"]);
    assert_eq!(listed[0].created_at, START);
    let behind = world.write(|tx| tenants(tx, Some(&tenant("default")), 50).unwrap()).await;
    assert_eq!(behind.iter().map(|tenant| tenant.id.as_str()).collect::<Vec<_>>(), ["zeta"]);
}

#[tokio::test]
async fn a_key_needs_a_tenant_and_a_short_description() {
    let world = World::new();
    let refused = world.write(|tx| create_key(tx, &tenant("nobody"), Role::Read, "")).await;
    assert!(matches!(refused, Err(Error::NoTenant)), "{refused:?}");
    let longest = "ж".repeat(200);
    world.write(move |tx| create_key(tx, &TenantId::installation(), Role::Read, &longest).unwrap()).await;
    let longer = "ж".repeat(201);
    let refused = world.write(move |tx| create_key(tx, &TenantId::installation(), Role::Read, &longer)).await;
    assert!(matches!(refused, Err(Error::LongDescription)), "{refused:?}");
}

#[tokio::test]
async fn the_key_of_dev_is_made_once_and_is_no_other() {
    let world = World::new();
    let token = new_token();
    let ensure = |role: Role, text: &str| {
        let token = Secret::new(text);
        world.write(move |tx| ensure_key(tx, &TenantId::installation(), role, &token))
    };
    for _ in 0..2 {
        ensure(Role::Admin, token.expose()).await.unwrap();
    }
    assert_eq!(world.write(|tx| keys(tx, &TenantId::installation(), None, 50).unwrap().len()).await, 1);
    let refused = ensure(Role::Read, token.expose()).await;
    assert!(matches!(refused, Err(Error::TokenTaken)), "{refused:?}");
    for weak in ["", "short", &"a b".repeat(20), &"ж".repeat(40)] {
        let refused = ensure(Role::Admin, weak).await;
        assert!(matches!(refused, Err(Error::WeakToken)), "{weak}: {refused:?}");
    }
    ensure(Role::Admin, &"0123456789abcdef".repeat(3)).await.unwrap();
}

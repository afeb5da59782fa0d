//! Secrets that are replaced.

use super::super::delivery::SealedSecret;
use super::super::endpoint::{destination, rotate_secret};
use super::super::{Rotated, Rotation};
use super::*;
use crate::kernel::secret::Secret;

impl World {
    async fn rotate(&self, endpoint: &Endpoint, rotation: Rotation) -> Result<Rotated, Error> {
        let (id, vault) = (endpoint.id.clone(), self.vault.clone());
        self.db.write(move |tx| rotate_secret(tx, &TenantId::installation(), &id, &rotation, &vault)).await
    }

    async fn rotate_within(&self, endpoint: &Endpoint, overlap_seconds: i64) -> Rotated {
        let rotation = Rotation { overlap_seconds: Some(overlap_seconds), secret: None };
        self.rotate(endpoint, rotation).await.unwrap()
    }

    /// What signs now, the newest first, as it was shown.
    async fn signing(&self, endpoint: &Endpoint) -> Vec<String> {
        use base64::Engine;
        let id = endpoint.id.clone();
        let found = self.db.read(move |tx| destination(tx, &TenantId::installation(), &id)).await.unwrap();
        let open = |one: &SealedSecret| self.vault.unseal(&endpoint.id, &one.sealed).unwrap();
        let written = |one| format!("whsec_{}", base64::engine::general_purpose::STANDARD.encode(open(one)));
        found.secrets.iter().map(written).collect()
    }

    async fn kept(&self) -> usize {
        self.column("SELECT last_four FROM webhook_secrets").await.len()
    }
}

#[tokio::test]
async fn the_old_secret_signs_too_for_a_day_and_the_newest_comes_first() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let old = world.signing(&endpoint).await.remove(0);
    let rotated = world.rotate(&endpoint, Rotation::default()).await.unwrap();
    assert_eq!(rotated.previous_valid_until, Some(START + DAY));
    let new = rotated.secret.expose().to_owned();
    assert_eq!(world.signing(&endpoint).await, [new.clone(), old.clone()]);
    assert!(new.ends_with(&world.look_at(&endpoint).await.secret_last_four));
    world.advance(DAY - 1);
    assert_eq!(world.signing(&endpoint).await, [new.clone(), old]);
    world.advance(1);
    assert_eq!(world.signing(&endpoint).await, [new]);
}

#[tokio::test]
async fn a_second_rotation_has_a_time_of_its_own_and_leaves_that_of_the_first() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let first = world.signing(&endpoint).await.remove(0);
    let second = world.rotate_within(&endpoint, 3600).await.secret.expose().to_owned();
    world.advance(HOUR / 2);
    let rotated = world.rotate_within(&endpoint, 3600).await;
    assert_eq!(rotated.previous_valid_until, Some(START + HOUR / 2 + HOUR));
    let third = rotated.secret.expose().to_owned();
    assert_eq!(world.signing(&endpoint).await, [third.clone(), second.clone(), first]);
    world.advance(HOUR / 2);
    assert_eq!(world.signing(&endpoint).await, [third.clone(), second]);
    world.advance(10 * DAY);
    // Long after the time of the one before is over, the next has one again.
    let rotated = world.rotate_within(&endpoint, 60).await;
    assert_eq!(world.signing(&endpoint).await, [rotated.secret.expose().to_owned(), third]);
    assert_eq!(world.kept().await, 2, "those that sign no more are gone");
}

#[tokio::test]
async fn without_an_overlap_the_old_secret_stops_at_once() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let rotated = world.rotate_within(&endpoint, 0).await;
    assert_eq!(rotated.previous_valid_until, None);
    assert_eq!(world.signing(&endpoint).await, [rotated.secret.expose().to_owned()]);
    assert_eq!(world.kept().await, 1);
}

#[tokio::test]
async fn an_overlap_is_at_most_a_week_and_an_own_secret_is_taken_as_it_is() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    for bad in [-1, 604_801, i64::MAX, i64::MIN] {
        let refused = world.rotate(&endpoint, Rotation { overlap_seconds: Some(bad), secret: None }).await;
        assert!(matches!(refused, Err(Error::Invalid { field: "overlap_seconds", .. })), "{refused:?}");
    }
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let rotation = Rotation { overlap_seconds: Some(604_800), secret: Some(Secret::new(own)) };
    let rotated = world.rotate(&endpoint, rotation).await.unwrap();
    assert_eq!((rotated.secret.expose(), rotated.previous_valid_until), (own, Some(START + 7 * DAY)));
    assert_eq!(world.signing(&endpoint).await[0], own);
    assert_eq!(world.look_at(&endpoint).await.secret_last_four, "LaSw");
}

#[tokio::test]
async fn at_most_ten_secrets_sign_and_the_oldest_stop() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    let mut made = vec![];
    for _ in 0..15 {
        made.insert(0, world.rotate_within(&endpoint, 604_800).await.secret.expose().to_owned());
    }
    assert_eq!(world.signing(&endpoint).await, made[..10]);
    assert_eq!(world.kept().await, 10);
}

#[tokio::test]
async fn secrets_that_sign_no_more_are_swept() {
    let world = World::new();
    let endpoint = world.endpoint().await;
    world.rotate_within(&endpoint, 60).await;
    let sweep = |tx: &Tx<'_>| super::super::sweep::sweep(tx).unwrap().secrets;
    assert_eq!(world.write(sweep).await, 0);
    world.advance(MINUTE);
    assert_eq!(world.write(sweep).await, 1);
    assert_eq!(world.kept().await, 1);
}

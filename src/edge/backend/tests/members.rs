//! What the bot asks another backend about members, and binding there.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::World;
use super::peer::Fault;
use crate::kernel::contract::{ConnectLink, Leader, MemberState};
use crate::kernel::store::StoreError;
use crate::onboarding::calls::Report;
use crate::onboarding::{Backend, BackendError};

/// Lets the next request to `path` be answered so.
fn answers(world: &World, path: &'static str, status: &'static str, body: &Value) {
    world.peer.fails(path, Fault::Answer(status, body.to_string()));
}

/// The first line of the newest request.
fn asked(world: &World) -> String {
    world.peer.state().heads.last().unwrap().lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_leader_is_asked_for_by_the_code() {
    let world = World::new().await;
    let found = json!({"uid": "77", "link": "a b&c", "name": "Boris", "extra": 1});
    answers(&world, "/leader/resolve", "200 OK", &found);
    let leader = world.remote.find_leader("a b&c").await.unwrap();
    assert_eq!(leader, Some(Leader { uid: 77, link: "a b&c".into(), name: Some("Boris".into()) }));
    assert_eq!(asked(&world), "GET /api/v2/bot/leader/resolve?code=a+b%26c HTTP/1.1");
    assert!(
        world.peer.state().heads[0]
            .to_lowercase()
            .contains(&format!("authorization: bearer {}", super::SECRET.to_lowercase()))
    );
    assert_eq!(world.remote.find_leader("nobody").await.unwrap(), None, "404 is nobody");
    answers(&world, "/leader/resolve", "200 OK", &json!({"link": "olga"}));
    let outside = world.remote.find_leader("olga").await.unwrap_err();
    assert!(matches!(outside, BackendError::Contract(_)) && !outside.to_string().contains("olga"), "{outside}");
    answers(&world, "/leader/resolve", "503 Service Unavailable", &json!({}));
    let away = world.remote.find_leader("boris").await.unwrap_err();
    assert!(matches!(away, BackendError::Unreachable(_)), "{away}");
}

#[tokio::test]
async fn an_account_and_a_state_are_asked_for_by_the_chat() {
    let world = World::new().await;
    answers(&world, "/check-account-by-telegram", "200 OK", &json!({"exists": true, "uid": 7}));
    assert_eq!(world.remote.find_account(9_007_199_254_740_993).await.unwrap(), Some(7));
    assert_eq!(asked(&world), "GET /api/v2/auth/check-account-by-telegram/9007199254740993 HTTP/1.1");
    for nobody in [json!({"exists": false, "uid": null}), json!({"exists": false})] {
        answers(&world, "/check-account-by-telegram", "200 OK", &nobody);
        assert_eq!(world.remote.find_account(5).await.unwrap(), None);
    }
    answers(&world, "/check-account-by-telegram", "200 OK", &json!({"exists": true}));
    assert!(matches!(world.remote.find_account(5).await, Err(BackendError::Contract(_))));

    assert_eq!(world.remote.find_state(5).await.unwrap(), None);
    let body = json!({
        "isRegistrationConfirmed": true, "lp1": true, "lp2": false, "addr": "0xA1", "timeActive": null, "ownLink": "anna",
    });
    answers(&world, "/user/state", "200 OK", &body);
    let state = MemberState {
        is_registration_confirmed: true,
        lp1: true,
        addr: Some("0xA1".into()),
        own_link: Some("anna".into()),
        ..MemberState::default()
    };
    assert_eq!(world.remote.find_state(5).await.unwrap(), Some(state));
    assert_eq!(asked(&world), "GET /api/v2/bot/user/state?telegramId=5 HTTP/1.1");
}

#[tokio::test]
async fn a_link_comes_from_the_backend_that_knows_the_site() {
    let world = World::new().await;
    let link =
        json!({"url": "https://s.example/?telegramConnect=t", "token": "t", "expiresAt": "2026-11-30T09:30:00Z"});
    answers(&world, "/connect-link", "201 Created", &link);
    let expected = ConnectLink {
        url: "https://s.example/?telegramConnect=t".into(),
        token: "t".into(),
        expires_at: "2026-11-30T09:30:00Z".into(),
    };
    assert_eq!(world.remote.connect_link(5).await.unwrap(), Some(expected));
    answers(&world, "/connect-link", "503 Service Unavailable", &json!({"code": "site_url_not_set"}));
    assert_eq!(world.remote.connect_link(5).await.unwrap(), None, "it has no site");
    answers(&world, "/connect-link", "503 Service Unavailable", &json!({"code": "store_busy"}));
    assert!(matches!(world.remote.connect_link(5).await, Err(BackendError::Unreachable(_))));
}

async fn bind(world: &World) {
    let remote = world.remote.clone();
    let asked = world.db.write(move |tx| remote.bind(tx, 5, 7)).await.unwrap();
    assert_eq!(asked, None, "the answer comes later");
}

async fn pass(world: &World) -> Report {
    world.calls.run_once(&CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn the_bot_binds_at_another_backend() {
    let world = World::new().await;
    let remote = world.remote.clone();
    let undone = world.db.write(move |tx| remote.bind(tx, 5, 7).and(Err::<(), _>(StoreError::NoRow)));
    assert!(undone.await.is_err());
    assert!(world.ids("SELECT id FROM backend_calls").await.is_empty(), "it is wanted with its transaction");

    world
        .run("INSERT INTO bot_bind_prompts (telegram_id, magnet_uid, prompted_at, expires_at) VALUES (5, 7, 11, 99)")
        .await;
    for _ in 0..2 {
        bind(&world).await;
    }
    world.peer.fails("/telegram/bind", Fault::LoseAnswer);
    assert_eq!(pass(&world).await.again, 1);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(pass(&world).await, Report { done: 1, ..Report::default() });
    let sent = json!({"telegramId": "5", "magnetUid": 7});
    assert_eq!(world.peer.state().bindings, [sent.clone(), sent], "repeated until it is answered, and once a question");
    world.run("UPDATE bot_bind_prompts SET prompted_at = 12").await;
    bind(&world).await;
    assert_eq!(pass(&world).await.done, 1, "a later question is another call");
}

#[tokio::test]
async fn a_refused_binding_is_an_answer_and_not_repeated() {
    let world = World::new().await;
    bind(&world).await;
    answers(&world, "/telegram/bind", "409 Conflict", &json!({"code": "not_previewed"}));
    assert_eq!(pass(&world).await, Report { done: 1, ..Report::default() });
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(pass(&world).await, Report::default());
    assert!(world.peer.state().bindings.is_empty());
}

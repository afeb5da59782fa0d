//! The other pages: path, cabinet, console, settings, and who is no member.

use super::world;
use crate::kernel::contract::MemberState;
use crate::onboarding::dialog::Addresses;
use crate::onboarding::dialog::tests::{World, only};
use crate::onboarding::menu::{Metrics, metrics};

#[tokio::test]
async fn the_path_shows_what_is_done_and_leads_on() {
    let world = world().await;
    let said = only(world.taps(502, "m:path").await);
    assert!(said.text.starts_with("🧭 <b>My path</b>: stage 3 of 9"), "{said:?}");
    let marks: Vec<char> = said.text.lines().skip(2).map(|line| line.chars().next().unwrap()).collect();
    assert_eq!(marks, ['✅', '✅', '👉', '▫', '▫', '▫', '▫', '▫', '▫']);
    for (sql, next) in [
        ("UPDATE bot_users SET stage = 1 WHERE telegram_id = 502", Some("f:intro")),
        ("UPDATE bot_users SET stage = 4 WHERE telegram_id = 502", Some("f:video")),
        ("UPDATE bot_users SET stage = 5 WHERE telegram_id = 502", Some("f:site")),
        ("UPDATE bot_users SET stage = 7 WHERE telegram_id = 502", Some("f:site")),
        ("UPDATE bot_users SET stage = 8 WHERE telegram_id = 502", None),
    ] {
        world.run(sql).await;
        let said = only(world.taps(502, "m:path").await);
        let expected: Vec<String> = next.into_iter().chain(["m:menu"]).map(str::to_owned).collect();
        assert_eq!(said.buttons, expected, "{sql}");
    }
}

#[tokio::test]
async fn pages_for_members_send_others_to_the_site() {
    let world = world().await;
    for data in ["m:partners", "m:hot", "m:cabinet", "h:done:177:1"] {
        let said = only(world.taps(502, data).await);
        assert!(said.text.starts_with("This section opens once"), "{data}: {said:?}");
        assert_eq!(said.buttons, ["f:site", "m:menu"]);
    }
}

#[tokio::test]
async fn the_cabinet_counts_whom_the_leader_brought() {
    let world = World::with(Addresses { username: Some("example_bot".into()), ..Addresses::default() });
    world
        .run(
            "INSERT INTO bot_users (telegram_id, leader_uid, magnet_parent_uid, stage) VALUES
               (1, 77, NULL, 1), (2, 77, NULL, 5), (3, 77, 78, 8), (4, 77, NULL, 9), (5, 78, 77, 9), (6, NULL, 77, 9)",
        )
        .await;
    let found = world.db.read(|tx| metrics(tx, 77)).await.unwrap();
    assert_eq!(found, Metrics { in_bot: 4, watched: 3, registered: 2, nft: 1 });
    assert_eq!(world.db.read(|tx| metrics(tx, 99)).await.unwrap(), Metrics::default());
    // The backend knows who writes, before any event has told.
    *world.members.account.lock().unwrap() = Some(77);
    let state = MemberState { own_link: Some("carol".into()), ..MemberState::default() };
    *world.members.state.lock().unwrap() = Some(state);
    let said = only(world.says(177, "/start").await);
    assert!(said.text.contains("language"), "{said:?}");
    let said = only(world.taps(177, "m:cabinet").await);
    assert!(said.text.contains("In the bot: 4\nWatched the video: 3\nRegistered: 2\nActivated the NFT: 1"), "{said:?}");
    assert_eq!(said.buttons, ["-> https://t.me/example_bot?start=carol", "m:menu"]);
    assert_eq!(world.one::<i64>("SELECT magnet_uid FROM bot_users WHERE telegram_id = 177").await, 77);
}

#[tokio::test]
async fn the_console_opens_with_the_registration() {
    let world = World::with(Addresses { console: Some("https://console.example/".into()), ..Addresses::default() });
    *world.members.account.lock().unwrap() = Some(77);
    let said = only(world.taps(177, "m:console").await);
    assert!(said.text.starts_with("🔒") && said.buttons == ["f:site", "m:menu"], "{said:?}");
    let state =
        MemberState { addr: Some("0xA1B2000000000000000000000000000000C3D4CE".into()), ..MemberState::default() };
    *world.members.state.lock().unwrap() = Some(state.clone());
    assert!(only(world.taps(177, "m:console").await).text.starts_with("🔒"), "a wallet is no registration");
    let state = MemberState {
        is_registration_confirmed: true,
        lp1: true,
        time_active: Some("2026-11-30T00:00:00.000Z".into()),
        ..state
    };
    *world.members.state.lock().unwrap() = Some(state);
    let said = only(world.taps(177, "m:console").await);
    assert!(said.text.contains("level 1: active\nStatus NFT, level 2: none"), "{said:?}");
    assert!(said.text.contains("<code>0xA1B2…D4CE</code>") && said.text.contains("2026-11-30"), "{said:?}");
    assert_eq!(said.buttons, ["-> https://console.example/", "m:menu"]);
}

#[tokio::test]
async fn a_switch_pressed_twice_stays() {
    let world = world().await;
    for (data, column, back) in [
        ("s:urgent:0", "SELECT optin_urgent FROM bot_users WHERE telegram_id = 502", "s:urgent:1"),
        ("s:digest:0", "SELECT optin_digest FROM bot_users WHERE telegram_id = 502", "s:digest:1"),
        ("s:broadcast:0", "SELECT optin_broadcast FROM bot_users WHERE telegram_id = 502", "s:broadcast:1"),
    ] {
        assert!(only(world.taps(502, "m:settings").await).buttons.contains(&data.to_owned()));
        for _ in 0..2 {
            let said = only(world.taps(502, data).await);
            assert!(said.buttons.contains(&back.to_owned()) && !said.buttons.contains(&data.to_owned()), "{said:?}");
            assert_eq!(world.one::<i64>(column).await, 0, "{data}");
        }
    }
    assert_eq!(only(world.says(502, "/settings").await).buttons[..3], ["s:urgent:1", "s:digest:1", "s:broadcast:1"]);
    world.taps(502, "s:digest:1").await;
    let wanted = "SELECT optin_urgent || optin_digest || optin_broadcast FROM bot_users WHERE telegram_id = 502";
    assert_eq!(world.one::<String>(wanted).await, "010");
}

#[tokio::test]
async fn the_language_changes_with_the_tap() {
    let world = world().await;
    let said = only(world.taps(502, "s:lang:ru").await);
    assert!(said.text.contains("Настройки"), "{said:?}");
    assert!(only(world.taps(502, "m:menu").await).text.contains("Меню"));
    assert!(only(world.taps(502, "s:lang:en").await).text.contains("Settings"));
    assert_eq!(world.one::<i64>("SELECT stage FROM bot_users WHERE telegram_id = 502").await, 3, "that lifts nobody");
}

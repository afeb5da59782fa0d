//! Help: who is told, how often, and who is not.

use super::world;
use crate::onboarding::dialog::tests::{MINUTE, World, only};

/// How many messages are queued for this chat, and their kind.
async fn told(world: &World) -> i64 {
    world.one("SELECT COUNT(*) FROM telegram_messages WHERE chat_id = 177 AND kind = 'help'").await
}

#[tokio::test]
async fn ten_taps_are_one_message_to_the_leader() {
    let world = world().await;
    for tap in 0..10 {
        let said = world.taps(502, "m:help_ask").await;
        assert_eq!(said.len(), if tap == 0 { 2 } else { 1 }, "{said:?}");
        if tap == 0 {
            assert!(said[0].text.contains("<b>Person 502</b>") && said[0].text.contains("(@p502)"), "{said:?}");
            assert_eq!((said[0].buttons.clone(), said[0].edit), (vec!["+m:hot".to_owned()], None));
        }
        assert!(said.last().unwrap().text.starts_with("Your leader has been told"), "{said:?}");
    }
    assert_eq!(told(&world).await, 1);
    let (asked, since) = (
        "SELECT help_requested FROM bot_users WHERE telegram_id = 502",
        "SELECT help_requested_at FROM bot_users WHERE telegram_id = 502",
    );
    let began: i64 = world.one(since).await;
    world.advance(60 * MINUTE - 1);
    world.taps(502, "m:help_ask").await;
    assert_eq!(told(&world).await, 1);
    world.advance(1);
    world.taps(502, "m:help_ask").await;
    assert_eq!(told(&world).await, 2);
    // The request is as old as it was: whoever has waited longest stands first.
    assert_eq!((world.one::<i64>(asked).await, world.one::<i64>(since).await), (1, began));
    // The clock was set back: what was noted is yet to come, and silences nobody.
    world.run("UPDATE bot_users SET help_told_at = help_told_at + 7200000 WHERE telegram_id = 502").await;
    world.advance(1);
    world.taps(502, "m:help_ask").await;
    assert_eq!(told(&world).await, 3);
}

#[tokio::test]
async fn a_leader_who_cannot_be_told_finds_the_request_among_the_hot_leads() {
    for (sql, hot) in [
        ("UPDATE bot_users SET optin_urgent = 0 WHERE telegram_id = 177", true),
        ("UPDATE bot_users SET reachable = 'blocked' WHERE telegram_id = 177", true),
        ("UPDATE bot_users SET leader_uid = NULL WHERE telegram_id = 502", false),
        ("UPDATE bot_users SET leader_uid = 999 WHERE telegram_id = 502", false),
        ("UPDATE bot_users SET magnet_uid = 77, leader_uid = 77 WHERE telegram_id = 502; ", true),
    ] {
        let world = world().await;
        if sql.ends_with("; ") {
            // Their own leader: a row that only another program can have written.
            world.run("UPDATE bot_users SET magnet_uid = NULL WHERE telegram_id = 177").await;
        }
        world.run(sql.trim_end_matches("; ")).await;
        let said = only(world.taps(502, "m:help_ask").await);
        assert!(said.text.starts_with("Your question is noted"), "{sql}: {said:?}");
        assert_eq!(told(&world).await, 0, "{sql}");
        world.run("UPDATE bot_users SET magnet_uid = 77 WHERE telegram_id = 177").await;
        let list = only(world.taps(177, "m:hot").await);
        assert_eq!(list.text.contains("🆘 Person 502"), hot, "{sql}: {list:?}");
    }
}

#[tokio::test]
async fn the_leader_of_the_structure_is_told_and_not_who_brought_them() {
    let world = world().await;
    world.run("INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) VALUES (178, 78, 'ru', 9)").await;
    world.run("UPDATE bot_users SET magnet_parent_uid = 78 WHERE telegram_id = 502").await;
    let said = world.taps(502, "m:help_ask").await;
    assert!(said[0].text.contains("просит помощи"), "in the leader's own language: {said:?}");
    let chat: i64 = world.one("SELECT chat_id FROM telegram_messages WHERE kind = 'help'").await;
    assert_eq!(chat, 178);
}

//! Partners and hot leads: who is on which list, in which order, and whose they are.

use super::world;
use crate::onboarding::dialog::tests::{START, World, only};

/// Twenty-four more of Carol's structure: chats 601 to 624, who came one after the other.
async fn crowd() -> World {
    let world = world().await;
    world
        .run(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 24)
             INSERT INTO bot_users (telegram_id, leader_uid, first_name, stage, created_at, last_activity_at)
             SELECT 600 + n, 77, 'P' || n, 1 + n % 9, 2000000000000 + n, 1700000000000 - n * 3600000 * 3 FROM n",
        )
        .await;
    world
}

#[tokio::test]
async fn partners_are_listed_by_the_page_who_came_last_first() {
    let world = crowd().await;
    let said = only(world.taps(177, "m:partners").await);
    assert!(said.text.starts_with("👥 <b>Partners</b>: 25, page 1 of 3"), "{said:?}");
    assert!(said.text.contains("<b>P24</b>") && said.text.contains("<b>P15</b>") && !said.text.contains("<b>P14</b>"));
    assert_eq!(said.buttons, ["m:partners:2", "m:menu"]);
    let said = only(world.taps(177, "m:partners:2").await);
    assert_eq!(
        (said.buttons, said.edit),
        (["m:partners:1", "m:partners:3", "m:menu"].map(str::to_owned).to_vec(), Some(9))
    );
    // A page of a list that was longer once.
    let said = only(world.taps(177, "m:partners:9999").await);
    assert!(said.text.contains("page 3 of 3") && said.text.contains("<b>Bob</b>"), "{said:?}");
    assert_eq!(said.buttons, ["m:partners:2", "m:menu"]);
}

#[tokio::test]
async fn hot_are_those_who_ask_and_those_who_are_on_the_way_and_were_here_lately() {
    let world = crowd().await;
    world.run("UPDATE bot_users SET help_requested = 1, help_requested_at = 5 WHERE telegram_id = 624").await;
    world.run("UPDATE bot_users SET help_requested = 1, help_requested_at = 4 WHERE telegram_id = 607").await;
    let said = only(world.taps(177, "m:hot").await);
    let lines: Vec<&str> = said.text.lines().collect();
    // Stages 5 to 7 of the last 48 hours: P4, P5, P6, P13, P14, P15; P22 and on were here too long ago, P24 asks.
    let shown: Vec<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(shown, ["🆘 P7", "🆘 P24", "🔥 P4", "🔥 P5", "🔥 P6", "🔥 P13", "🔥 P14", "🔥 P15"]);
    assert_eq!(said.buttons, ["h:done:607:1", "h:done:624:1", "m:menu"], "only who asks can be seen to");
    let said = only(world.taps(177, "h:done:607:1").await);
    assert_eq!(said.buttons, ["h:done:624:1", "m:menu"]);
    assert!(said.text.starts_with("🔥 <b>Hot leads</b>: 7"), "{said:?}");
    let cleared =
        "SELECT COUNT(*) FROM bot_users WHERE telegram_id = 607 AND help_requested = 0 AND help_requested_at IS NULL";
    assert_eq!(world.one::<i64>(cleared).await, 1);
}

#[tokio::test]
async fn both_kinds_of_hot_leads_are_one_list_with_pages() {
    let world = crowd().await;
    world.run("UPDATE bot_users SET stage = 6, last_activity_at = 1700000000000 WHERE telegram_id > 600").await;
    world.run("UPDATE bot_users SET help_requested = 1, help_requested_at = telegram_id WHERE telegram_id BETWEEN 601 AND 612").await;
    let mut seen = Vec::new();
    for page in 1..=3 {
        let said = only(world.taps(177, &format!("m:hot:{page}")).await);
        assert!(said.text.starts_with(&format!("🔥 <b>Hot leads</b>: 24, page {page} of 3")), "{said:?}");
        seen.extend(said.text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()));
    }
    let asking = (1..=12).map(|n| format!("🆘 P{n}"));
    let warm = (13..=24).map(|n| format!("🔥 P{n}"));
    assert_eq!(seen, asking.chain(warm).collect::<Vec<_>>());
    assert_eq!(START, 1_700_000_000_000, "the activity above is of now");
}

#[tokio::test]
async fn another_leaders_lead_is_left_alone() {
    let world = world().await;
    world.run("UPDATE bot_users SET help_requested = 1, help_requested_at = 5, magnet_parent_uid = 78 WHERE telegram_id = 502").await;
    let said = only(world.taps(177, "h:done:502:1").await);
    assert!(said.text.contains("Nobody is waiting"), "{said:?}");
    let still: i64 = world.one("SELECT help_requested FROM bot_users WHERE telegram_id = 502").await;
    assert_eq!(still, 1, "they are in the structure of 78 now, whoever brought them");
}

#[tokio::test]
async fn a_hostile_name_costs_its_own_line_and_never_the_screen() {
    let world = world().await;
    world
        .run("UPDATE bot_users SET first_name = '<b>\u{202e}' || char(10) || hex(zeroblob(5000)), username = '\"><a' WHERE telegram_id = 502")
        .await;
    let said = only(world.taps(177, "m:partners").await);
    assert!(said.text.contains("<b>&lt;b&gt;\u{202e}000") && said.text.contains("@&quot;&gt;&lt;a"), "{said:?}");
    assert!(said.text.chars().count() < 400, "{said:?}");
}

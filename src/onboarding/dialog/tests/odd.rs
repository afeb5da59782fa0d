//! What is not understood, who is not talked to, and who can be written to.

use super::*;

#[tokio::test]
async fn who_is_not_understood_is_told_so_once_a_minute() {
    let world = World::new();
    let sticker = || What::Thing { message_id: 1 };
    let said = only(world.does(5, sticker()).await);
    assert!(said.text.starts_with("I understand only buttons"), "{said:?}");
    assert_eq!((said.buttons, said.edit), (vec!["m:menu".to_owned()], None));
    assert!(world.says(5, "hello?").await.is_empty());
    assert!(world.says(5, "/nonsense").await.is_empty());
    world.advance(MINUTE - 1);
    assert!(world.does(5, sticker()).await.is_empty());
    world.advance(1);
    assert_eq!(world.says(5, "hello?").await.len(), 1);
    // The clock was set back: what was noted is yet to come, and silences nobody.
    world.run("UPDATE bot_users SET puzzled_at = puzzled_at + 3600000").await;
    assert_eq!(world.says(5, "/nonsense").await.len(), 1);
}

#[tokio::test]
async fn a_stale_button_leads_to_the_menu_and_leaves_its_message_as_it_is() {
    let world = World::new();
    for data in ["x", "bind:77", "nobind:77", "m:nothing", ""] {
        let said = only(world.taps(5, data).await);
        assert!(said.text.starts_with("This button no longer works"), "{data}: {said:?}");
        assert_eq!((said.buttons, said.edit), (vec!["m:menu".to_owned()], None));
    }
}

#[tokio::test]
async fn who_is_not_talked_to_leaves_nothing_behind() {
    let world = World::new();
    let text = || What::Text { message_id: 1, text: "/start".into() };
    let person = || Input { chat_id: 5, place: Place::Private, author: Some(author(5)), what: text() };
    let inputs = [
        Input { chat_id: -100, place: Place::Group, ..person() },
        Input { chat_id: -100, place: Place::Channel, author: None, ..person() },
        Input { author: Some(Author { is_bot: true, ..author(5) }), ..person() },
        Input { author: Some(author(6)), ..person() },
        Input { what: What::Edited, ..person() },
        Input { what: What::Nothing, ..person() },
        Input { what: What::Membership(Membership::Gone), ..person() },
        Input { what: What::Membership(Membership::Member), ..person() },
        Input { chat_id: -100, place: Place::Group, what: What::Membership(Membership::Gone), ..person() },
    ];
    for input in inputs {
        let shown = format!("{input:?}");
        assert!(world.comes(input).await.is_empty(), "{shown}");
    }
    assert_eq!(world.one::<i64>("SELECT COUNT(*) FROM bot_users").await, 0);
}

#[tokio::test]
async fn only_start_and_membership_make_somebody_reachable() {
    let world = World::new();
    world.says(5, "/start").await;
    let reachable = "SELECT reachable FROM bot_users";
    for back in [What::Text { message_id: 2, text: "/start".into() }, What::Membership(Membership::Member)] {
        world.does(5, What::Membership(Membership::Gone)).await;
        assert_eq!(world.one::<String>(reachable).await, "blocked");
        world.says(5, "/menu").await;
        world.taps(5, "f:video").await;
        assert_eq!(world.one::<String>(reachable).await, "blocked");
        world.advance(MINUTE);
        world.does(5, back).await;
        assert_eq!(world.one::<String>(reachable).await, "ok");
        let since: i64 = world.one("SELECT reachable_since FROM bot_users").await;
        assert_eq!(since, world.clock.now());
    }
}

#[tokio::test]
async fn who_stops_gets_nothing_that_they_do_not_ask_for() {
    let world = World::new();
    let said = only(world.says(5, "/stop").await);
    assert!(said.text.starts_with("We will not write any more"), "{said:?}");
    assert_eq!(said.buttons, ["m:settings"]);
    let wanted: i64 = world.one("SELECT optin_urgent + optin_digest + optin_broadcast FROM bot_users").await;
    assert_eq!(wanted, 0);
}

#[tokio::test]
async fn activity_goes_with_what_came_in_and_never_back() {
    let world = World::new();
    world.says(5, "/start").await;
    world.advance(MINUTE);
    world.taps(5, "l:en").await;
    let activity = "SELECT last_activity_at FROM bot_users";
    assert_eq!(world.one::<i64>(activity).await, world.clock.now());
    world.run("UPDATE bot_users SET last_activity_at = last_activity_at + 3600000").await;
    world.taps(5, "f:video").await;
    assert_eq!(world.one::<i64>(activity).await, world.clock.now() + 3_600_000);
}

#[tokio::test]
async fn a_name_of_whatever_characters_is_shown_as_it_is_written() {
    let world = World::new();
    let name = format!("<b>&\"\u{202e}\n\u{7}{}", "\u{1f600}".repeat(300));
    let author = Author { first_name: name, lang: None, ..author(5) };
    let what = What::Text { message_id: 1, text: "/start".into() };
    let said = only(world.comes(Input { chat_id: 5, place: Place::Private, author: Some(author), what }).await);
    assert!(said.text.contains("&lt;b&gt;&amp;&quot;\u{202e}\u{1f600}"), "{said:?}");
    assert_eq!(world.one::<i64>("SELECT length(first_name) FROM bot_users").await, 200);
}

//! `/start`: who came, by whose link, and where they go on.

use super::*;

fn leader(uid: i64, link: &str, name: &str) -> Leader {
    Leader { uid, link: link.into(), name: Some(name.into()) }
}

#[tokio::test]
async fn a_person_who_comes_is_asked_for_their_language_in_their_own() {
    let world = World::new();
    let said = only(world.says(5, "/start").await);
    assert!(said.text.starts_with("Hello, Person 5!"), "{said:?}");
    assert_eq!((said.buttons, said.edit), (vec!["l:ru".to_owned(), "l:en".to_owned()], None));
    let row: String = world
        .one("SELECT stage || first_name || username || COALESCE(lang, '-') || last_activity_at FROM bot_users")
        .await;
    assert_eq!(row, format!("1Person 5p5-{START}"));
    assert!(world.stages().await.is_empty(), "nobody rises to the stage they begin at");
}

#[tokio::test]
async fn the_first_leader_stays() {
    let world = World::new();
    *world.members.leader.lock().unwrap() = Some(leader(77, "boris", "Boris\n<3"));
    assert_eq!(world.says(5, "/start boris").await.len(), 1);
    *world.members.leader.lock().unwrap() = Some(leader(88, "vera", "Vera"));
    world.says(5, "/start vera").await;
    assert_eq!(world.one::<i64>("SELECT leader_uid FROM bot_users").await, 77);
    let intro = only(world.taps(5, "l:en").await);
    assert!(intro.text.starts_with("<b>Boris&lt;3</b> has invited you."), "{intro:?}");
}

#[tokio::test]
async fn a_leader_whom_the_backend_has_no_name_for_is_called_as_they_call_themselves() {
    let world = World::new();
    world.run("INSERT INTO bot_users (telegram_id, magnet_uid, first_name) VALUES (177, 77, 'Boris')").await;
    *world.members.leader.lock().unwrap() = Some(Leader { name: None, ..leader(77, "boris", "") });
    world.says(5, "/start boris").await;
    let intro = only(world.taps(5, "l:en").await);
    assert!(intro.text.starts_with("<b>Boris</b>"), "{intro:?}");
}

#[tokio::test]
async fn a_code_that_is_no_link_is_said_once_and_the_way_goes_on() {
    let world = World::new();
    let said = world.says(5, "/start nobody").await;
    assert_eq!(said.len(), 2);
    assert!(said[0].text.starts_with("The link") && said[0].buttons.is_empty(), "{said:?}");
    assert_eq!(said[1].buttons, ["l:ru", "l:en"]);
    assert_eq!(world.members.asked(), ["leader nobody", "account 5"]);
    for code in ["Борис", &"x".repeat(65), "a b", "a&b"] {
        assert_eq!(world.says(5, &format!("/start {code}")).await.len(), 2, "{code}");
        assert_eq!(world.members.asked(), ["account 5"], "nobody asks the backend for {code}");
    }
}

#[tokio::test]
async fn nobody_leads_themselves() {
    let world = World::new();
    *world.members.leader.lock().unwrap() = Some(leader(77, "me", "Me"));
    *world.members.account.lock().unwrap() = Some(77);
    assert_eq!(world.says(5, "/start me").await.len(), 1);
    let row: String = world.one("SELECT magnet_uid || COALESCE(leader_uid, '-') FROM bot_users").await;
    assert_eq!(row, "77-");
}

#[tokio::test]
async fn a_member_goes_on_where_the_backend_knows_them_to_be() {
    let state = |addr: &str, confirmed, lp2| MemberState {
        addr: Some(addr.into()),
        is_registration_confirmed: confirmed,
        lp2,
        ..MemberState::default()
    };
    let cases =
        [(state("", false, false), 1, 0), (state("0xA1", false, false), 7, 1), (state("0xA1", true, false), 8, 1)];
    for (state, stage, events) in cases {
        let world = World::new();
        *world.members.account.lock().unwrap() = Some(77);
        *world.members.state.lock().unwrap() = Some(state);
        world.says(5, "/start").await;
        assert_eq!(world.members.asked(), ["account 5", "state 5"]);
        assert_eq!((world.stage().await, world.stages().await.len()), (stage, events));
        world.says(5, "/start").await;
        assert_eq!(world.stages().await.len(), events, "it is one rise, and once");
    }
    let world = World::new();
    *world.members.account.lock().unwrap() = Some(77);
    *world.members.state.lock().unwrap() = Some(state("0xA1", true, true));
    world.says(5, "/start").await;
    assert_eq!(world.stages().await, ["1>9"]);
}

#[tokio::test]
async fn who_comes_again_is_shown_the_step_that_comes_next() {
    let world = World::new();
    world.says(5, "/start").await;
    world.run("UPDATE bot_users SET lang = 'en'").await;
    let cases = [
        (1, vec!["f:video"], 3),
        (2, vec!["f:video"], 3),
        (3, vec!["f:video"], 3),
        (4, vec!["-> https://video.example/", "f:watched"], 4),
        (5, vec!["f:site"], 5),
        (6, vec!["f:site"], 6),
        (7, vec!["f:site"], 7),
    ];
    for (stage, buttons, after) in cases {
        let set = move |tx: &Tx<'_>| tx.execute("UPDATE bot_users SET stage = ?1", [stage]);
        world.db.write(set).await.unwrap();
        let said = only(world.says(5, "/start").await);
        assert_eq!((said.buttons, world.stage().await), (buttons.into_iter().map(str::to_owned).collect(), after));
        assert_eq!(said.text.starts_with("Your wallet is connected."), stage == 7, "{}", said.text);
    }
}

//! The steps of the way, with and without a video and a site.

use super::*;
use crate::onboarding::dialog::steps::next_data;

#[tokio::test]
async fn the_way_leads_from_the_language_to_the_site() {
    let world = World::new();
    world.says(5, "/start").await;
    let steps = [
        ("l:en", "In five minutes", vec!["f:video"]),
        ("f:video", "Watch the video", vec!["-> https://video.example/", "f:watched"]),
        ("f:watched", "Great!", vec!["f:site"]),
        ("f:site", "This link is yours", vec![LINK, "f:site"]),
    ];
    for (data, text, buttons) in steps {
        let said = only(world.taps(5, data).await);
        assert!(said.text.starts_with(text), "{data}: {said:?}");
        assert_eq!((said.buttons, said.edit), (buttons.into_iter().map(str::to_owned).collect(), Some(9)), "{data}");
    }
    assert_eq!(world.stages().await, ["1>2", "2>3", "3>4", "4>5", "5>6"]);
    assert_eq!(world.members.asked(), ["account 5", "link 5"], "no step asks for more than it needs");
}

const LINK: &str = "-> https://site.example/?t=6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

#[tokio::test]
async fn a_step_pressed_again_lifts_nothing() {
    let world = World::new();
    world.says(5, "/start").await;
    for data in ["l:en", "f:video", "f:watched", "f:site"] {
        world.taps(5, data).await;
    }
    let before = world.stages().await;
    for (data, buttons) in [("f:intro", 1), ("f:video", 2), ("f:watched", 1), ("f:site", 2), ("l:ru", 1)] {
        let said = only(world.taps(5, data).await);
        assert_eq!((said.buttons.len(), said.edit), (buttons, Some(9)), "{data}");
    }
    assert_eq!((world.stage().await, world.stages().await), (6, before));
}

#[tokio::test]
async fn a_plus_asks_for_a_message_of_its_own_and_so_does_one_too_old_to_be_changed() {
    let world = World::new();
    assert_eq!(only(world.taps(5, "+f:video").await).edit, None);
    let old = What::Tap { data: Some("f:video".into()), message_id: None };
    assert_eq!(only(world.does(5, old).await).edit, None);
    assert_eq!(only(world.taps(5, "f:video").await).edit, Some(9));
}

#[tokio::test]
async fn without_a_video_the_introduction_leads_to_the_site() {
    let world = World::with(Addresses { has_site: true, ..Addresses::default() });
    world.says(5, "/start").await;
    assert_eq!(only(world.taps(5, "l:en").await).buttons, ["f:site"]);
    // A button of a time when there was one.
    assert_eq!(only(world.taps(5, "f:video").await).buttons, ["f:site"]);
    assert_eq!(world.stage().await, 3);
    assert_eq!(only(world.taps(5, "f:site").await).buttons, [LINK, "f:site"]);
    assert_eq!(world.stages().await, ["1>2", "2>3", "3>6"]);
}

#[tokio::test]
async fn without_a_site_nobody_is_told_of_one() {
    let world = World::with(Addresses::default());
    *world.members.link.lock().unwrap() = None;
    world.says(5, "/start").await;
    assert_eq!(only(world.taps(5, "l:en").await).buttons, ["m:menu"]);
    for data in ["f:watched", "f:site"] {
        let said = only(world.taps(5, data).await);
        assert!(said.text.starts_with("The site cannot be reached"), "{data}: {said:?}");
        assert_eq!(said.buttons, ["m:menu"]);
    }
    assert_eq!(world.stage().await, 5, "nobody has opened it");
}

#[tokio::test]
async fn a_language_chosen_again_goes_on_where_the_person_is() {
    let world = World::new();
    world.says(5, "/start").await;
    world.run("UPDATE bot_users SET lang = 'ru', stage = 5").await;
    let asked = only(world.says(5, "/language").await);
    assert!(asked.text.starts_with("Здравствуйте, Person 5!"), "{asked:?}");
    let said = only(world.taps(5, "l:en").await);
    assert!(said.text.starts_with("Great!"), "{said:?}");
    assert_eq!(world.one::<String>("SELECT lang FROM bot_users").await, "en");
}

#[tokio::test]
async fn what_a_reminder_offers_is_a_button_of_this_bot() {
    let world = World::new();
    for stage in 1..=9 {
        let input = Input {
            chat_id: 5,
            place: Place::Private,
            author: Some(author(5)),
            what: What::Tap { data: Some(next_data(stage).into()), message_id: Some(9) },
        };
        let (command, to) = command_of(&input);
        assert_ne!(command, Command::Stale, "stage {stage}");
        assert_eq!(to, super::super::command::Where::New, "a reminder stays as it is");
        world.comes(input).await;
    }
}

#[tokio::test]
async fn a_link_is_told_how_long_it_still_holds() {
    let world = World::new();
    let cases =
        [(START + 30 * 60_000, " It is valid for 30 min."), (START + 60_001, " It is valid for 2 min."), (START, "")];
    for (expires_at, said) in cases {
        let link = world.members.link.lock().unwrap().take().unwrap();
        let expires_at = crate::kernel::clock::rfc3339(expires_at);
        *world.members.link.lock().unwrap() = Some(ConnectLink { expires_at, ..link });
        let author = Author { lang: Some("en".into()), ..author(5) };
        let what = What::Tap { data: Some("f:site".into()), message_id: Some(9) };
        let shown = only(world.comes(Input { chat_id: 5, place: Place::Private, author: Some(author), what }).await);
        assert_eq!(shown.text, format!("This link is yours alone.{said}"));
    }
}

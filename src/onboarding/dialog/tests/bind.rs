//! The bind prompt, answered: here, elsewhere, twice, too late.

use super::super::bind::{Answer, answered, ask};
use super::*;
use crate::onboarding::sql::find_person;

/// A person of the bot, who is asked whether they are member 77.
async fn asked() -> World {
    let world = World::new();
    world.run("INSERT INTO bot_users (telegram_id, lang, stage) VALUES (5, 'en', 7)").await;
    prompt(&world).await;
    world
}

async fn prompt(world: &World) {
    let dialog = Arc::clone(&world.dialog);
    let asking = move |tx: &Tx<'_>| {
        let person = find_person(tx, 5)?.expect("a person");
        ask(tx, &dialog.content, &person, 77)
    };
    let drawn = world.db.write(asking).await.unwrap();
    assert_eq!(buttons(&serde_json::to_string(&drawn.keyboard).unwrap()), ["bind:77", "nobind:77"]);
}

async fn outcome(world: &World) -> String {
    world.one("SELECT COALESCE(outcome, 'open') FROM bot_bind_prompts WHERE telegram_id = 5").await
}

async fn member(world: &World) -> Option<i64> {
    world.one("SELECT magnet_uid FROM bot_users WHERE telegram_id = 5").await
}

#[tokio::test]
async fn a_confirmed_chat_is_the_members_and_is_told_so_as_often_as_it_asks() {
    let world = asked().await;
    *world.members.bound.lock().unwrap() = Some(Bound::Now);
    let said = only(world.taps(5, "bind:77").await);
    assert!(said.text.starts_with("Done! This chat is tied") && said.edit == Some(9), "{said:?}");
    assert_eq!((member(&world).await, outcome(&world).await), (Some(77), "bound".to_owned()));
    *world.members.bound.lock().unwrap() = Some(Bound::Before);
    world.advance(2 * DAY);
    assert_eq!(only(world.taps(5, "bind:77").await).text, said.text);
    // The other prompt of the same account, pressed by mistake.
    assert_eq!(only(world.taps(5, "nobind:77").await).text, said.text);
    assert_eq!(member(&world).await, Some(77));
}

#[tokio::test]
async fn what_the_backend_refuses_is_no_binding_and_is_not_asked_again() {
    let world = asked().await;
    *world.members.bound.lock().unwrap() = Some(Bound::Refused);
    for _ in 0..2 {
        let said = only(world.taps(5, "bind:77").await);
        assert!(said.text.contains("could not be tied"), "{said:?}");
        assert_eq!(said.buttons, ["f:site"]);
    }
    assert_eq!((member(&world).await, outcome(&world).await), (None, "changed".to_owned()));
    assert_eq!(world.members.asked(), ["bind 5 77"]);
    // A new link is a new question.
    prompt(&world).await;
    *world.members.bound.lock().unwrap() = Some(Bound::Now);
    world.taps(5, "bind:77").await;
    assert_eq!(member(&world).await, Some(77));
}

#[tokio::test]
async fn who_says_no_is_not_bound_and_may_still_say_yes() {
    let world = asked().await;
    let said = only(world.taps(5, "nobind:77").await);
    assert!(said.text.contains("is not tied"), "{said:?}");
    assert_eq!((member(&world).await, outcome(&world).await), (None, "refused".to_owned()));
    assert!(world.members.asked().is_empty());
    *world.members.bound.lock().unwrap() = Some(Bound::Now);
    world.taps(5, "bind:77").await;
    assert_eq!(outcome(&world).await, "bound");
}

#[tokio::test]
async fn an_expired_prompt_binds_nothing() {
    let world = asked().await;
    *world.members.bound.lock().unwrap() = Some(Bound::Now);
    world.advance(DAY);
    let said = only(world.taps(5, "bind:77").await);
    assert!(said.text.starts_with("This question was asked more than a day ago"), "{said:?}");
    assert_eq!(said.buttons, ["f:site"]);
    assert!(world.members.asked().is_empty());
    assert_eq!(member(&world).await, None);
}

#[tokio::test]
async fn a_backend_elsewhere_is_asked_once_and_its_answer_is_told() {
    let answers = [
        (Answer::Is(Bound::Now), "Done!", Some(77), "bound"),
        (Answer::Is(Bound::Before), "Done!", Some(77), "bound"),
        (Answer::Is(Bound::Refused), "Magnet account No. 77 could not", None, "changed"),
        (Answer::None, "This question was asked more", None, "changed"),
    ];
    for (answer, text, uid, ends) in answers {
        let world = asked().await;
        for _ in 0..2 {
            assert!(only(world.taps(5, "bind:77").await).text.starts_with("We are asking the site"));
        }
        assert_eq!((world.members.asked(), outcome(&world).await), (vec!["bind 5 77".to_owned()], "asked".to_owned()));
        let dialog = Arc::clone(&world.dialog);
        world.db.write(move |tx| answered(tx, &dialog, 5, 77, answer)).await.unwrap();
        let said = only(world.said().await);
        assert!(said.text.starts_with(text) && said.edit.is_none(), "{said:?}");
        assert_eq!((member(&world).await, outcome(&world).await), (uid, ends.to_owned()));
    }
}

#[tokio::test]
async fn nobody_answers_a_prompt_of_another_chat() {
    let world = asked().await;
    let said = only(world.taps(6, "bind:77").await);
    assert!(said.text.starts_with("This button no longer works"), "{said:?}");
    assert!(world.members.asked().is_empty());
}

//! Every screen in every language with the worst values there can be: what Telegram would refuse is found here.

use std::collections::BTreeSet;

use super::*;
use crate::chat::{Action, Author, Input, Place, What, plain_text};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, Tx};
use crate::onboarding::Error;
use crate::onboarding::content::blocks::{BLOCKS, Value};
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::dialog::{Command, command_of};

/// The longest id that a chat or a member can have.
const LONGEST_ID: i64 = i64::MAX;
/// As long as a name is kept, of what is written with the most characters.
const WORST: &str = "<&>\"\u{202e}\u{1f600}";

/// What a block may name, each as bad as it gets.
fn worst_values(key: &str) -> Values {
    let mut values = Values::none();
    let block = BLOCKS.iter().flat_map(|blocks| *blocks).find(|block| block.key == key);
    for value in block.unwrap_or_else(|| panic!("{key} is described nowhere")).values {
        match value {
            Value::Text { name, .. } => values.set(name, &WORST.repeat(33)),
            Value::Switch { name } => values.set_switch(name, true),
            // The view has them.
            Value::Items => {}
        }
    }
    values
}

/// A view with everything on it that the screen can show.
fn worst_view(screen: &Screen) -> View {
    let flags: Flags = [Flag::Asking, Flag::OptinUrgent, Flag::OptinDigest, Flag::OptinBroadcast].into();
    let each = screen.rows.iter().find_map(|row| match row {
        Row::Each(button) => Some(worst_values(button.label)),
        Row::Of(_) | Row::Pages(_) => None,
    });
    let item = |n: i64| Item {
        id: LONGEST_ID - n,
        line: "\u{1f600}".repeat(300),
        values: each.clone().unwrap_or_default(),
        flags: flags.clone(),
    };
    let mut values = worst_values(screen.text);
    for button in buttons(screen) {
        values.add(worst_values(button.label));
    }
    View {
        values,
        items: (0..10).map(item).collect(),
        page: Some((9_998, 9_999)),
        addresses: [Address::Video, Address::Site, Address::Console, Address::Invite]
            .map(|address| (address, "https://example.org/".to_owned()))
            .into(),
        flags,
    }
}

fn buttons(screen: &Screen) -> Vec<&'static Btn> {
    let of = |row: &Row| match row {
        Row::Of(buttons) => buttons.iter().collect(),
        Row::Each(_) | Row::Pages(_) => Vec::new(),
    };
    screen.rows.iter().flat_map(of).collect()
}

fn check(tx: &Tx<'_>, content: &Content, lang: Lang, screen: &Screen, view: &View) -> Result<(), Error> {
    let name = screen.name;
    let drawn = draw(tx, content, Some(lang), screen, view)?;
    let length = plain_text(&drawn.text).encode_utf16().count();
    assert!((1..=4096).contains(&length), "{name}: {length} UTF-16 units");
    drawn.keyboard.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(drawn.keyboard.0.iter().flatten().count() <= 100, "{name} has too many buttons");
    for button in drawn.keyboard.0.iter().flatten() {
        let length = button.text.chars().count();
        assert!((1..=64).contains(&length) && !button.text.contains('\n'), "{name}: {}", button.text);
        if let Action::Data(data) = &button.action {
            assert!(data.len() <= 64 && data.is_ascii(), "{name}: {data}");
            assert_ne!(pressed(data), Command::Stale, "{name}: {data}");
        }
    }
    Ok(())
}

/// What the bot takes this button for.
fn pressed(data: &str) -> Command {
    let author = Author { id: 5, is_bot: false, first_name: "A".into(), username: None, lang: None };
    let what = What::Tap { data: Some(data.to_owned()), message_id: Some(1) };
    command_of(&Input { chat_id: 5, place: Place::Private, author: Some(author), what }).0
}

#[tokio::test]
async fn every_screen_can_be_sent_with_the_worst_values_there_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::stopped_at(1_000);
    let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock, vec![]).unwrap();
    let content = Content::shipped(Lang::Ru).unwrap();
    let all = move |tx: &Tx<'_>| {
        for screen in SCREENS.iter().flat_map(|screens| *screens) {
            for lang in Lang::ALL {
                check(tx, &content, lang, screen, &worst_view(screen))?;
                let bare = View { items: Vec::new(), page: None, flags: Flags::new(), ..worst_view(screen) };
                check(tx, &content, lang, screen, &bare)?;
            }
        }
        Ok::<_, Error>(())
    };
    db.read(all).await.unwrap();
}

#[test]
fn every_screen_has_a_name_of_its_own() {
    let all = SCREENS.iter().flat_map(|screens| *screens);
    let names: BTreeSet<&str> = all.clone().map(|screen| screen.name).collect();
    assert_eq!(names.len(), all.count());
}

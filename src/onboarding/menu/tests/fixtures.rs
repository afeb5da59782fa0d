//! What the conversations of `fixtures/telegram` have to have: each button of the menu, pressed in both languages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::onboarding::screens::menu::SCREENS;
use crate::onboarding::screens::{Act, Row};

/// The data that the buttons of the menu's screens send, without the mark of a message that stays.
fn data() -> BTreeSet<&'static str> {
    let of = |row: &'static Row| match row {
        Row::Of(buttons) => buttons.iter().collect(),
        Row::Each(button) => vec![*button],
        Row::Pages(_) => Vec::new(),
    };
    let acts = SCREENS.iter().flat_map(|screen| screen.rows).flat_map(of).map(|button| button.act);
    let sent = acts.filter_map(|act| match act {
        Act::Data(data) | Act::Item(data) | Act::Id(data) => Some(data.trim_start_matches('+')),
        Act::Open(_) => None,
    });
    sent.filter(|data| !data.starts_with("f:")).collect()
}

/// The data that somebody sends in this conversation, by a button's name or as they are.
fn sent_in(conversation: &str) -> BTreeSet<String> {
    let mut sent = BTreeSet::new();
    for tap in conversation.lines().filter(|line| line.starts_with("> ")).filter_map(|line| line.split_once(" taps ")) {
        if let Some(data) = tap.1.strip_prefix("data ") {
            sent.insert(data.trim_start_matches('+').to_owned());
        } else if let Some(label) = tap.1.split('"').nth(1) {
            let shown = conversation.split('[').filter_map(|rest| rest.split(']').next()?.split_once(" · "));
            sent.extend(
                shown.filter(|(name, _)| *name == label).map(|(_, data)| data.trim_start_matches('+').to_owned()),
            );
        }
    }
    sent
}

#[test]
fn every_button_of_the_menu_is_pressed_in_a_conversation_of_each_language() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/telegram");
    for ending in ["_ru.txt", "_en.txt"] {
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.to_string_lossy().ends_with(ending));
        let sent: BTreeSet<String> = files.flat_map(|path| sent_in(&fs::read_to_string(path).unwrap())).collect();
        let missing: Vec<&str> =
            data().into_iter().filter(|data| !sent.iter().any(|sent| sent.starts_with(data))).collect();
        assert!(missing.is_empty(), "{ending}: nobody presses {missing:?}");
    }
}

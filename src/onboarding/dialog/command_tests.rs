//! The language of commands and buttons, sentence by sentence and turned back.

use proptest::prelude::*;

use super::*;
use crate::chat::Author;

/// The data of a button that asks for this; `None` for what no button asks for.
fn write_data(command: &Command) -> Option<String> {
    let on = |value: bool| u8::from(value);
    Some(match *command {
        Command::Choose(lang) => format!("l:{}", lang.as_str()),
        Command::Step(Step::Intro) => "f:intro".into(),
        Command::Step(Step::Video) => "f:video".into(),
        Command::Step(Step::Watched) => "f:watched".into(),
        Command::Step(Step::Site) => "f:site".into(),
        Command::Bind(uid) => format!("bind:{uid}"),
        Command::NoBind(uid) => format!("nobind:{uid}"),
        Command::Show(Page::Menu) => "m:menu".into(),
        Command::Show(Page::Path) => "m:path".into(),
        Command::Show(Page::Partners(page)) => format!("m:partners:{page}"),
        Command::Show(Page::Hot(page)) => format!("m:hot:{page}"),
        Command::Show(Page::Cabinet) => "m:cabinet".into(),
        Command::Show(Page::Console) => "m:console".into(),
        Command::Show(Page::Settings) => "m:settings".into(),
        Command::Show(Page::Help) => "m:help".into(),
        Command::AskHelp => "m:help_ask".into(),
        Command::Handled { lead, page } => format!("h:done:{lead}:{page}"),
        Command::Set(Setting::Lang(lang)) => format!("s:lang:{}", lang.as_str()),
        Command::Set(Setting::Urgent(value)) => format!("s:urgent:{}", on(value)),
        Command::Set(Setting::Digest(value)) => format!("s:digest:{}", on(value)),
        Command::Set(Setting::Broadcast(value)) => format!("s:broadcast:{}", on(value)),
        _ => return None,
    })
}

fn commands() -> impl Strategy<Value = Command> {
    let lang = || prop_oneof![Just(Lang::Ru), Just(Lang::En)];
    let step = prop_oneof![Just(Step::Intro), Just(Step::Video), Just(Step::Watched), Just(Step::Site)];
    let page = || 1..=LAST_PAGE;
    let pages = prop_oneof![
        Just(Page::Menu),
        Just(Page::Path),
        page().prop_map(Page::Partners),
        page().prop_map(Page::Hot),
        Just(Page::Cabinet),
        Just(Page::Console),
        Just(Page::Settings),
        Just(Page::Help),
    ];
    let setting = prop_oneof![
        lang().prop_map(Setting::Lang),
        any::<bool>().prop_map(Setting::Urgent),
        any::<bool>().prop_map(Setting::Digest),
        any::<bool>().prop_map(Setting::Broadcast),
    ];
    prop_oneof![
        lang().prop_map(Command::Choose),
        step.prop_map(Command::Step),
        (1..=i64::MAX).prop_map(Command::Bind),
        (1..=i64::MAX).prop_map(Command::NoBind),
        pages.prop_map(Command::Show),
        setting.prop_map(Command::Set),
        Just(Command::AskHelp),
        (1..=i64::MAX, page()).prop_map(|(lead, page)| Command::Handled { lead, page }),
    ]
}

proptest! {
    #[test]
    fn what_a_button_asks_for_is_what_was_meant(command in commands(), is_own: bool, message_id in 1_i64..1_000_000) {
        let data = write_data(&command).expect("a button asks for it");
        let data = if is_own { format!("+{data}") } else { data };
        prop_assert!(data.len() <= 64 && data.is_ascii());
        let to = if is_own { Where::New } else { Where::Edit(message_id) };
        prop_assert_eq!(read_tap(&data, Some(message_id)), (command.clone(), to));
        prop_assert_eq!(read_tap(&data, None), (command, Where::New));
    }

    #[test]
    fn any_other_data_are_stale_and_no_text_breaks_anything(text: String) {
        let (command, to) = read_tap(&text, Some(1));
        let bare = text.strip_prefix('+').unwrap_or(&text);
        match write_data(&command) {
            Some(again) => prop_assert!(again == bare || again.strip_suffix(":1") == Some(bare)),
            None => prop_assert_eq!((command, to), (Command::Stale, Where::New)),
        }
        read_text(&text);
    }
}

#[test]
fn numbers_that_we_do_not_write_are_stale() {
    for data in ["bind:0", "bind:-7", "bind:+7", "bind:07", "bind:", "bind:7:8", "bind:9223372036854775808"] {
        assert_eq!(read_tap(data, Some(1)).0, Command::Stale, "{data}");
    }
    for data in ["m:partners:0", "m:partners:10000", "m:hot:1:2", "s:digest:2", "s:lang:de", "h:done:5", "++m:menu", ""]
    {
        assert_eq!(read_tap(data, Some(1)).0, Command::Stale, "{data}");
    }
    assert_eq!(read_tap("+h:done:9007199254740993:9999", Some(5)).1, Where::New);
}

#[test]
fn commands_are_read_as_people_write_them() {
    let cases = [
        ("/start", Command::Start(None)),
        ("/start boris", Command::Start(Some("boris".into()))),
        ("  /START@Some_Bot \n boris ", Command::Start(Some("boris".into()))),
        ("/menu", Command::Show(Page::Menu)),
        ("/Settings please", Command::Show(Page::Settings)),
        ("/help", Command::Show(Page::Help)),
        ("/language", Command::Language),
        ("/stop", Command::Stop),
        ("/", Command::Unknown),
        ("/starting", Command::Unknown),
        ("/\u{43c}\u{435}\u{43d}\u{44e}", Command::Unknown),
        ("start", Command::Text),
        ("", Command::Text),
    ];
    for (text, command) in cases {
        assert_eq!(read_text(text), command, "{text}");
    }
}

fn input(place: Place, author: Option<(i64, bool)>, what: What) -> Input {
    let author = author.map(|(id, is_bot)| Author { id, is_bot, first_name: "A".into(), username: None, lang: None });
    Input { chat_id: 5, place, author, what }
}

#[test]
fn only_the_person_of_a_private_chat_is_heard() {
    let menu = || What::Text { message_id: 1, text: "/menu".into() };
    let tap = || What::Tap { data: Some("m:menu".into()), message_id: Some(1) };
    let heard = |input: &Input| command_of(input).0 != Command::Silence;
    assert!(heard(&input(Place::Private, Some((5, false)), menu())));
    for what in [menu(), tap()] {
        assert!(!heard(&input(Place::Group, Some((5, false)), what.clone())));
        assert!(!heard(&input(Place::Channel, None, what.clone())));
        assert!(!heard(&input(Place::Private, Some((5, true)), what.clone())));
        assert!(!heard(&input(Place::Private, Some((6, false)), what.clone())));
        assert!(!heard(&input(Place::Private, None, what)));
    }
    assert!(!heard(&input(Place::Private, Some((5, false)), What::Edited)));
    assert!(!heard(&input(Place::Private, Some((5, false)), What::Nothing)));
    assert!(!heard(&input(Place::Group, Some((5, false)), What::Membership(Membership::Gone))));
    let gone = command_of(&input(Place::Private, None, What::Membership(Membership::Gone)));
    assert_eq!(gone.0, Command::Membership(Membership::Gone));
    let nameless = command_of(&input(Place::Private, Some((5, false)), What::Tap { data: None, message_id: Some(1) }));
    assert_eq!(nameless, (Command::Stale, Where::New));
}

//! The screens behind the menu's buttons.

use super::steps::{data, open};
use super::{Act, Address, Btn, Flag, Row, Screen, When};

const fn switch(label: &'static str, to: &'static str, when: When) -> Btn {
    Btn { label, act: Act::Data(to), when }
}

const BACK: Row = Row::Of(&[data("menu_button", "m:menu")]);

/// The menu itself.
pub(crate) const MENU: Screen = Screen {
    name: "menu",
    text: "menu",
    rows: &[
        Row::Of(&[data("menu_path_button", "m:path")]),
        Row::Of(&[data("menu_partners_button", "m:partners"), data("menu_hot_button", "m:hot")]),
        Row::Of(&[data("menu_cabinet_button", "m:cabinet"), data("menu_console_button", "m:console")]),
        Row::Of(&[data("menu_settings_button", "m:settings"), data("menu_help_button", "m:help")]),
    ],
};

/// How far a person is; this one has done all that can be done here.
pub(crate) const PATH: Screen = Screen { name: "path", text: "path", rows: &[BACK] };

/// The same of whom the introduction comes next.
pub(crate) const PATH_TO_INTRO: Screen =
    Screen { name: "path_to_intro", text: "path", rows: &[Row::Of(&[data("path_next_button", "f:intro")]), BACK] };

/// The same of whom the video comes next.
pub(crate) const PATH_TO_VIDEO: Screen =
    Screen { name: "path_to_video", text: "path", rows: &[Row::Of(&[data("path_next_button", "f:video")]), BACK] };

/// The same of whom the site comes next.
pub(crate) const PATH_TO_SITE: Screen =
    Screen { name: "path_to_site", text: "path", rows: &[Row::Of(&[data("path_next_button", "f:site")]), BACK] };

/// Whom a member has in their structure.
pub(crate) const PARTNERS: Screen =
    Screen { name: "partners", text: "partners", rows: &[Row::Pages("m:partners"), BACK] };

/// There is nobody.
pub(crate) const NO_PARTNERS: Screen = Screen { name: "no_partners", text: "partners_none", rows: &[BACK] };

/// Who of the structure waits for an answer, and who is on the way right now.
pub(crate) const HOT: Screen = Screen {
    name: "hot",
    text: "hot",
    rows: &[
        Row::Each(&Btn { label: "hot_handled_button", act: Act::Item("h:done"), when: When::Is(Flag::Asking) }),
        Row::Pages("m:hot"),
        BACK,
    ],
};

/// Nobody does.
pub(crate) const NOBODY_HOT: Screen = Screen { name: "nobody_hot", text: "hot_none", rows: &[BACK] };

/// A member's numbers and link.
pub(crate) const CABINET: Screen = Screen {
    name: "cabinet",
    text: "cabinet",
    rows: &[Row::Of(&[open("cabinet_link_button", Address::Invite)]), BACK],
};

/// The way to the console.
pub(crate) const CONSOLE: Screen = Screen {
    name: "console",
    text: "console",
    rows: &[Row::Of(&[open("console_open_button", Address::Console)]), BACK],
};

/// The console opens with the registration.
pub(crate) const CONSOLE_LOCKED: Screen =
    Screen { name: "console_locked", text: "console_locked", rows: &[Row::Of(&[data("site_button", "f:site")]), BACK] };

/// Language and the three opt-ins. A switch names the value that it leads to: pressed twice it is the same.
pub(crate) const SETTINGS: Screen = Screen {
    name: "settings",
    text: "settings",
    rows: &[
        Row::Of(&[
            switch("settings_urgent_on_button", "s:urgent:0", When::Is(Flag::OptinUrgent)),
            switch("settings_urgent_off_button", "s:urgent:1", When::Not(Flag::OptinUrgent)),
        ]),
        Row::Of(&[
            switch("settings_digest_on_button", "s:digest:0", When::Is(Flag::OptinDigest)),
            switch("settings_digest_off_button", "s:digest:1", When::Not(Flag::OptinDigest)),
        ]),
        Row::Of(&[
            switch("settings_broadcast_on_button", "s:broadcast:0", When::Is(Flag::OptinBroadcast)),
            switch("settings_broadcast_off_button", "s:broadcast:1", When::Not(Flag::OptinBroadcast)),
        ]),
        Row::Of(&[data("choose_language_ru_button", "s:lang:ru"), data("choose_language_en_button", "s:lang:en")]),
        BACK,
    ],
};

/// Help, before it is asked for.
pub(crate) const HELP: Screen =
    Screen { name: "help", text: "help", rows: &[Row::Of(&[data("help_ask_button", "m:help_ask")]), BACK] };

/// The leader was told.
pub(crate) const HELP_ASKED: Screen = Screen { name: "help_asked", text: "help_asked", rows: &[BACK] };

/// There is no leader who could be told; the request stands all the same.
pub(crate) const HELP_NOTED: Screen = Screen { name: "help_noted", text: "help_noted", rows: &[BACK] };

/// What the leader is told, in a message that the bot sends by itself: its button must leave it as it is.
pub(crate) const HELP_FOR_LEADER: Screen = Screen {
    name: "help_for_leader",
    text: "help_for_leader",
    rows: &[Row::Of(&[data("help_for_leader_button", "+m:hot")])],
};

/// All of them.
#[cfg(test)]
pub(in crate::onboarding) const SCREENS: &[Screen] = &[
    MENU,
    PATH,
    PATH_TO_INTRO,
    PATH_TO_VIDEO,
    PATH_TO_SITE,
    PARTNERS,
    NO_PARTNERS,
    HOT,
    NOBODY_HOT,
    CABINET,
    CONSOLE,
    CONSOLE_LOCKED,
    SETTINGS,
    HELP,
    HELP_ASKED,
    HELP_NOTED,
    HELP_FOR_LEADER,
];

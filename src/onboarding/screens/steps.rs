//! The screens of the way to the site, of binding, and of what is not understood.

use super::{Act, Address, Btn, Row, Screen, When};

const fn data(label: &'static str, data: &'static str) -> Btn {
    Btn { label, act: Act::Data(data), when: When::Always }
}

const fn open(label: &'static str, address: Address) -> Btn {
    Btn { label, act: Act::Open(address), when: When::Has(address) }
}

const MENU_ROW: Row = Row::Of(&[data("menu_button", "m:menu")]);

/// Which language? Both are on it, the person's own first.
pub(crate) const LANGUAGE: Screen = Screen {
    name: "language",
    text: "choose_language",
    rows: &[Row::Of(&[data("choose_language_ru_button", "l:ru"), data("choose_language_en_button", "l:en")])],
};

/// What this is about, and a video about it.
pub(crate) const INTRO: Screen =
    Screen { name: "intro", text: "intro", rows: &[Row::Of(&[data("intro_video_button", "f:video")])] };

/// The same without a video: the way leads straight to the site.
pub(crate) const INTRO_TO_SITE: Screen =
    Screen { name: "intro_to_site", text: "intro", rows: &[Row::Of(&[data("intro_site_button", "f:site")])] };

/// The same without either.
pub(crate) const INTRO_ALONE: Screen = Screen { name: "intro_alone", text: "intro", rows: &[MENU_ROW] };

/// The video, which is elsewhere: whether it was watched, only the person can say.
pub(crate) const VIDEO: Screen = Screen {
    name: "video",
    text: "video",
    rows: &[
        Row::Of(&[open("video_open_button", Address::Video)]),
        Row::Of(&[data("video_watched_button", "f:watched")]),
    ],
};

/// The next step is the site.
pub(crate) const SITE: Screen =
    Screen { name: "site", text: "site", rows: &[Row::Of(&[data("site_button", "f:site")])] };

/// The way to the site, for this person and a short time.
pub(crate) const SITE_LINK: Screen = Screen {
    name: "site_link",
    text: "site_link",
    rows: &[Row::Of(&[open("site_open_button", Address::Site)]), Row::Of(&[data("site_again_button", "f:site")])],
};

/// There is no way to the site in this installation.
pub(crate) const NO_SITE: Screen = Screen { name: "no_site", text: "site_unavailable", rows: &[MENU_ROW] };

/// What a tap on a button of the bind prompt, or the backend's answer to it, leads to.
pub(crate) const BIND_DONE: Screen = Screen { name: "bind_done", text: "bind_done", rows: &[MENU_ROW] };

/// It is not their account.
pub(crate) const BIND_NO: Screen = Screen { name: "bind_no", text: "bind_no", rows: &[MENU_ROW] };

/// The account waits for another chat now, or is bound to one.
pub(crate) const BIND_CHANGED: Screen =
    Screen { name: "bind_changed", text: "bind_changed", rows: &[Row::Of(&[data("site_again_button", "f:site")])] };

/// The prompt is a day old.
pub(crate) const BIND_EXPIRED: Screen =
    Screen { name: "bind_expired", text: "bind_expired", rows: &[Row::Of(&[data("site_again_button", "f:site")])] };

/// The backend elsewhere was asked.
pub(crate) const BIND_ASKED: Screen = Screen { name: "bind_asked", text: "bind_asked", rows: &[] };

/// Nothing is sent any more that was not asked for.
pub(crate) const STOPPED: Screen =
    Screen { name: "stopped", text: "stopped", rows: &[Row::Of(&[data("stopped_button", "m:settings")])] };

/// A button of another version, or of a prompt that is not there any more.
pub(crate) const STALE: Screen = Screen { name: "stale", text: "stale", rows: &[MENU_ROW] };

/// A text, a sticker, a command that there is not.
pub(crate) const NOT_UNDERSTOOD: Screen = Screen { name: "not_understood", text: "not_understood", rows: &[MENU_ROW] };

/// A page for members, and this is none yet.
pub(crate) const NOT_A_MEMBER: Screen =
    Screen { name: "not_a_member", text: "not_a_member", rows: &[Row::Of(&[data("site_button", "f:site")]), MENU_ROW] };

/// Is this account yours? Sent when an event says so, and edited by the answer. Its buttons name the account, so the rows
/// are those of one item.
pub(crate) const BIND_PROMPT: Screen = Screen {
    name: "bind_prompt",
    text: "bind_prompt",
    rows: &[
        Row::Each(&Btn { label: "bind_prompt_button", act: Act::Id("bind"), when: When::Always }),
        Row::Each(&Btn { label: "bind_no_button", act: Act::Id("nobind"), when: When::Always }),
    ],
};

/// All of them.
#[cfg(test)]
pub(super) const SCREENS: &[Screen] = &[
    LANGUAGE,
    INTRO,
    INTRO_TO_SITE,
    INTRO_ALONE,
    VIDEO,
    SITE,
    SITE_LINK,
    NO_SITE,
    BIND_PROMPT,
    BIND_DONE,
    BIND_NO,
    BIND_CHANGED,
    BIND_EXPIRED,
    BIND_ASKED,
    STOPPED,
    STALE,
    NOT_UNDERSTOOD,
    NOT_A_MEMBER,
];

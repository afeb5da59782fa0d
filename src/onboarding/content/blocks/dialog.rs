//! Blocks of the conversation (`dialog.toml`).

use super::{Block, Shape, Value};

/// Characters of a command's description (Bot API, `BotCommand`).
const LONGEST_DESCRIPTION: usize = 256;

/// How a person calls themselves, or is called by the backend.
const NAMES: &[&str] = &["", "Anna", "<b>&\"", "\u{202e}\u{200f}abc"];

const fn html(key: &'static str, values: &'static [Value]) -> Block {
    Block { key, shape: Shape::Html, values }
}

const fn button(key: &'static str) -> Block {
    Block { key, shape: Shape::Button, values: &[] }
}

const fn description(key: &'static str) -> Block {
    Block { key, shape: Shape::Plain(LONGEST_DESCRIPTION), values: &[] }
}

const UID: &[Value] = &[Value::Text { name: "uid", samples: &["7", "9223372036854775807"] }];

pub(super) const BLOCKS: &[Block] = &[
    html("choose_language", &[Value::Text { name: "name", samples: NAMES }]),
    button("choose_language_ru_button"),
    button("choose_language_en_button"),
    html("unknown_code", &[]),
    html("intro", &[Value::Text { name: "leader_name", samples: NAMES }]),
    button("intro_video_button"),
    button("intro_site_button"),
    html("video", &[]),
    button("video_open_button"),
    button("video_watched_button"),
    html("site", &[Value::Switch { name: "has_wallet" }]),
    button("site_button"),
    html("site_link", &[Value::Text { name: "minutes", samples: &["", "1", "30"] }]),
    button("site_open_button"),
    button("site_again_button"),
    html("site_unavailable", &[]),
    html("bind_prompt", UID),
    button("bind_prompt_button"),
    button("bind_no_button"),
    html("bind_done", UID),
    html("bind_no", UID),
    html("bind_changed", UID),
    html("bind_expired", UID),
    html("bind_asked", UID),
    html("stopped", &[]),
    button("stopped_button"),
    html("stale", &[]),
    html("not_understood", &[]),
    html("not_a_member", &[]),
    button("menu_button"),
    button("back_button"),
    description("command_start"),
    description("command_menu"),
    description("command_language"),
    description("command_settings"),
    description("command_help"),
    description("command_stop"),
];
